"""One poll of a sitemap tree: every file fetched or confirmed, each committed by itself, the whole judged at the end.

A file's rows are committed as it is read: new pages are told at once, rows that are gone are only marked. What makes a
page missing is decided when the tree is through, and only if every file of it was read or confirmed unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, update

from monitor.config import Site
from monitor.core.decode import decode
from monitor.core.health import Health, Outcome, after_poll
from monitor.core.http import Reply, describe, freshness, permanent_target, renew, verdict
from monitor.core.reconcile import Changes, DocumentMemory, Draft
from monitor.core.reconcile_sitemap import diff_rows, is_suspect, judge_absences, reconcile_listing
from monitor.keep_promises import commit_events
from monitor.model import NotASitemap, Row, Sitemap, SourceKind
from monitor.parse_pool import ParseCrash
from monitor.poll_feed import FULL_READ, GONE_RECHECK, baseline, confirmation
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Write
from monitor.store.schema import document as document_table
from monitor.store.sources import DocumentRow, SourceRow

ACCEPT = "application/xml, text/xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
FILES_AT_ONCE = 4
"""Files of one tree in hand at a time: bounds memory; the host's own limit still holds."""

NEWS_SHARE = 0.5
"""A file is a news sitemap when at least this share of its rows carries a news block."""


@dataclass(slots=True)
class _Walk:
    """A tree on its way: what was seen, what went wrong."""

    run: Runtime
    source: SourceRow
    site: Site
    documents: dict[str, DocumentRow]
    elsewhere: set[str]
    quiet: bool
    started: float
    seen: set[str] = field(default_factory=set)
    visited: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    modified: bool = False
    new: int = 0
    files: int = 0
    root: Reply | None = None
    root_outcome: Outcome | None = None
    root_kind: str = "sitemap"

    def fail(self, url: str, why: str) -> None:
        self.failed.append(f"{url}: {why}")


async def poll_tree(run: Runtime, source: SourceRow) -> Outcome:
    """Read a sitemap root and all it leads to, and commit what it says; returns how it went."""
    site = run.sites[source.site]

    def load(connection: Connection) -> tuple[dict[str, DocumentRow], set[str]]:
        return source_store.documents(connection, source.id), source_store.roots(connection, source.site_id)

    documents, roots = await run.db.run(load)
    walk = _Walk(run, source, site, documents, roots - {source.url}, quiet=source.passes == 0, started=run.clock())
    settings = site.source_settings(source.url).sitemap
    level: list[tuple[str, str | None]] = [(source.url, None)]
    depth = 0
    walk.seen.add(source.url)
    while level:
        gate = asyncio.Semaphore(FILES_AT_ONCE)
        found = await asyncio.gather(*(_guarded(gate, walk, url, parent) for url, parent in level))
        nexts: list[tuple[str, str | None]] = []
        depth += 1
        for (parent, _), children in zip(level, found, strict=True):
            for child in children:
                if child in walk.seen or child in walk.elsewhere:
                    continue
                walk.seen.add(child)
                if depth > settings.max_depth:
                    walk.fail(child, f"deeper than max_depth {settings.max_depth}, not read")
                elif len(walk.seen) > settings.max_files:
                    walk.fail(child, f"more than max_files {settings.max_files}, not read")
                else:
                    nexts.append((child, parent))
        level = nexts
    return await _finish(walk)


async def _guarded(gate: asyncio.Semaphore, walk: _Walk, url: str, parent: str | None) -> Sequence[str]:
    async with gate:
        return await _read(walk, url, parent)


async def _read(walk: _Walk, url: str, parent: str | None) -> Sequence[str]:
    """Read one file and commit it; returns the children that it lists."""
    run = walk.run
    document = walk.documents.get(url)
    asked_at = run.clock()
    full = document is None or document.full_at is None or asked_at - document.full_at > FULL_READ
    reply = await run.fetcher.get(
        url,
        validators=None if full or document is None else document.validators(),
        accept=ACCEPT,
        policy=run.policy(walk.site),
    )
    now = run.clock()
    kind = verdict(reply)
    outcome = Outcome("failed", reply.status, describe(reply), permanent_target(reply))
    walk.files += 1
    children: Sequence[str] = ()
    if document is None:
        root_kind = "news_sitemap" if walk.source.kind == "news_sitemap" else "sitemap"
        document = await run.db.run(
            lambda c: source_store.add_document(c, walk.source.id, url, root_kind, parent, quiet=walk.quiet)
        )
    if kind == "unchanged":
        outcome, children = await _confirmed(walk, document, reply, now)
    elif kind == "modified":
        outcome, children = await _parsed(walk, document, reply, now)
    elif kind in ("gone", "throttled"):
        outcome = Outcome("gone" if kind == "gone" else "throttled", reply.status, describe(reply))
    if outcome.result not in ("modified", "unchanged"):
        walk.fail(url, outcome.error or "failed")
        if outcome.result != "partial":
            error = outcome.error
            await run.db.run(lambda c: source_store.set_document(c, document.id, error=error))
            children = await _children(walk, document)
    walk.visited.append(document.id)
    if parent is None:
        walk.root, walk.root_outcome = reply, outcome
    return children


