"""Coverage promises at work: noted when a page is new, judged when they fall due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core import promises
from monitor.core.promises import Promise
from monitor.core.reconcile import Draft
from monitor.core.url import matches
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import pages as page_store
from monitor.store import promises as promise_store

BATCH = 250
"""Promises judged in one transaction."""

MOST_BROKEN = 1000
"""Broken promises that one pass looks at; a site of many feeds would have it look at all of them every second."""


def commit_events(
    run: Runtime, connection: Connection, site: str, site_id: int, drafts: Sequence[Draft], now: float
) -> None:
    """Write events with their deliveries, and what `expect` promises about the pages that are new among them."""
    event_store.add_events(connection, site, drafts, run.routes, now)
    watched = run.sites.get(site)  # None: it left the configuration while it was read
    made = [p for draft in drafts for p in _promised(watched, draft, now)] if watched else []
    if made:
        promise_store.open_promises(connection, site_id, made)


def _promised(site: Site, draft: Draft, now: float) -> list[Promise]:
    if draft.type != "url.new" or draft.page_id is None:
        return []
    return [
        Promise(
            page_id=draft.page_id,
            rule=f"{rule.pages} in {rule.kind} within {rule.within:.0f} s",
            kind=rule.kind,
            due_at=now + rule.within,
        )
        for rule in site.expect
        if matches(rule.pages, draft.subject)
    ]


async def check_promises(run: Runtime) -> int:
    """Judge the promises that have fallen due, and those broken that may be mended; returns how many were told.

    One whose source was not read since it fell due has that source read first. Each is looked at when it falls due,
    and again only when a source of its kind was read. A few hundred at a time: others need the database, too.
    """
    sites = {run.rows[name].id: site for name, site in run.sites.items() if site.expect and name in run.rows}
    if not sites:
        return 0
    now, told, room = run.clock(), 0, MOST_BROKEN
    while room > 0:
        looked, events = await run.db.run(partial(_judge, run=run, sites=sites, now=now))
        told += events
        if looked is None:
            break
        room -= BATCH if looked == "broken" else 0
    if told:
        run.wake()
    return told


def _judge(connection: Connection, run: Runtime, sites: Mapping[int, Site], now: float) -> tuple[str | None, int]:
    """Judge up to `BATCH` promises, those that fell due first, broken ones last; those of long ago if there are none.

    Returns the state that they were in, None where there are none to look at, and how many were told.
    """
    found = (
        promise_store.fallen_due(connection, _decidable(connection, run, sites), now, BATCH)
        or promise_store.stirred(connection, sites, "open", BATCH)
        or promise_store.stirred(connection, sites, "broken", BATCH)
    )
    if not found:
        promise_store.expire(connection, now - promises.WATCHED)
        return None, 0
    readings = promise_store.readings(connection, {site_id for site_id, _promise in found})
    by_site: dict[int, list[Promise]] = {}
    for site_id, promise in found:
        by_site.setdefault(site_id, []).append(promise)
    told = 0
    for site_id, mine in by_site.items():
        ids = {promise.page_id for promise in mine}
        pages = page_store.known_pages(connection, site_id, ids)
        seen_in = promise_store.kinds_that_listed(connection, site_id, ids)
        waiting: dict[str, float] = {}
        looked, drafts = [], []
        for promise in mine:
            reading = readings.get((site_id, promise.kind), promises.NO_SOURCE)
            kinds, page = seen_in[promise.page_id], pages.get(promise.page_id)
            state = promises.judge(promise, promise.kind in kinds, reading, now) if page else "expired"
            broken_at = now if (promise.state, state) == ("open", "broken") else promise.broken_at
            looked.append((site_id, replace(promise, state=state, broken_at=broken_at), reading.stamp))
            if state == "open":
                waiting[promise.kind] = max(promise.due_at, waiting.get(promise.kind, 0.0))
            elif page and (draft := promises.told(promise, state, page, kinds, sites[site_id].name, now)):
                drafts.append(draft)
        for kind, due_at in waiting.items():
            promise_store.read_now(connection, site_id, kind, due_at, now)
        promise_store.settle(connection, looked)
        event_store.add_events(connection, sites[site_id].name, drafts, run.routes, now)
        told += len(drafts)
    return found[0][1].state, told


def _decidable(connection: Connection, run: Runtime, sites: Mapping[int, Site]) -> dict[str, list[int]]:
    """By kind the sites that promise it, without those that lack a source of it and may yet turn out to have one."""
    readings = promise_store.readings(connection, sites)
    by_kind: dict[str, dict[int, None]] = {}
    lacking: set[int] = set()
    for number, site in sites.items():
        for rule in site.expect:
            by_kind.setdefault(rule.kind, {})[number] = None
            if (number, rule.kind) not in readings:
                lacking.add(number)
    unread = promise_store.settling(connection, lacking) if lacking else set()

    def decided(number: int, kind: str) -> bool:
        site = sites[number]
        if (number, kind) in readings:
            return True
        undiscovered = (site.feeds is None or site.sitemaps is None) and run.rows[site.name].discovered_at is None
        # A crawl is made by hand: before the first nothing can be said of it.
        return kind != "crawl" and number not in unread and not undiscovered

    return {kind: [number for number in numbers if decided(number, kind)] for kind, numbers in by_kind.items()}
