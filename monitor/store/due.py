"""Which sources are due, and when the next one is."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, select, update

from monitor.store.schema import site, source
from monitor.store.sources import COLUMNS, SourceRow, source_row


def due_sources(
    connection: Connection, now: float, limit: int, take: Callable[[int, str, str, str], bool]
) -> tuple[list[SourceRow], int]:
    """Active sources whose time has come, longest overdue first, and how many were passed over.

    `take` is asked of each (id, site, kind, URL) in turn, until it has taken `limit`.
    """
    # Few columns first, as they come: those that are busy, or whose host is, stand in front, and may be many.
    due = (
        select(source.c.id, site.c.name, source.c.kind, source.c.url)
        .select_from(source.join(site))
        .where(source.c.active, source.c.next_at <= now)
        .order_by(source.c.next_at)
        .execution_options(yield_per=250)
    )
    ids: list[int] = []
    passed = 0
    with connection.execute(due) as rows:
        for row in rows:
            if take(*row):
                ids.append(row.id)
                if len(ids) == limit:
                    break
            else:
                passed += 1
    found: dict[int, SourceRow] = {}
    query = select(*COLUMNS, site.c.name.label("site")).join(site)
    for start in range(0, len(ids), 500):
        some = connection.execute(query.where(source.c.id.in_(ids[start : start + 500])))
        found.update((row.id, source_row(row)) for row in some)
    return [found[number] for number in ids], passed


def next_due(connection: Connection, now: float) -> float | None:
    """When the next active source falls due after `now`; None if there is none."""
    query = select(source.c.next_at).where(source.c.active, source.c.next_at > now).order_by(source.c.next_at).limit(1)
    return connection.scalar(query)


def hasten(connection: Connection, source_id: int, every: float) -> None:
    """Let a source be due `every` seconds after its last read, where it would be later; Retry-After stands."""
    connection.execute(
        update(source)
        .where(source.c.id == source_id, source.c.retry_at.is_(None), source.c.next_at > source.c.last_at + every)
        .values(next_at=source.c.last_at + every)
    )