async def _children(walk: _Walk, document: DocumentRow) -> Sequence[str]:
    """What an index listed when it was last read: a failing index does not stop the watch of its files."""
    return await walk.run.db.run(lambda c: source_store.children(c, walk.source.id, document.url))


async def _confirmed(walk: _Walk, document: DocumentRow, reply: Reply, now: float) -> tuple[Outcome, Sequence[str]]:
    kept = renew(document.validators(), reply)
    await walk.run.db.write(
        Write(source_store.DOCUMENT_CONFIRMED, confirmation(document, kept, reply, now) | {"error": None})
    )
    if document.parent is None:
        walk.root_kind = document.kind
    children = await _children(walk, document) if document.kind == "index" else ()
    return Outcome("unchanged", reply.status, None, permanent_target(reply)), children


async def _parsed(walk: _Walk, document: DocumentRow, reply: Reply, now: float) -> tuple[Outcome, Sequence[str]]:
    data = decode(reply.body)
    digest = sha256(data.data).hexdigest()
    transferred = reply.complete and data.complete
    if transferred and digest == document.body_hash and not document.unlisted:
        return await _confirmed(walk, document, reply, now)
    try:
        sitemap = await walk.run.pool.sitemap(data.data, reply.final_url or document.url)
    except (NotASitemap, ParseCrash) as error:
        return Outcome("failed", reply.status, str(error)), ()
    sitemap = replace(sitemap, complete=sitemap.complete and transferred)
    children = [row.url for row in sitemap.rows if row.child]
    memory = document.memory()
    suspect = sitemap.complete and is_suspect(len(sitemap.rows), memory)
    kind = kind_of(sitemap, document, walk.source)
    changes = await walk.run.db.run(
        lambda c: _commit_file(c, walk, document, reply, sitemap, kind, digest, now, suspect)
    )
    walk.modified = True
    walk.new += changes.new
    if document.parent is None:
        walk.root_kind = kind
    if changes.events:
        walk.run.wake()
    if suspect:
        known = max(memory.counts, default=0)
        why = f"lists {len(sitemap.rows)} rows where it had {known}; waiting for a further read"
        return Outcome("partial", reply.status, why), children
    if not sitemap.complete:
        problem = sitemap.problems[0].message if sitemap.problems else "the transfer was cut short"
        return Outcome("partial", reply.status, f"read in part: {problem}"), children
    return Outcome("modified", reply.status), children


def kind_of(sitemap: Sitemap, document: DocumentRow, source: SourceRow) -> str:
    """What a file is: an index, a news sitemap or a sitemap. By content; a news sitemap that is empty, or whose news
    blocks have aged out, stays one."""
    rows = [row for row in sitemap.rows if not row.child]
    if sitemap.kind == "index" or (not rows and any(row.child for row in sitemap.rows)):
        return "index"
    if source.kind == "news_sitemap":
        return "news_sitemap"
    news = sum(1 for row in rows if row.news is not None)
    if rows and news >= NEWS_SHARE * len(rows):
        return "news_sitemap"
    if document.kind == "news_sitemap" and len(rows) <= 1000:
        return "news_sitemap"
    if document.baseline_at is None and not rows and "news" in document.url.rsplit("/", 1)[-1].casefold():
        return "news_sitemap"
    return "sitemap"


