"""One poll of a feed: fetch -> parse -> identify -> reconcile -> commit."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection

from monitor import schedule
from monitor.config import Site
from monitor.core.decode import Decoded, decode
from monitor.core.health import Outcome, after_poll
from monitor.core.http import ACCEPT_FEED, Reply, Validators, describe, freshness, permanent_target, renew, verdict
from monitor.core.reconcile import Changes, Draft, Gap, Rules, found_in
from monitor.core.reconcile_feed import place_entries, reconcile_feed
from monitor.core.reconcile_gap import Filled
from monitor.core.reconcile_shown import UnsureError
from monitor.core.reconcile_window import confirm_absences
from monitor.core.simulate import NewsPoll
from monitor.fill_gap import fill_gap
from monitor.keep_promises import commit_events
from monitor.model import Feed, NotAFeed
from monitor.parse_pool import ParseCrash
from monitor.pricing import policy_of
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import polls as poll_store
from monitor.store import sources as source_store
from monitor.store.database import Write
from monitor.store.sources import DocumentRow, SourceRow
from monitor.wake_siblings import settle_siblings, wake_siblings

FULL_READ = 7 * 86400.0
"""An unconditional read this often proves that the server's validators are not frozen (web.dev 4382)."""


async def poll_feed(run: Runtime, source: SourceRow, document: DocumentRow | None) -> Outcome:
    """Read one feed and commit what it says; returns how it went. Never raises for what the server does."""
    site = run.sites[source.site]  # looked up once: a reload may take it away at any time
    if document is None:
        document = await run.db.run(
            lambda c: source_store.add_document(c, source.id, source.url, "feed", None, quiet=True)
        )
    asked_at = run.clock()
    full = document.full_at is None or asked_at - document.full_at > FULL_READ
    reply = await run.fetcher.get(
        source.health().address(source.url),
        validators=None if full else document.validators(),
        accept=ACCEPT_FEED,
        policy=run.policy(site, source.known_as),
    )
    await run.reached(source, site, reply)
    now = run.clock()
    kind = verdict(reply)
    outcome = Outcome("failed", reply.status, describe(reply))
    if kind == "unchanged":
        return await _unchanged(run, site, source, document, reply, now)
    if kind == "modified":
        data = decode(reply.body)
        digest = sha256(data.data).hexdigest()
        if reply.complete and data.complete and digest == document.body_hash:
            return await _unchanged(run, site, source, document, reply, now)
        try:
            return await _changed(run, site, source, document, reply, data, digest, now)
        except (NotAFeed, ParseCrash) as error:
            outcome = Outcome("failed", reply.status, str(error))
    elif kind == "gone":
        outcome = Outcome("gone", reply.status, describe(reply))
    elif kind == "throttled":
        outcome = Outcome("throttled", reply.status, describe(reply))
    return await _failed(run, site, source, reply, outcome, now)


async def _unchanged(
    run: Runtime, site: Site, source: SourceRow, document: DocumentRow, reply: Reply, now: float
) -> Outcome:
    outcome = Outcome("unchanged", reply.status, None, permanent_target(reply))
    poll = schedule.Poll(
        at=_utc(now), entries=[], new=0, size=0, modified=False, failed=False, hints=hints_of(reply, None, now)
    )
    values, drafts = source_values(run, site, source, outcome, poll, reply, now)
    confirmed = Write(
        source_store.DOCUMENT_CONFIRMED, confirmation(document, renew(document.validators(), reply), reply, now)
    )
    if not document.pending and not drafts and not source.stirred:
        await run.db.write(confirmed, Write(source_store.SOURCE_POLLED, values))
        return outcome

    def commit(connection: Connection) -> None:
        connection.execute(confirmed.statement, confirmed.values)
        connection.execute(source_store.SOURCE_POLLED, values)
        pending = page_store.pending_entries(connection, document.id)
        changes = confirm_absences(
            pending, document=document.memory(), rules=run.rules(site, source.known_as), now=_utc(now)
        )
        page_store.apply(connection, source.site_id, document.id, changes, now)
        page_store.add_checks(connection, source.site_id, document.id, changes.checks, now)
        source_store.set_document(connection, document.id, pending=changes.pending)
        settle_siblings(run, connection, source, now, found=False)
        event_store.add_events(connection, source.site, drafts, run.routes, now)

    await run.db.run(commit)
    run.wake()
    return outcome


