"""One crawl of a site's sections: links followed breadth first, within bounds, as politely as pages are asked.

robots.txt, `nofollow` and crawl delays are obeyed; pages known from before are asked conditionally. What is listed are
the pages that answered, are meant to be indexed, and are their own canonical page; the starts of the sections are where
a crawl begins, not what it finds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from monitor.commit_crawl import commit_crawl
from monitor.config import Crawl, Site
from monitor.core.frontier import Frontier, Link, section_urls
from monitor.core.health import Health, Outcome, after_poll
from monitor.core.http import Reply, describe, freshness, renew
from monitor.core.listing_pack import Line, parse_line, unpack_lines
from monitor.core.page_checks import THROTTLED_WAIT
from monitor.core.url import host_of, page_key
from monitor.model import Row
from monitor.parse_pool import ParseCrash
from monitor.poll_page import ACCEPT, SILENT, RobotsCache, failed, polite
from monitor.poll_values import baseline
from monitor.runtime import Runtime
from monitor.store import crawls as crawl_store
from monitor.store import events as event_store
from monitor.store import listings as listing_store
from monitor.store import sources as source_store
from monitor.store.crawls import Crawled
from monitor.store.sources import DocumentRow, SourceRow

MAX_LINKS = 5000
"""Links of one page that are followed and remembered."""

MAX_BYTES = 5 << 20
DISALLOWED_SAMPLE = 1000


@dataclass(slots=True)
class Visit:
    """A crawl under way. `rows` are the pages it lists, `cut` says why it does not know all that its sections link to.

    `waits` is when its host may be asked again, if it asked for patience.
    """

    run: Runtime
    robots: RobotsCache
    site: Site
    crawl: Crawl
    frontier: Frontier
    known: dict[str, Crawled]
    say: Callable[[str], None]
    rows: dict[str, Row] = field(default_factory=dict)
    read: list[Crawled] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    disallowed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    visited: int = 0
    unchanged: int = 0
    silent: Counter[str] = field(default_factory=Counter)
    status: int | None = None
    waits: float | None = None
    given_up: str | None = None

    @property
    def cut(self) -> str | None:
        """Why the crawl is not whole."""
        if self.given_up:
            return f"the crawl was broken off: {self.given_up}"
        if len(self.frontier):
            return f"the crawl ended at max_pages {self.crawl.max_pages}, with {len(self.frontier):,} links to follow"
        if self.problems:
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            return f"pages of the crawl could not be read: {self.problems[0]}{more}"
        return None


def start_of(site: Site) -> str | None:
    """The address that a site's crawl is known by, that of its first section; None where it has none."""
    return next(iter(section_urls(site.crawl.sections, site.url)), None) if site.crawl else None


async def crawl_site(
    run: Runtime, robots: RobotsCache, source: SourceRow, *, say: Callable[[str], None] = lambda _text: None
) -> tuple[Outcome, Visit | None]:
    """Crawl the sections of a site and commit what they link to; returns how it went. Never raises for what the site
    does. `say` is told of the progress."""
    site = run.sites[source.site]
    if site.crawl is None:
        return Outcome("unchanged"), None  # the configuration no longer asks for it

    def load(connection: Connection) -> tuple[DocumentRow, dict[str, Crawled]]:
        document = source_store.add_document(connection, source.id, source.url, "crawl", None, quiet=True)
        return document, crawl_store.remembered(connection, document.id)

    document, known = await run.db.run(load)
    began, started_at = time.monotonic(), run.clock()
    starts = section_urls(site.crawl.sections, site.url)
    frontier = Frontier(starts, run.rules(site).scope.hosts)
    visit = Visit(run, robots, site, site.crawl, frontier, known, say)
    await _walk(visit)
    outcome = _outcome(visit)
    state = {
        "started_at": started_at,
        "sections": [url if url.endswith("/") else f"{url}/" for url in starts],
        "whole": visit.cut is None,
        "cut": visit.cut,
        "disallowed": visit.disallowed[:DISALLOWED_SAMPLE],
        "bounded": dict(visit.frontier.bounded),
    }
    seconds = time.monotonic() - began
    await run.db.run(lambda c: _commit(c, visit, source, document, outcome, state, seconds))
    run.wake()
    return outcome, visit


