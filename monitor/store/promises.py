"""Coverage promises as stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    Subquery,
    and_,
    bindparam,
    case,
    cast,
    func,
    select,
    update,
)

from monitor.core.promises import Promise, Reading, State
from monitor.store.listings import listing_documents
from monitor.store.pages import SPEAKS, chunks, upsert
from monitor.store.schema import document, promise, sighting, source
from monitor.store.sources import NEVER


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


def readings(connection: Connection, site_ids: Collection[int]) -> dict[tuple[int, str], Reading]:
    """How the sources of these sites were read, by site and kind. A kind of which a site has no source is left out."""
    found: dict[tuple[int, str], Reading] = {}
    for ids in chunks(site_ids):
        for row in connection.execute(select(_readings(ids))):
            found[row.site_id, row.kind] = Reading(row.sources, row.read_at, row.stamp)
    return found


def _readings(site_ids: Collection[int]) -> Subquery:
    good = case((source.c.last_result.in_(("modified", "unchanged")), source.c.last_at), else_=0.0)
    # Seconds: no source is read twice in one, and whole numbers add up to the same in any order.
    stamp = func.sum(cast(func.coalesce(source.c.last_at, 0.0), BigInteger))
    return (
        select(
            source.c.site_id,
            source.c.kind,
            func.count().label("sources"),
            func.min(good).label("read_at"),
            cast(stamp, BigInteger).label("stamp"),
        )
        .where(source.c.site_id.in_(site_ids), SPEAKS)
        .group_by(source.c.site_id, source.c.kind)
        .subquery()
    )


def fallen_due(
    connection: Connection, sites: Mapping[str, Collection[int]], now: float, limit: int
) -> list[tuple[int, Promise]]:
    """(site id, promise) of those that fell due and were not looked at since. `sites` are ids of sites by kind."""
    found: list[tuple[int, Promise]] = []
    for kind, site_ids in sites.items():
        due = select(promise).where(promise.c.looked.is_(None), promise.c.kind == kind, promise.c.due_at <= now)
        for ids in chunks(site_ids):
            found += _promises(connection, due.where(promise.c.site_id.in_(ids)).limit(limit - len(found)))
            if len(found) == limit:
                return found
    return found


def stirred(connection: Connection, site_ids: Collection[int], state: State, limit: int) -> list[tuple[int, Promise]]:
    """(site id, promise) of those in `state` of whose kind a source was read since they were last looked at."""
    found: list[tuple[int, Promise]] = []
    for ids in chunks(site_ids):
        read = _readings(ids)
        for other in (promise.c.looked < read.c.stamp, promise.c.looked > read.c.stamp):  # each a range of the index
            same = and_(promise.c.site_id == read.c.site_id, promise.c.kind == read.c.kind)
            query = select(promise).select_from(read.join(promise, same)).where(promise.c.state == state, other)
            found += _promises(connection, query.limit(limit - len(found)))
            if len(found) == limit:
                return found
    return found


def _promises(connection: Connection, query: Select[Any]) -> list[tuple[int, Promise]]:
    return [
        (row.site_id, Promise(row.page_id, row.rule, row.kind, row.due_at, row.state, row.broken_at))
        for row in connection.execute(query)
    ]


def settling(connection: Connection, site_ids: Collection[int]) -> set[int]:
    """Those of the sites that have a sitemap which is read for the first time: it may yet bring a news sitemap."""
    found: set[int] = set()
    for ids in chunks(site_ids):
        query = select(source.c.site_id).where(
            source.c.site_id.in_(ids),
            SPEAKS,
            source.c.kind == "sitemap",
            source.c.baseline_at.is_(None),
            source.c.failures == 0,
        )
        found.update(connection.scalars(query))
    return found


def kinds_that_listed(connection: Connection, site_id: int, page_ids: Collection[int]) -> dict[int, list[str]]:
    """For each page the kinds of documents that list it or once did, first to list it first."""
    found: dict[int, dict[str, None]] = {number: {} for number in page_ids}
    for ids in chunks(page_ids):
        query = (
            select(sighting.c.page_id, document.c.kind)
            .select_from(sighting.join(document).join(source))
            .where(sighting.c.page_id.in_(ids), source.c.site_id == site_id, SPEAKS)
            .order_by(sighting.c.first_at)
        )
        for row in connection.execute(query):
            found[row.page_id][row.kind] = None
    listing = listing_documents(connection, site_id, page_ids)
    kinds: dict[int, tuple[float, str]] = {}
    for ids in chunks({one for documents in listing.values() for one in documents}):
        rows = connection.execute(_DOCUMENTS.where(document.c.id.in_(ids)))
        kinds.update((row.id, (row.baseline_at or 0.0, row.kind)) for row in rows)
    for number, documents in listing.items():
        found[number].update((kind, None) for _at, kind in sorted(kinds[one] for one in documents))
    return {number: list(names) for number, names in found.items()}


_DOCUMENTS = select(document.c.id, document.c.kind, document.c.baseline_at)


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
            source.c.next_at < NEVER,
            (source.c.retry_at.is_(None)) | (source.c.retry_at <= now),
        )
        .values(next_at=now, reason="a coverage promise has fallen due")
    )


def settle(connection: Connection, looked: Sequence[tuple[int, Promise, int]]) -> None:
    """Write the state of promises, (site id, promise as it is now, stamp of the reading it was judged by) each."""
    if not looked:
        return
    connection.execute(
        _SETTLE,
        [
            {
                "the_site": site_id,
                "the_page": one.page_id,
                "the_rule": one.rule,
                "state": one.state,
                "broken_at": one.broken_at,
                "looked": stamp,
            }
            for site_id, one, stamp in looked
        ],
    )


_SETTLE = (
    update(promise)
    .where(
        promise.c.site_id == bindparam("the_site"),
        promise.c.page_id == bindparam("the_page"),
        promise.c.rule == bindparam("the_rule"),
    )
    .values(state=bindparam("state"), broken_at=bindparam("broken_at"), looked=bindparam("looked"))
)


def expire(connection: Connection, before: float) -> None:
    """Give up the promises that fell due `before` and were never judged, and those broken then and never mended."""
    old = promise.c.due_at < before
    for mine in (
        and_(promise.c.state == "open", old),
        and_(promise.c.state == "broken", old, promise.c.broken_at < before),
    ):
        connection.execute(
            update(promise).where(mine).values(state="expired", looked=func.coalesce(promise.c.looked, 0))
        )