async def _changed(
    run: Runtime,
    site: Site,
    source: SourceRow,
    document: DocumentRow,
    reply: Reply,
    data: Decoded,
    digest: str,
    now: float,
) -> Outcome:
    """Read a body that is not the one read last: the entries that are new or edited, or all where that is not enough.

    Raises NotAFeed, ParseCrash.
    """
    rules = run.rules(site, source.known_as)
    salt = json.dumps([rules.scope.include, rules.scope.exclude])

    async def parsed(marks: bytes | None) -> _Read:
        feed, found = await run.pool.feed(
            data.data, reply.final_url or source.url, reply.headers.get("content-type"), marks, salt
        )
        whole = reply.complete and data.complete and feed.complete
        return _Read(replace(feed, complete=whole), found, digest, rules)

    read = await parsed(document.marks if document.baseline_at is not None else None)
    while True:
        try:
            return await _modified(run, site, source, document, reply, read, now)
        except UnsureError:
            if len(read.feed.entries) == len(read.feed.ids):
                raise  # nothing was left out: a fault of ours
            read = await parsed(None)
        except _GapError as found:
            read = replace(read, filled=await fill_gap(run, site, source, document, read.feed, found.gap))


@dataclass(frozen=True, slots=True)
class _Read:
    """A body as read: the feed, its entries' marks (packed), the hash of the bytes, the rules it is judged by, and what
    else was read for its gap."""

    feed: Feed
    marks: bytes | None
    digest: str
    rules: Rules
    filled: Filled | None = None


class _GapError(Exception):
    """The read overlaps with none before it, and nobody has looked yet for what lies between."""

    def __init__(self, gap: Gap) -> None:
        super().__init__()
        self.gap = gap


async def _modified(
    run: Runtime, site: Site, source: SourceRow, document: DocumentRow, reply: Reply, read: _Read, now: float
) -> Outcome:
    feed = read.feed
    outcome = Outcome("modified", reply.status, None, permanent_target(reply))
    if not feed.complete:
        problem = feed.problems[0].message if feed.problems else "the transfer was cut short"
        outcome = Outcome("partial", reply.status, f"read in part: {problem}")

    def commit(connection: Connection) -> tuple[Changes, list[Draft]]:
        changes = _reconcile(connection, source, document, read, now)
        if changes.gap is not None and read.filled is None:
            raise _GapError(changes.gap)
        poll = schedule.Poll(
            at=_utc(now),
            entries=list(feed.dates),
            new=changes.new,
            size=feed.size,
            modified=True,
            failed=False,
            hints=hints_of(reply, feed, now),
        )
        values, drafts = source_values(run, site, source, outcome, poll, reply, now)
        drafts = changes.events + drafts
        if changes.baseline:
            drafts = [*baseline(run, connection, source, feed.size, 1, reply.seconds, now), *drafts]
        page_store.apply(connection, source.site_id, document.id, changes, document.read_at or now)
        page_store.add_checks(connection, source.site_id, document.id, changes.checks, now)
        commit_events(run, connection, source.site, source.site_id, drafts, now)
        connection.execute(source_store.SOURCE_POLLED, values)
        source_store.set_document(connection, document.id, **_document_values(document, reply, read, changes, now))
        if changes.new or changes.baseline:
            polls = schedule.loads(values["schedule"]).polls
            poll_store.add(connection, source.id, news_poll(poll, document.read_at, polls, first=changes.baseline))
        settle_siblings(run, connection, source, now, found=changes.new > 0)
        if not changes.baseline and any(draft.type == "url.new" for draft in changes.events):
            wake_siblings(run, connection, source, now)
        return changes, drafts

    _changes, drafts = await run.db.run(commit)
    if drafts:
        run.wake()
    return outcome


def news_poll(poll: schedule.Poll, since: float | None, polls: int, *, first: bool) -> NewsPoll:
    """What is kept of a poll that brought news, for `monitor simulate`. All that a first one shows counts as new."""
    at, new = poll.at.timestamp(), poll.size if first else poll.new
    begin = -math.inf if first or since is None else since
    dates = sorted((when for entry in poll.entries if begin < (when := entry.timestamp()) <= at), reverse=True)
    return NewsPoll(at, None if first else since, polls, new, poll.size, tuple(at - when for when in dates[:new]))


def _reconcile(connection: Connection, source: SourceRow, document: DocumentRow, read: _Read, now: float) -> Changes:
    feed, filled = read.feed, read.filled or Filled()
    placed, shared = place_entries(feed, document.memory().state)
    every = [*placed, *filled.entries, *(item for _url, item in filled.rows)]
    ids = [*feed.ids, *(item.entry.id for item in filled.entries)]
    entries = page_store.known_entries(connection, document.id, ids, [p.page_id for p in placed])
    pages = page_store.known_pages(connection, source.site_id, {p.page_id for p in every})
    unknown = {p.page_id: (p.key, p.observed) for p in every if p.page_id not in pages}
    pages |= listing_store.silent_pages(connection, source.site_id, unknown)
    changes = reconcile_feed(
        feed,
        placed,
        document=document.memory(),
        entries=entries,
        pages=pages,
        rules=read.rules,
        now=_utc(now),
        filled=read.filled,
    )
    changes.state["shared"] = shared
    return changes


