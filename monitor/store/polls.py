"""What is kept of polls: those of feeds that brought news, for as long as a replay looks back."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import Connection, delete, select

from monitor.core.simulate import NewsPoll
from monitor.store.pages import upsert
from monitor.store.schema import poll

KEPT = 35 * 86400.0
"""Seconds for which polls with news are kept: four weeks, and the week in which a replay only learns."""


def add(connection: Connection, source_id: int, made: NewsPoll) -> None:
    """Keep a poll, and forget those of long ago."""
    values = {
        "source_id": source_id,
        "at": made.at,
        "since_at": made.since,
        "polls": made.polls,
        "new": made.new,
        "size": made.size,
        "ages": json.dumps([round(age) for age in made.ages], separators=(",", ":")),
    }
    upsert(connection, poll, ("source_id", "at"), [values])
    connection.execute(delete(poll).where(poll.c.source_id == source_id, poll.c.at < made.at - KEPT))


def of_source(connection: Connection, source_id: int, since: float) -> list[NewsPoll]:
    """The polls with news of a source since an instant, in their order."""
    query = select(poll).where(poll.c.source_id == source_id, poll.c.at >= since).order_by(poll.c.at)
    return list(_polls(connection.execute(query)))


def _polls(rows: Iterable[object]) -> Iterable[NewsPoll]:
    for row in rows:
        ages = tuple(map(float, json.loads(row.ages)))  # type: ignore[attr-defined]
        yield NewsPoll(row.at, row.since_at, row.polls, row.new, row.size, ages)  # type: ignore[attr-defined]
