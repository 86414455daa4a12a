"""Emptying the outbox: every event to every endpoint that takes it, at least once, in order per site and endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection
from tenacity import RetryCallState, Retrying, wait_exponential, wait_random

from monitor.deliver.sinks import Receipt, Sink
from monitor.store import events as event_store
from monitor.store.database import Database
from monitor.store.events import Pending

log = logging.getLogger("monitor.deliver")

FIRST_WAIT = 5.0
LONGEST_WAIT = 12 * 3600.0
ATTEMPTS = 20
"""Tries until a delivery is parked: with doubling waits of 5 s to 12 h, about four days."""

BATCH = 500
LONGEST_SLEEP = 5.0
"""The clock may be set while a wait is under way, and another process may have put something into the outbox."""

NOTED_EVERY = 50
"""Deliveries of a lane that are noted together: at most so many are repeated after a crash."""

NOTED_SECONDS = 0.1
"""How long deliveries to a slow endpoint may go without being noted."""

_wait = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)


@dataclass(slots=True)
class Tally:
    """What one round did."""

    delivered: int = 0
    failed: int = 0
    errors: dict[str, str] = field(default_factory=dict)


def backoff(attempts: int) -> float:
    """Seconds to wait after the `attempts`-th failure: 5 s, doubling, jittered, at most 12 hours."""
    state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
    state.attempt_number = max(1, attempts)
    return float(_wait(state))


class Deliverer:
    """Works the outbox of a database with the endpoints in force."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._sinks: dict[str, Sink] = {}
        self._held: dict[str, float] = {}  # endpoints that want nothing before a time, though something waits
        self._recalled: set[str] = set()
        self._wake = asyncio.Event()
        self.closed = asyncio.Event()
        """Set when standard output was closed by its reader: the process should end."""

    def use(self, sinks: Sequence[Sink]) -> None:
        """Take `sinks` as the endpoints in force. What waits for others stays in the outbox."""
        self._sinks = {sink.name: sink for sink in sinks}
        self._held.clear()
        self._recalled.clear()

    def wake(self) -> None:
        """There may be something to deliver."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled, or until standard output is closed. One slow or dead endpoint delays no other.

        Raises StoreError where the database fails: what was sent can no longer be noted.
        """
        tasks: dict[str, asyncio.Task[Tally]] = {}
        try:
            while not self.closed.is_set():
                self._wake.clear()
                idle = [name for name in self._sinks if name not in tasks]
                due = await self._db.run(partial(event_store.next_deliveries, endpoints=idle))
                due = {name: max(at, self._held.get(name, 0.0)) for name, at in due.items()}
                now = self._clock()
                for name in [name for name, at in due.items() if at <= now]:
                    tasks[name] = asyncio.create_task(self._drain(name))
                    tasks[name].add_done_callback(lambda _task: self._wake.set())
                    del due[name]
                wait = min(due.values(), default=now + LONGEST_SLEEP) - now
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), min(wait, LONGEST_SLEEP))
                for name in [name for name, task in tasks.items() if task.done()]:
                    tasks.pop(name).result()
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def attempt(self) -> Tally:
        """One attempt at everything that may be tried now, all endpoints side by side."""
        tallies = await asyncio.gather(*(self._drain(name) for name in self._sinks))
        total = Tally()
        for tally in tallies:
            total.delivered += tally.delivered
            total.failed += tally.failed
            total.errors |= tally.errors
        return total

    async def _drain(self, name: str) -> Tally:
        """Send what one endpoint may have now, batch after batch, until nothing is left or all of it must wait.

        What fails waits beyond the instant at which this began: each event is tried once, however long it takes.
        """
        tally, now = Tally(), self._clock()
        sink = self._sinks.get(name)
        if sink is not None and name not in self._recalled:
            sink.memory = await self._db.run(partial(event_store.memory_of, name=name))
            self._recalled.add(name)
        while not self.closed.is_set():
            sink = self._sinks.get(name)
            if sink is None:
                break
            batch = await self._db.run(
                partial(event_store.pending_deliveries, now=now, endpoints=[name], per_endpoint=sink.reads)
            )
            if not batch:
                break
            lanes: dict[str, list[Pending]] = {}
            for item in batch:
                lanes.setdefault("" if sink.mixed else item.site, []).append(item)
            before = tally.delivered + tally.failed
            gate = asyncio.Semaphore(sink.at_once)
            await asyncio.gather(*(self._lane(gate, sink, lane, tally) for lane in lanes.values()))
            if tally.delivered + tally.failed == before or self._held.get(name):
                break
        return tally

    async def _lane(self, gate: asyncio.Semaphore, sink: Sink, lane: list[Pending], tally: Tally) -> None:
        """Events to one endpoint, in order, of one site or of all; the first that fails holds the rest back."""
        done: list[int] = []
        loop = asyncio.get_running_loop()
        async with gate:
            noted_at = loop.time()
            try:
                while lane:
                    now = self._clock()
                    opens = sink.opens_at(lane[0].time_at, now)
                    if opens > now:
                        self._held[sink.name] = opens
                        return
                    self._held.pop(sink.name, None)
                    items = lane[: sink.takes(len(lane), now)]
                    receipt = await sink.send(items, now)
                    if receipt.outcome != "delivered":
                        await self._failed(sink, items, receipt, tally)
                        return
                    del lane[: len(items)]
                    done += [item.seq for item in items]
                    tally.delivered += len(items)
                    late = loop.time() - noted_at > NOTED_SECONDS
                    if late or len(done) >= NOTED_EVERY or sink.memory is not None:
                        await self._note(sink, done)
                        noted_at = loop.time()
            finally:
                await self._note(sink, done)  # also when cancelled: what was sent is not sent again

    async def _note(self, sink: Sink, done: list[int]) -> None:
        """Take deliveries that were made out of the outbox, and out of `done`."""
        if done:
            noted, done[:] = list(done), []
            note = partial(event_store.delivered, endpoint_name=sink.name, seqs=noted, memory=sink.memory)
            await asyncio.shield(self._db.run(note))

    async def _failed(self, sink: Sink, items: Sequence[Pending], receipt: Receipt, tally: Tally) -> None:
        now = self._clock()
        error = receipt.error or "failed"
        if receipt.outcome == "closed":
            self.closed.set()
            return
        tally.failed += len(items)
        tally.errors[sink.name] = error
        log.warning("%s: %s", sink.name, error)

        wait = backoff(1 + max(item.attempts for item in items))

        def commit(connection: Connection) -> None:
            if receipt.outcome == "gone":
                event_store.disable(connection, sink.name, error, now)
                return
            for item in items:
                if item.attempts + 1 >= ATTEMPTS:
                    event_store.parked(connection, item, error)
                else:
                    event_store.postponed(connection, item, max(now + wait, receipt.retry_at or 0.0), error)

        await self._db.run(commit)
