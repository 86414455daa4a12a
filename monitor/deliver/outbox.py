"""Emptying the outbox: every event to every endpoint that takes it, at least once, in order per site and endpoint."""

from __future__ import annotations

import asyncio
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
        self._wake = asyncio.Event()
        self.closed = asyncio.Event()
        """Set when standard output was closed by its reader: the process should end."""

    def use(self, sinks: Sequence[Sink]) -> None:
        """Take `sinks` as the endpoints in force. What waits for others stays in the outbox."""
        self._sinks = {sink.name: sink for sink in sinks}

    def wake(self) -> None:
        """There may be something to deliver."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled. One slow or dead endpoint delays no other."""
        tasks: dict[str, asyncio.Task[Tally]] = {}
        try:
            while True:
                self._wake.clear()
                for name in self._sinks:
                    if name not in tasks or tasks[name].done():
                        tasks[name] = asyncio.create_task(self._drain(name))
                due = await self._db.run(lambda c: event_store.next_delivery(c, list(self._sinks)))
                wait = 60.0 if due is None else min(60.0, max(0.05, due - self._clock()))
                try:
                    await asyncio.wait_for(self._wake.wait(), wait)
                except TimeoutError:
                    continue
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
        """Send what one endpoint may have now, batch after batch, until nothing is left or all of it must wait."""
        tally = Tally()
        while not self.closed.is_set():
            now = self._clock()
            batch = await self._db.run(
                partial(event_store.pending_deliveries, now=now, endpoints=[name], per_endpoint=BATCH)
            )
            if not batch:
                break
            sink = self._sinks.get(name)
            if sink is None:
                break
            lanes: dict[str, list[Pending]] = {}
            for item in batch:
                lanes.setdefault(item.site, []).append(item)
            gate = asyncio.Semaphore(sink.at_once)
            await asyncio.gather(*(self._lane(gate, sink, lane, tally) for lane in lanes.values()))
            if tally.delivered == 0 and tally.failed == 0:
                break
        return tally

    async def _lane(self, gate: asyncio.Semaphore, sink: Sink, lane: Sequence[Pending], tally: Tally) -> None:
        """One site's events to one endpoint, in order; the first that fails holds the rest back."""
        done: list[int] = []
        async with gate:
            try:
                for item in lane:
                    receipt = await sink.send(item, self._clock())
                    if receipt.outcome == "delivered":
                        done.append(item.seq)
                        tally.delivered += 1
                        continue
                    await self._failed(sink, item, receipt, tally)
                    return
            finally:
                if done:
                    # Also when cancelled: what was sent is noted, so that it is not sent again.
                    await asyncio.shield(self._db.run(lambda c: event_store.delivered(c, sink.name, done)))

    async def _failed(self, sink: Sink, item: Pending, receipt: Receipt, tally: Tally) -> None:
        now = self._clock()
        error = receipt.error or "failed"
        if receipt.outcome == "closed":
            self.closed.set()
            return
        tally.failed += 1
        tally.errors[sink.name] = error
        log.warning("%s: %s", sink.name, error)

        def commit(connection: Connection) -> None:
            if receipt.outcome == "gone":
                event_store.disable(connection, sink.name, error, now)
            elif item.attempts + 1 >= ATTEMPTS:
                event_store.parked(connection, item, error)
            else:
                retry_at = max(now + backoff(item.attempts + 1), receipt.retry_at or 0.0)
                event_store.postponed(connection, item, retry_at, error)

        await self._db.run(commit)