def _commit_file(
    connection: Connection,
    walk: _Walk,
    document: DocumentRow,
    reply: Reply,
    sitemap: Sitemap,
    kind: str,
    digest: str,
    now: float,
    suspect: bool,
) -> Changes:
    source, run = walk.source, walk.run
    memory = replace(document.memory(), kind=kind)
    rules = run.rules(walk.site)
    known = page_store.known_rows(connection, document.id)
    diff = diff_rows(sitemap, known, rules)
    pages = page_store.known_pages(connection, source.site_id, diff.touched())
    whole = sitemap.complete and not suspect
    changes = reconcile_listing(
        sitemap,
        diff,
        kind="news_sitemap" if kind == "news_sitemap" else "sitemap",
        document=memory,
        known=known,
        pages=pages,
        rules=rules,
        whole=whole,
        most_new=source.most_new,
        now=datetime.fromtimestamp(now, UTC),
    )
    page_store.apply(connection, source.site_id, document.id, changes, document.read_at or now)
    page_store.add_checks(connection, source.site_id, document.id, changes.checks, now)
    commit_events(run, connection, source.site, source.site_id, changes.events, now)
    values = _file_values(document, memory, reply, sitemap, changes, digest, now, suspect=suspect)
    source_store.set_document(connection, document.id, kind=kind, **values)
    if kind == "index":
        _list_children(connection, walk, document, sitemap.rows)
    if changes.new > source.most_new:
        source_store.set_source(connection, source.id, most_new=changes.new)
    return changes


def _list_children(connection: Connection, walk: _Walk, document: DocumentRow, rows: Sequence[Row]) -> None:
    """Store the children of an index with it, so that a 304 for the index still leads to them."""
    for row in rows:
        if not row.child or row.url in walk.elsewhere or row.url == document.url:
            continue
        child = walk.documents.get(row.url)
        if child is None:
            walk.documents[row.url] = source_store.add_document(
                connection, walk.source.id, row.url, "sitemap", document.url, quiet=walk.quiet
            )
        elif child.parent != document.url and child.parent is not None:
            source_store.set_document(connection, child.id, parent=document.url)


def _file_values(
    document: DocumentRow,
    memory: DocumentMemory,
    reply: Reply,
    sitemap: Sitemap,
    changes: Changes,
    digest: str,
    now: float,
    *,
    suspect: bool,
) -> dict[str, Any]:
    whole = sitemap.complete and not suspect
    kept = renew(document.validators(), reply) if whole else None
    values: dict[str, Any] = {
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "body_hash": digest if whole else None,
        "read_at": now,
        "full_at": now,
        "suspect": len(sitemap.rows) if suspect else None,
        "unlisted": False,
        "error": "; ".join(p.message for p in sitemap.problems[:3]) or None,
        "state": json.dumps(changes.state | {"rows": len(sitemap.rows)}),
    }
    if whole:
        values["complete_at"] = now
        values["counts"] = json.dumps([*memory.counts, len(sitemap.rows)][-5:])
    elif not sitemap.complete:
        values["partials"] = document.partials + 1
    if changes.baseline:
        values["baseline_at"] = now
    return values


async def _finish(walk: _Walk) -> Outcome:
    """Judge the whole: baseline, absences, health, the next poll."""
    run, source = walk.run, walk.source
    assert walk.root is not None
    assert walk.root_outcome is not None
    now = run.clock()
    root = walk.root_outcome
    readable = root.result in ("modified", "unchanged", "partial")
    if not readable:
        outcome = root
    elif walk.failed:
        more = f" (and {len(walk.failed) - 1} more)" if len(walk.failed) > 1 else ""
        outcome = Outcome("partial", root.status, walk.failed[0] + more, root.moved_to)
    else:
        outcome = Outcome("modified" if walk.modified else "unchanged", root.status, None, root.moved_to)

    def commit(connection: Connection) -> tuple[Outcome, bool]:
        drafts: list[Draft] = []
        result = outcome
        if not walk.failed:
            doubt = _judge_tree(connection, walk, now)
            if doubt:
                result = Outcome("partial", root.status, doubt, root.moved_to)
            elif source.baseline_at is None:
                rows = page_store.listed_rows(connection, walk.visited)
                drafts += baseline(run, connection, source, rows, walk.files, now - walk.started, now)
        health, more = after_poll(
            Health(source.state, source.failures, source.failing_since_at, source.moves),
            result,
            site=source.site,
            kind=source.kind,
            url=source.url,
            now=now,
        )
        drafts += more
        if readable:
            source_store.set_source(connection, source.id, passes=source.passes + 1)
        _settle_kinds(connection, walk, now)
        event_store.add_events(connection, source.site, drafts, run.routes, now)
        connection.execute(source_store.SOURCE_POLLED, _source_values(walk, result, health, now))
        return result, bool(drafts)

    result, told = await run.db.run(commit)
    if told:
        run.wake()
    return result