async def _walk(visit: Visit) -> None:
    """Visit page after page until there are none left, or enough were."""
    at_once = max(1, visit.site.concurrency.per_host)
    while len(visit.frontier) and visit.visited < visit.crawl.max_pages and not visit.given_up:
        links = visit.frontier.take(min(at_once, visit.crawl.max_pages - visit.visited))
        visit.visited += len(links)
        # One that fails for a fault of ours takes the others along: none goes on behind the crawl's back.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_visit(visit, link)) for link in links]
        # In the order of the links, not of the answers: a crawl of the same site goes the same way.
        for link, task in zip(links, tasks, strict=True):
            if (page := task.result()) is not None:
                _take(visit, link, page)
        visit.say(f"{visit.visited} pages visited, {len(visit.rows)} listed, {len(visit.frontier)} to go")


async def _visit(visit: Visit, link: Link) -> Crawled | None:
    """Read one page; None where there is nothing to follow or list."""
    run = visit.run
    try:
        rules = await visit.robots.rules(visit.site, link.url)
    except ValueError as error:
        visit.problems.append(str(error))
        return None
    if failed(rules):
        visit.given_up = f"the robots.txt of {host_of(link.url)} cannot be read, which forbids its pages"
        return None
    if not rules.allows(link.url, visit.site.user_agent):
        visit.disallowed.append(link.url)
        return None
    known = visit.known.get(page_key(link.url))
    sent = known.validators() if known is not None and known.url == link.url else None
    policy = polite(run.policy(visit.site), rules)
    reply = await run.fetcher.get(link.url, validators=sent, accept=ACCEPT, policy=policy, max_bytes=MAX_BYTES)
    visit.status = reply.status if visit.status is None else visit.status
    _heed(visit, link, reply)
    if reply.status == 304 and sent is not None and known is not None:
        visit.unchanged += 1
        kept = renew(sent, reply) or sent
        return replace(known, etag=kept.etag, last_modified=kept.last_modified, read_at=run.clock())
    if reply.status != 200 or not reply.complete or reply.failure is not None:
        if reply.status is not None and 400 <= reply.status < 500 and reply.status != 429:
            visit.gone.add(page_key(link.url))
            if link.start:
                visit.problems.append(f"{link.url}: {describe(reply)}")
        else:
            visit.problems.append(f"{link.url}: {describe(reply)}")
        return None
    landed = reply.final_url or link.url
    if reply.redirects and not rules.allows(landed, visit.site.user_agent):
        visit.disallowed.append(landed)
        return None
    return await _read(visit, link, reply, landed)


def _heed(visit: Visit, link: Link, reply: Reply) -> None:
    """A host that asks for patience, or is silent again and again, is left alone: the crawl ends here."""
    host = host_of(link.url)
    visit.silent[host] = visit.silent[host] + 1 if reply.status is None else 0
    if reply.status in (429, 503):
        now = visit.run.clock()
        asked = freshness(reply, datetime.fromtimestamp(now, UTC)).retry_at
        visit.waits = asked.timestamp() if asked is not None else now + THROTTLED_WAIT
        visit.given_up = f"{host} answered {reply.status} and asks for patience"
    elif visit.silent[host] >= SILENT:
        visit.given_up = f"{host} gave no answer to {SILENT} pages in a row ({describe(reply)})"


async def _read(visit: Visit, link: Link, reply: Reply, landed: str) -> Crawled | None:
    content_type = reply.headers.get("content-type")
    try:
        facts, links = await visit.run.pool.links(reply.body, landed, content_type)
    except ParseCrash as error:
        visit.problems.append(f"{link.url}: {error}")
        return None
    if not facts.text_length and not links and facts.title is None:
        return None  # a picture, a document: no page of this crawl
    said = {word.strip() for word in reply.headers.get("x-robots-tag", "").lower().split(",")}
    follow = not said & {"nofollow", "none"}
    kept = None if reply.redirects else renew(None, reply)
    below = [url for url in links if visit.frontier.is_below(url)] if follow else []
    return Crawled(
        url=landed,
        etag=kept.etag if kept else None,
        last_modified=kept.last_modified if kept else None,
        links=tuple(below[:MAX_LINKS]),
        title=facts.title,
        published_at=facts.published.timestamp() if facts.published else None,
        canonical=facts.canonical,
        noindex=facts.noindex or bool(said & {"noindex", "none"}),
        read_at=visit.run.clock(),
    )


