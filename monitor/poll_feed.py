"""One poll of a feed: fetch -> parse -> identify -> reconcile -> commit."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection

from monitor import schedule
from monitor.config import Site
from monitor.core.decode import Decoded, decode
from monitor.core.health import Outcome
from monitor.core.http import (
    ACCEPT_FEED,
    Reply,
    describe,
    distrusted,
    is_delta,
    permanent_target,
    renew,
    verdict,
)
from monitor.core.reconcile import Changes, Draft, Gap, Rules
from monitor.core.reconcile_feed import place_entries, reconcile_feed
from monitor.core.reconcile_gap import Filled
from monitor.core.reconcile_shown import UnsureError
from monitor.core.reconcile_window import confirm_absences
from monitor.fill_gap import fill_gap
from monitor.keep_promises import commit_events
from monitor.model import Feed, NotAFeed
from monitor.parse_pool import ParseCrash
from monitor.poll_values import FULL_READ, baseline, confirmation, hints_of, news_poll, source_values, utc
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import polls as poll_store
from monitor.store import sources as source_store
from monitor.store.database import Write
from monitor.store.sources import DocumentRow, SourceRow
from monitor.wake_siblings import settle_siblings, wake_siblings


async def poll_feed(run: Runtime, source: SourceRow, document: DocumentRow | None) -> Outcome:
    """Read one feed and commit what it says; returns how it went. Never raises for what the server does."""
    site = run.sites[source.site]  # looked up once: a reload may take it away at any time
    if document is None:
        document = await run.db.run(
            lambda c: source_store.add_document(c, source.id, source.url, "feed", None, quiet=True)
        )
    reply, document = await _ask(run, site, source, document)
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


async def _ask(run: Runtime, site: Site, source: SourceRow, document: DocumentRow) -> tuple[Reply, DocumentRow]:
    """Ask for the feed: for what is new since the last read, where the server's validators are trusted with that.

    Returns the answer, and the document with what was learned of how to ask.
    """
    state = document.memory().state
    full = document.full_at is None or run.clock() - document.full_at > FULL_READ
    sent = None if full else document.validators()
    if sent is not None:
        frozen = state.get("distrusted", ())
        sent = replace(
            sent,
            etag=None if "etag" in frozen else sent.etag,
            last_modified=None if "last_modified" in frozen else sent.last_modified,
        )
    # 406: the server serves a type that we do not name, or reads the list wrongly (RFC 9110, 15.5.7).
    accept = "*/*" if state.get("any_type") else ACCEPT_FEED
    url, policy = source.health().address(source.url), run.policy(site, source.known_as)
    reply = await run.fetcher.get(url, validators=sent, accept=accept, policy=policy, delta=True)
    if reply.status == 406 and accept != "*/*":
        reply = await run.fetcher.get(url, validators=sent, accept="*/*", policy=policy, delta=True)
        if reply.status in (200, 226, 304):
            document = replace(document, state=json.dumps({**state, "any_type": True}))
            number, text = document.id, document.state
            await run.db.run(lambda c: source_store.set_document(c, number, state=text))
    return reply, document


async def _unchanged(
    run: Runtime, site: Site, source: SourceRow, document: DocumentRow, reply: Reply, now: float
) -> Outcome:
    outcome = Outcome("unchanged", reply.status, None, permanent_target(reply))
    poll = schedule.Poll(
        at=utc(now), entries=[], new=0, size=0, modified=False, failed=False, hints=hints_of(reply, None, now)
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
            pending, document=document.memory(), rules=run.rules(site, source.known_as), now=utc(now)
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
        whole, delta = reply.complete and data.complete and feed.complete, is_delta(reply)
        return _Read(replace(feed, complete=whole and not delta), found, digest, rules, whole, delta)

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


_MOST_MARKS = 8 * 2000
"""Bytes of marks that are kept over reads of what is new alone."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A body as read: the feed, its entries' marks (packed), the hash of the bytes, the rules it is judged by, and what
    else was read for its gap.

    `whole`: nothing of the body is lost. `delta`: it holds what is new alone, and says nothing of the rest.
    """

    feed: Feed
    marks: bytes | None
    digest: str
    rules: Rules
    whole: bool
    delta: bool
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
    if not read.whole:
        problem = feed.problems[0].message if feed.problems else "the transfer was cut short"
        outcome = Outcome("partial", reply.status, f"read in part: {problem}")

    def commit(connection: Connection) -> tuple[Changes, list[Draft]]:
        changes = _reconcile(connection, source, document, read, now)
        if changes.gap is not None and read.filled is None:
            raise _GapError(changes.gap)
        poll = schedule.Poll(
            at=utc(now),
            entries=list(feed.dates),
            new=changes.new,
            size=_window(document, read),
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


def _reconcile(connection: Connection, source: SourceRow, document: DocumentRow, read: _Read, now: float) -> Changes:
    feed, filled = read.feed, read.filled or Filled()
    placed, shared = place_entries(feed, document.memory().state, read.rules.wanted)
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
        now=utc(now),
        filled=read.filled,
    )
    changes.state["shared"] = shared
    return changes


def _document_values(document: DocumentRow, reply: Reply, read: _Read, changes: Changes, now: float) -> dict[str, Any]:
    """What a read leaves of the document. Validators and hash are kept after a whole read only: a partial one that
    was remembered would be frozen by the next 304."""
    feed, before = read.feed, document.memory().state
    kept = renew(document.validators(), reply) if read.whole else None
    problems = "; ".join(p.message for p in feed.problems[:3]) or None
    size = _window(document, read)
    state = changes.state | {"size": size, "format": feed.format, "title": feed.title, "hub": feed.hub}
    frozen = distrusted(document.validators(), reply) if changes.new else before.get("distrusted")
    state |= {"distrusted": frozen} if frozen else {}
    state |= {"any_type": True} if before.get("any_type") else {}
    values: dict[str, Any] = {
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "body_hash": read.digest if feed.complete else None,
        "read_at": now,
        "full_at": document.full_at if read.delta else now,
        "pending": changes.pending,
        "partials": document.partials + (not read.whole),
        "error": problems,
        "state": json.dumps(state),
        "marks": b"".join([read.marks or b"", document.marks or b""])[:_MOST_MARKS] if read.delta else read.marks,
    }
    if read.whole:
        values["complete_at"] = now
    if changes.baseline:
        values["baseline_at"] = now
    return values


def _window(document: DocumentRow, read: _Read) -> int:
    """How many entries the feed shows at a time; one that sends what is new alone shows what it showed before."""
    known = int(document.memory().state.get("size") or 0) if read.delta else 0
    return max(known, read.feed.size)


async def _failed(run: Runtime, site: Site, source: SourceRow, reply: Reply, outcome: Outcome, now: float) -> Outcome:
    poll = schedule.Poll(
        at=utc(now), entries=[], new=0, size=0, modified=False, failed=True, hints=hints_of(reply, None, now)
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