def _judge_tree(connection: Connection, walk: _Walk, now: float) -> str | None:
    """Count a complete read of the whole tree; returns why it is doubted, if it is."""
    source = walk.source
    stored: dict[str, Any] = json.loads(source.counts) if source.counts else {"counts": [], "suspect": None}
    rows = page_store.listed_rows(connection, walk.visited)
    memory = DocumentMemory(source.url, "tree", counts=tuple(stored["counts"]), suspect=stored["suspect"])
    # A lone file was doubted by itself.
    if len(walk.visited) > 1 and is_suspect(rows, memory):
        source_store.set_source(connection, source.id, counts=json.dumps(stored | {"suspect": rows}))
        return f"lists {rows} pages where it had {max(memory.counts)}; waiting for a further read"
    counts = [*memory.counts, rows][-5:]
    source_store.set_source(connection, source.id, counts=json.dumps({"counts": counts, "suspect": None}))
    visited = set(walk.visited)
    unlisted = [d for d in walk.documents.values() if d.id not in visited and not d.unlisted]
    if unlisted:
        page_store.drop_all(connection, [d.id for d in unlisted], source.last_at or now)
        for batch in page_store.chunks([d.id for d in unlisted]):
            connection.execute(
                update(document_table)
                .where(document_table.c.id.in_(batch))
                .values(unlisted=True, validators_url=None, etag=None, last_modified=None, body_hash=None)
            )
    rules = walk.run.rules(walk.site)
    page_store.count_absences(connection, source.id, rules.confirm_missing)
    found = page_store.absences(connection, source.site_id, source.id, rules.confirm_missing)
    changes = judge_absences(found, rules, datetime.fromtimestamp(now, UTC))
    by_url = {d.url: d.id for d in source_store.documents(connection, source.id).values()}
    for check in changes.checks:
        page_store.add_checks(connection, source.site_id, by_url[check.detail["found_in"]["url"]], [check], now)
    return None


def _settle_kinds(connection: Connection, walk: _Walk, now: float) -> None:
    """News sitemaps are told apart by content and read more often: a root becomes one, a child gets its own poll."""
    source = walk.source
    if source.kind == "sitemap" and walk.root_kind == "news_sitemap":
        source_store.set_source(connection, source.id, kind="news_sitemap")
        return
    if source.kind != "sitemap":
        return
    files = source_store.documents(connection, source.id).values()
    leaving = [d for d in files if d.kind == "news_sitemap" and d.parent is not None and not d.unlisted]
    if not leaving:
        return
    named: list[tuple[SourceKind, str, str]] = [("news_sitemap", child.url, f"index {source.url}") for child in leaving]
    source_store.sync_sources(connection, source.site_id, named, now, origins="index")
    found = {s.url: s for s in source_store.all_sources(connection) if s.site_id == source.site_id}
    for child in leaving:
        # The file moves with all that is known of it: its first read as a source of its own is no second baseline.
        own = found[child.url]
        source_store.set_document(connection, child.id, source_id=own.id, parent=None)
        source_store.set_source(connection, own.id, passes=1, baseline_at=child.baseline_at, state="ok")
    # What stays is fewer rows by those that left, which is no shrink.
    source_store.set_source(connection, source.id, counts=None)


def _source_values(walk: _Walk, outcome: Outcome, health: Health, now: float) -> dict[str, Any]:
    source = walk.source
    assert walk.root is not None
    settings = walk.site.source_settings(source.url).sitemap
    news = source.kind == "news_sitemap" or walk.root_kind == "news_sitemap"
    every, name = (settings.news_every, "news_every") if news else (settings.every, "every")
    wait, reason = every, f"read every {every:.0f} s ({name})"
    if health.state == "gone":
        wait, reason = GONE_RECHECK, "answered 410 Gone; looked at again once a week"
    elif health.failures:
        wait = min(every, 300.0 * 2.0 ** min(health.failures - 1, 16))
        reason = f"failed {health.failures} times in a row; tried again sooner than {name}"
    retry_at = freshness(walk.root, datetime.fromtimestamp(now, UTC)).retry_at
    next_at = now + wait
    if retry_at is not None and retry_at.timestamp() > next_at:
        next_at, reason = retry_at.timestamp(), "the server asked to wait (Retry-After)"
    return {
        "source_id": source.id,
        "state": health.state,
        "failures": health.failures,
        "failing_since_at": health.failing_since_at,
        "moves": health.moves,
        "next_at": next_at,
        "reason": reason,
        "retry_at": retry_at.timestamp() if retry_at else None,
        "last_at": now,
        "last_result": outcome.result,
        "last_error": outcome.error if outcome.result not in ("modified", "unchanged") else None,
        "last_status": outcome.status,
        "schedule": source.schedule,
    }