def _take(visit: Visit, link: Link, page: Crawled) -> None:
    """Follow the links of a page, and list it."""
    key, frontier = page_key(page.url), visit.frontier
    moved = key != page_key(link.url)
    if moved:
        visit.gone.add(page_key(link.url))
        if not frontier.is_below(page.url) or not frontier.meet(page.url):
            return
    visit.read.append(page)
    frontier.offer(page.links, link)
    if page.canonical and page_key(page.canonical) != key and frontier.is_below(page.canonical):
        frontier.offer([page.canonical], link)
        visit.gone.add(key)
        return
    if page.noindex or link.start:
        visit.gone.add(key)
        return
    published = datetime.fromtimestamp(page.published_at, UTC) if page.published_at is not None else None
    text = published.isoformat(timespec="seconds") if published else None
    visit.rows[key] = Row(page.url, published, "second" if published else None, text, title=page.title)


def _outcome(visit: Visit) -> Outcome:
    if not visit.read:
        error = visit.given_up or (visit.problems[0] if visit.problems else "nothing could be read")
        if not visit.given_up and not visit.problems and visit.disallowed:
            error = f"robots.txt does not allow {visit.disallowed[0]} to be read"
        return Outcome("throttled" if visit.waits else "failed", visit.status, error)
    return Outcome("modified", visit.status)


def _commit(
    connection: Connection,
    visit: Visit,
    source: SourceRow,
    document: DocumentRow,
    outcome: Outcome,
    state: dict[str, Any],
    seconds: float,
) -> None:
    run, now = visit.run, visit.run.clock()
    health, drafts = after_poll(
        Health(source.state, source.failures, source.failing_since_at, source.moves),
        outcome,
        site=source.site,
        kind=source.kind,
        url=source.url,
        now=now,
    )
    if outcome.result == "modified":
        rows = [*visit.rows.values(), *_unvisited(connection, visit, document.id)]
        changes = commit_crawl(connection, run, visit.site, source, document, rows, state, now)
        crawl_store.remember(connection, document.id, visit.read, now)
        if source.baseline_at is None:
            drafts = [*baseline(run, connection, source, len(rows), 1, seconds, now), *drafts]
        most_new = max(source.most_new, changes.new)
        source_store.set_source(connection, source.id, passes=source.passes + 1, most_new=most_new)
    event_store.add_events(connection, source.site, drafts, run.routes, now)
    every = visit.crawl.every
    wait, reason = every, f"crawled every {every:.0f} s (crawl.every)"
    if health.failures:
        wait = min(every, 600.0 * 2.0 ** min(health.failures - 1, 16))
        reason = f"failed {health.failures} times in a row; tried again sooner than crawl.every"
    source_store.set_source(
        connection,
        source.id,
        state=health.state,
        failures=health.failures,
        failing_since_at=health.failing_since_at,
        last_at=now,
        last_result=outcome.result,
        last_error=outcome.error,
        last_status=outcome.status,
        next_at=max(now + wait, visit.waits or 0.0),
        retry_at=visit.waits,
        reason=reason,
    )


def _unvisited(connection: Connection, visit: Visit, document_id: int) -> Sequence[Row]:
    """What was listed before and a crawl that was cut did not come to; nothing if it was whole."""
    if visit.cut is None:
        return []
    lines = map(parse_line, unpack_lines(listing_store.text_of(connection, document_id)))
    keys = visit.rows.keys() | visit.gone
    return [_row(line) for line in lines if page_key(line.url) not in keys]


def _row(line: Line) -> Row:
    published = datetime.fromisoformat(line.lastmod) if line.lastmod else None
    return Row(line.url, published, "second" if published else None, line.lastmod, title=line.title)
