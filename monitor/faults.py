"""Faults of the monitor's own: a poll that ends in one is a failed poll, seen in `status` and told like any other."""

from __future__ import annotations

import logging
import random

from sqlalchemy import Connection

from monitor.core.health import Outcome, after_poll
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import sources as source_store
from monitor.store.database import StoreError
from monitor.store.sources import SourceRow

log = logging.getLogger("monitor")

FIRST_WAIT = 300.0
LONGEST_WAIT = 86400.0


def cause(fault: Exception) -> Exception:
    """The fault itself, out of the groups that tasks wrap it in; a failing database before any other."""
    while isinstance(fault, ExceptionGroup):
        fault = (fault.subgroup(StoreError) or fault).exceptions[0]
    return fault


def sentence(fault: Exception) -> str:
    """What a fault is called in `status` and on stderr: one line that any database and terminal takes."""
    fault = cause(fault)
    text = f"internal error: {type(fault).__name__}: {fault}".encode(errors="replace").decode()
    return "".join(c if c.isprintable() else " " for c in text[:300]).rstrip(": ")


async def note_poll(run: Runtime, source: SourceRow, fault: Exception) -> Outcome:
    """Write down that a poll ended in a fault, with the events that follow, and when the next try is due."""
    log.error("%s: this poll failed by a fault of the monitor's own", source.url, exc_info=fault)
    now = run.clock()
    outcome = Outcome("failed", None, sentence(fault))
    health, drafts = after_poll(
        source.health(),
        outcome,
        site=source.site,
        kind=source.kind,
        url=source.url,
        now=now,
    )
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(health.failures - 1, 16))
    wait *= 1.0 + random.random()  # noqa: S311 - spreads retries, guards nothing
    values = {
        "source_id": source.id,
        "state": health.state,
        "failures": health.failures,
        "failing_since_at": health.failing_since_at,
        "moves": health.moves,
        "moved_to": health.moved_to,
        "next_at": now + wait,
        "reason": "the monitor itself failed at it; tried again later each time",
        "retry_at": source.retry_at,
        "last_at": now,
        "last_result": outcome.result,
        "last_error": outcome.error,
        "last_status": None,
        "schedule": source.schedule,
    }

    def commit(connection: Connection) -> None:
        connection.execute(source_store.SOURCE_POLLED, values)
        event_store.add_events(connection, source.site, drafts, run.routes, now)

    await run.db.run(commit)
    if drafts:
        run.wake()
    return outcome
