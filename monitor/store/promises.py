"""Coverage promises as stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select, update

from monitor.core.promises import Promise, Reading, State
from monitor.store.listings import kinds_listing
from monitor.store.pages import SPEAKS, chunks, upsert
from monitor.store.schema import document, promise, sighting, source


def open_promises(connection: Connection, site_id: int, promises: Sequence[Promise]) -> None:
    """Note promises about new pages; one that is known already stays as it is."""
    query = select(promise.c.page_id, promise.c.rule).where(promise.c.site_id == site_id)
    known: set[tuple[int, str]] = set()
    for ids in chunks(p.page_id for p in promises):
        known.update((row.page_id, row.rule) for row in connection.execute(query.where(promise.c.page_id.in_(ids))))
    rows: list[dict[str, Any]] = [
        {
            "site_id": site_id,
            "page_id": p.page_id,
            "rule": p.rule,
            "kind": p.kind,
            "due_at": p.due_at,
            "state": p.state,
            "broken_at": p.broken_at,
        }
        for p in promises
        if (p.page_id, p.rule) not in known
    ]
    upsert(connection, promise, ("site_id", "page_id", "rule"), rows)


def unsettled(connection: Connection, now: float) -> list[tuple[int, Promise]]:
    """(site id, promise) of all that fell due and are open, and of all that are broken and not yet mended."""
    query = select(promise).where(
        ((promise.c.state == "open") & (promise.c.due_at <= now)) | (promise.c.state == "broken")
    )
    return [
        (row.site_id, Promise(row.page_id, row.rule, row.kind, row.due_at, row.state, row.broken_at))
        for row in connection.execute(query.order_by(promise.c.due_at).limit(5000))
    ]


def kinds_that_listed(connection: Connection, site_id: int, page_id: int) -> list[str]:
    """The kinds of documents that list the page or once did, first to list it first."""
    query = (
        select(document.c.kind)
        .select_from(sighting.join(document).join(source))
        .where(sighting.c.page_id == page_id, source.c.site_id == site_id, SPEAKS)
        .order_by(sighting.c.first_at)
    )
    sighted = connection.scalars(query).all()
    return list(dict.fromkeys([*sighted, *kinds_listing(connection, site_id, page_id)]))


def reading_of(connection: Connection, site_id: int, kind: str) -> Reading:
    """How many active sources of a kind a site has, and the oldest of their last good reads."""
    good = case((source.c.last_result.in_(("modified", "unchanged")), source.c.last_at), else_=0.0)
    row = connection.execute(
        select(func.count(), func.min(good)).where(
            source.c.site_id == site_id, source.c.kind == kind, source.c.active, source.c.state != "gone"
        )
    ).one()
    return Reading(row[0], row[1])


def read_now(connection: Connection, site_id: int, kind: str, due_at: float, now: float) -> None:
    """Have the sources of a kind read that were not since `due_at`: a promise waits for it."""
    connection.execute(
        update(source)
        .where(
            source.c.site_id == site_id,
            source.c.kind == kind,
            source.c.active,
            source.c.state != "gone",
            source.c.failures == 0,
            source.c.last_at < due_at,
            source.c.next_at > now,
            (source.c.retry_at.is_(None)) | (source.c.retry_at <= now),
        )
        .values(next_at=now, reason="a coverage promise has fallen due")
    )


def settle(connection: Connection, site_id: int, one: Promise, state: State, now: float) -> None:
    """Write a promise's new state."""
    values: dict[str, Any] = {"state": state}
    if state == "broken":
        values["broken_at"] = now
    connection.execute(
        update(promise)
        .where(promise.c.site_id == site_id, promise.c.page_id == one.page_id, promise.c.rule == one.rule)
        .values(**values)
    )