def _document_values(document: DocumentRow, reply: Reply, read: _Read, changes: Changes, now: float) -> dict[str, Any]:
    """What a read leaves of the document. Validators and hash are kept after a whole read only: a partial one that
    was remembered would be frozen by the next 304."""
    feed = read.feed
    kept = renew(document.validators(), reply) if feed.complete else None
    problems = "; ".join(p.message for p in feed.problems[:3]) or None
    state = changes.state | {"size": feed.size, "format": feed.format, "title": feed.title, "hub": feed.hub}
    values: dict[str, Any] = {
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "body_hash": read.digest if feed.complete else None,
        "read_at": now,
        "full_at": now,
        "pending": changes.pending,
        "partials": document.partials + (not feed.complete),
        "error": problems,
        "state": json.dumps(state),
        "marks": read.marks,
    }
    if feed.complete:
        values["complete_at"] = now
    if changes.baseline:
        values["baseline_at"] = now
    return values


def baseline(
    run: Runtime, connection: Connection, source: SourceRow, pages: int, files: int, seconds: float, now: float
) -> list[Draft]:
    """The `source.baseline` event, and the marks that the source and its site have one."""
    source_store.set_source(connection, source.id, baseline_at=now)
    row = run.rows[source.site]
    if row.watching_since_at is None:
        source_store.set_site(connection, row.id, watching_since_at=now)
        run.rows[source.site] = replace(row, watching_since_at=now)
    return [
        Draft(
            "source.baseline",
            source.url,
            {
                "site": source.site,
                "url": source.url,
                "found_in": found_in(source.kind, source.url),
                "pages": pages,
                "files": files,
                "seconds": round(seconds, 3),
            },
        )
    ]


async def _failed(run: Runtime, site: Site, source: SourceRow, reply: Reply, outcome: Outcome, now: float) -> Outcome:
    poll = schedule.Poll(
        at=_utc(now), entries=[], new=0, size=0, modified=False, failed=True, hints=hints_of(reply, None, now)
    )
    values, drafts = source_values(run, site, source, outcome, poll, reply, now)
    if not drafts:
        await run.db.write(Write(source_store.SOURCE_POLLED, values))
        return outcome

    def commit(connection: Connection) -> None:
        connection.execute(source_store.SOURCE_POLLED, values)
        event_store.add_events(connection, source.site, drafts, run.routes, now)

    await run.db.run(commit)
    run.wake()
    return outcome


GONE_RECHECK = 7 * 86400.0


def source_values(
    run: Runtime, site: Site, source: SourceRow, outcome: Outcome, poll: schedule.Poll, reply: Reply, now: float
) -> tuple[dict[str, Any], list[Draft]]:
    """What a poll of a feed writes of its source: health, schedule, the next poll and why; and the events of it."""
    health, drafts = after_poll(
        source.health(),
        outcome,
        site=source.site,
        kind=source.kind,
        url=source.url,
        now=now,
    )
    policy = policy_of(run, site, source.url)
    known = schedule.loads(source.schedule) if source.schedule else schedule.start(policy, source.id, run.population)
    state = schedule.observe(schedule.with_policy(known, policy), poll, run.population)
    decision = schedule.decide(state, _utc(now))
    retry_at = freshness(reply, _utc(now)).retry_at
    next_at, reason = decision.at.timestamp(), decision.text
    if health.state == "gone":
        next_at, reason = now + GONE_RECHECK, "the feed answered 410 Gone; looked at again once a week"
    return {
        "source_id": source.id,
        "state": health.state,
        "failures": health.failures,
        "failing_since_at": health.failing_since_at,
        "moves": health.moves,
        "moved_to": health.moved_to,
        "next_at": next_at,
        "reason": reason,
        "retry_at": retry_at.timestamp() if retry_at else None,
        "last_at": now,
        "last_result": outcome.result,
        "last_error": outcome.error if outcome.result not in ("modified", "unchanged") else None,
        "last_status": outcome.status,
        "schedule": schedule.dumps(state),
    }, drafts


def hints_of(reply: Reply, feed: Feed | None, now: float) -> schedule.Hints:
    """What the server and the document say about when to come back."""
    fresh = freshness(reply, _utc(now))
    return schedule.Hints(
        max_age=fresh.max_age,
        ttl=feed.ttl if feed else None,
        update_period=feed.update_period if feed else None,
        skip_hours=feed.skip_hours if feed else frozenset(),
        skip_days=feed.skip_days if feed else frozenset(),
        retry_at=fresh.retry_at,
        hub=bool(feed and feed.hub),
    )


def confirmation(document: DocumentRow, kept: Validators | None, reply: Reply, now: float) -> dict[str, Any]:
    """What a read that found a document unchanged writes of it: both validators are renewed (commafeed 1746)."""
    return {
        "document_id": document.id,
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "read_at": now,
        "complete_at": now,
        "full_at": document.full_at if reply.status == 304 else now,
        "error": document.error,
        "still": document.still + 1,
        "read_lastmod": document.index_lastmod,
    }


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
