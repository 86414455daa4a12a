"""Asking the page itself: the witness before a verdict of changed or missing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core.http import Reply, Validators, describe, renew
from monitor.core.page_checks import NOT_ASKED, PageMemory, PageReading, Witness, judge_changed, judge_missing
from monitor.core.reconcile import Changes, Check, KnownPage
from monitor.core.robots import Robots, parse_robots
from monitor.parse_pool import ParseCrash
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store

MISSING_ASKED = 100
"""Most pages asked of one site in a pass before they are told missing; the rest is told on the listings' word."""

ROBOTS_TTL = 86400.0
"""RFC 9309, 2.4: a robots.txt is not used for longer than a day."""

ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.5"


@dataclass(slots=True)
class RobotsCache:
    """The robots.txt of hosts whose pages are asked for, each read at most once a day."""

    run: Runtime
    kept: dict[str, tuple[float, Robots]] = field(default_factory=dict)

    async def allows(self, site: Site, url: str) -> bool:
        """Whether the site's user agent may fetch `url` (RFC 9309)."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        now = self.run.clock()
        found = self.kept.get(origin)
        if found is None or now - found[0] > ROBOTS_TTL:
            address = f"{origin}/robots.txt"
            reply = await self.run.fetcher.get(address, accept="text/plain, */*;q=0.5", policy=self.run.policy(site))
            # RFC 9309, 2.3.1.4: a robots.txt that cannot be reached forbids everything.
            status = reply.status if reply.status is not None else 503
            found = (now, parse_robots(reply.body, status=status, url=address))
            self.kept[origin] = found
        return found[1].allows(url, site.user_agent)


async def check_pages(run: Runtime, robots: RobotsCache, site_name: str) -> int:
    """Settle the open checks of one site; returns how many."""
    site = run.sites[site_name]
    site_id = run.rows[site_name].id
    checks = await run.db.run(lambda c: page_store.open_checks(c, site_id))
    budget = {"changed": site.changes.sample, "missing": MISSING_ASKED}
    if site.changes.verify == "always":
        budget["changed"] = len(checks)
    if site.changes.verify == "never":
        budget = {"changed": 0, "missing": 0}
    gate = asyncio.Semaphore(max(2, site.concurrency.per_host))
    jobs = []
    for document_id, check in checks:
        ask = budget[check.why] > 0
        budget[check.why] -= 1
        jobs.append(_settle(run, robots, site, site_id, document_id, check, gate if ask else None))
    await asyncio.gather(*jobs)
    if checks:
        run.wake()
    return len(checks)


async def _settle(
    run: Runtime,
    robots: RobotsCache,
    site: Site,
    site_id: int,
    document_id: int,
    check: Check,
    gate: asyncio.Semaphore | None,
) -> None:
    def load(connection: Connection) -> tuple[KnownPage | None, PageMemory]:
        page = page_store.known_pages(connection, site_id, [check.page_id]).get(check.page_id)
        return page, page_store.page_memory(connection, site_id, check.page_id) if page else PageMemory()

    page, memory = await run.db.run(load)
    if page is None:
        await run.db.run(lambda c: page_store.close_check(c, site_id, check))
        return
    reading, kept = NOT_ASKED, None
    if gate is not None:
        async with gate:
            reading, kept = await _ask(run, robots, site, page, check, memory)
    now = run.clock()
    moment = datetime.fromtimestamp(now, UTC)

    def commit(connection: Connection) -> None:
        current = page_store.known_pages(connection, site_id, [check.page_id])[check.page_id]
        rules = run.rules(site)
        witness: Witness | None = None
        if check.why == "missing":
            listed = page_store.listed_by(connection, site_id, page.id)
            changes = judge_missing(check, current, reading, listed, rules, moment)
        else:
            changes, witness = judge_changed(check, current, memory, reading, rules, moment)
        _write(connection, site_id, document_id, check, changes, witness, now)
        event_store.add_events(connection, site.name, changes.events, run.routes, now)
        if reading.facts is not None and reading.status == 200 and kept is not None:
            page_store.set_page(
                connection,
                site_id,
                page.id,
                etag=kept.etag,
                last_modified=kept.last_modified,
                fingerprint=reading.facts.fingerprint,
                checked_at=now,
            )

    await run.db.run(commit)


def _write(
    connection: Connection,
    site_id: int,
    document_id: int,
    check: Check,
    changes: Changes,
    witness: Witness | None,
    now: float,
) -> None:
    page_store.apply(connection, site_id, document_id, changes, now)
    page_store.close_check(connection, site_id, check)
    if witness in ("confirmed", "denied") and check.detail.get("fields") == ["lastmod"]:
        # The page has spoken for or against the file's lastmods: that is what their trust is made of.
        document = source_store.document_by_id(connection, document_id)
        state = json.loads(document.state) if document.state else {}
        trust = state.setdefault("trust", {})
        trust[witness] = int(trust.get(witness, 0)) + 1
        source_store.set_document(connection, document_id, state=json.dumps(state))


async def _ask(
    run: Runtime, robots: RobotsCache, site: Site, page: KnownPage, check: Check, memory: PageMemory
) -> tuple[PageReading, Validators | None]:
    """Fetch a page, if robots.txt lets us. What it says, and the validators to keep."""
    if not await robots.allows(site, page.url):
        return PageReading(None, error="robots.txt does not allow the page to be read"), None
    sent = None
    if check.why == "changed" and memory.fingerprint is not None and (memory.etag or memory.last_modified):
        sent = Validators(page.url, memory.etag, memory.last_modified)
    reply: Reply = await run.fetcher.get(
        page.url, validators=sent, accept=ACCEPT, policy=run.policy(site), max_bytes=5 << 20
    )
    if reply.status is None:
        return PageReading(None, error=describe(reply)), None
    facts = None
    if reply.status == 200:
        try:
            facts = await run.pool.page(reply.body, reply.final_url or page.url, reply.headers.get("content-type"))
        except ParseCrash as error:
            return PageReading(reply.status, reply.final_url, None, str(error)), None
    return PageReading(reply.status, reply.final_url, facts), renew(sent, reply)
