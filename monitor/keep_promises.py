"""Coverage promises at work: noted when a page is new, judged when they fall due."""

from __future__ import annotations

from collections.abc import Sequence

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

    One whose source was not read since it fell due has that source read first.
    """
    if not any(site.expect for site in run.sites.values()):
        return 0
    now = run.clock()
    names = {row.id: name for name, row in run.rows.items()}

    def work(connection: Connection) -> int:
        told = 0
        for site_id, promise in promise_store.unsettled(connection, now):
            name = names.get(site_id)
            page = page_store.known_pages(connection, site_id, [promise.page_id]).get(promise.page_id)
            if name is None or page is None:
                continue
            seen_in = promise_store.kinds_that_listed(connection, site_id, promise.page_id)
            reading = promise_store.reading_of(connection, site_id, promise.kind)
            state = promises.judge(promise, promise.kind in seen_in, reading, now)
            if state == promise.state:
                if state == "open":
                    promise_store.read_now(connection, site_id, promise.kind, promise.due_at, now)
                continue
            promise_store.settle(connection, site_id, promise, state, now)
            draft = promises.told(promise, state, page, seen_in, name, now)
            if draft is not None:
                event_store.add_events(connection, name, [draft], run.routes, now)
                told += 1
        return told

    told = await run.db.run(work)
    if told:
        run.wake()
    return told
