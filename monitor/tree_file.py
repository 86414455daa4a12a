"""One file of a sitemap tree: fetch -> parse -> reconcile -> commit.

New pages are told at once, rows that are gone are only marked: what makes a page missing is decided when the whole
tree is through (`poll_tree`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core.health import Outcome
from monitor.core.http import Reply, describe, permanent_target, renew, verdict
from monitor.core.listing import ListingRead
from monitor.core.reconcile import Changes
from monitor.core.reconcile_sitemap import reconcile_listing
from monitor.keep_promises import commit_events
from monitor.model import NotASitemap
from monitor.parse_pool import ParseCrash
from monitor.poll_feed import FULL_READ, confirmation
from monitor.runtime import Runtime
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Write
from monitor.store.sources import DocumentRow, SourceRow
from monitor.wake_siblings import wake_siblings

ACCEPT = "application/xml, text/xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
NEWS_SHARE = 0.5
"""A file is a news sitemap when at least this share of its rows carries a news block, and all of these are recent."""


@dataclass(slots=True)
class Walk:
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
    fresh: int = 0
    files: int = 0
    root: Reply | None = None
    root_outcome: Outcome | None = None
    root_kind: str = "sitemap"

    def fail(self, url: str, why: str) -> None:
        self.failed.append(f"{url}: {why}")


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A file as read: its document so far, the reply, what it lists against what it listed, and what kind it is."""

    document: DocumentRow
    reply: Reply
    listing: ListingRead
    kind: str
    now: float


async def read_file(walk: Walk, url: str, parent: str | None) -> Sequence[str]:
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


async def _children(walk: Walk, document: DocumentRow) -> Sequence[str]:
    """What an index listed when it was last read: a failing index does not stop the watch of its files."""
    return await walk.run.db.run(lambda c: source_store.children(c, walk.source.id, document.url))


async def _confirmed(walk: Walk, document: DocumentRow, reply: Reply, now: float) -> tuple[Outcome, Sequence[str]]:
    kept = renew(document.validators(), reply)
    await walk.run.db.write(
        Write(source_store.DOCUMENT_CONFIRMED, confirmation(document, kept, reply, now) | {"error": None})
    )
    if document.parent is None:
        walk.root_kind = document.kind
    children = await _children(walk, document) if document.kind == "index" else ()
    return Outcome("unchanged", reply.status, None, permanent_target(reply)), children


async def _parsed(walk: Walk, document: DocumentRow, reply: Reply, now: float) -> tuple[Outcome, Sequence[str]]:
    run = walk.run
    rules, memory = run.rules(walk.site), document.memory()

    def load(connection: Connection) -> tuple[bytes | None, frozenset[int]]:
        before = listing_store.text_of(connection, document.id)
        return before, page_store.missing_pages(connection, walk.source.site_id)

    previous, watched = await run.db.run(load)
    try:
        listing = await run.pool.listing(
            reply.body,
            reply.final_url or document.url,
            transferred=reply.complete,
            digest=None if document.unlisted or previous is None else document.body_hash,
            previous=previous,
            memory=memory,
            scope=rules.scope,
            quiet=document.baseline_at is None and document.quiet and not rules.alert_baseline,
            watched=watched,
        )
    except (NotASitemap, ParseCrash) as error:
        return Outcome("failed", reply.status, str(error)), ()
    if listing is None:
        return await _confirmed(walk, document, reply, now)
    read = _Parsed(document, reply, listing, kind_of(listing, document, walk.source), now)
    changes = await run.db.run(lambda c: _commit_file(c, walk, read))
    walk.modified = True
    walk.new += changes.new
    walk.fresh += sum(row.first_at >= now for row in changes.rows)
    if document.parent is None:
        walk.root_kind = read.kind
    if changes.events:
        run.wake()
    children = [url for url, _lastmod in listing.children]
    if listing.suspect:
        known = max(memory.counts, default=0)
        why = f"lists {listing.rows} rows where it had {known}; waiting for a further read"
        return Outcome("partial", reply.status, why), children
    if not listing.complete:
        problem = listing.problems[0].message if listing.problems else "the transfer was cut short"
        return Outcome("partial", reply.status, f"read in part: {problem}"), children
    return Outcome("modified", reply.status), children


def kind_of(listing: ListingRead, document: DocumentRow, source: SourceRow) -> str:
    """What a file is: an index, a news sitemap or a sitemap. By content; a news sitemap that is empty, or whose news
    blocks have aged out, stays one."""
    pages = listing.rows - len(listing.children)
    if listing.kind == "index" or (not pages and listing.children):
        return "index"
    if source.kind == "news_sitemap":
        return "news_sitemap"
    if pages and listing.news >= NEWS_SHARE * pages and listing.recent:
        return "news_sitemap"
    if document.kind == "news_sitemap" and pages <= 1000:
        return "news_sitemap"
    if document.baseline_at is None and not pages and "news" in document.url.rsplit("/", 1)[-1].casefold():
        return "news_sitemap"
    return "sitemap"


def _commit_file(connection: Connection, walk: Walk, read: _Parsed) -> Changes:
    source, document, listing, now = walk.source, read.document, read.listing, read.now
    about = [one.id for one in (*listing.new, *listing.changed, *listing.gone)]
    pages = page_store.known_pages(connection, source.site_id, about)
    unknown = {one.id: (one.key, one.row.url) for one in listing.new if one.row and one.id not in pages}
    changes = reconcile_listing(
        listing,
        kind="news_sitemap" if read.kind == "news_sitemap" else "sitemap",
        document=replace(document.memory(), kind=read.kind),
        known=page_store.sightings(connection, document.id, about),
        pages=pages | listing_store.silent_pages(connection, source.site_id, unknown),
        rules=walk.run.rules(walk.site),
        most_new=source.most_new,
        now=datetime.fromtimestamp(now, UTC),
    )
    listing_store.write(connection, source.site_id, document.id, listing, now)
    page_store.apply(connection, source.site_id, document.id, changes, document.read_at or now)
    page_store.add_checks(connection, source.site_id, document.id, changes.checks, now)
    commit_events(walk.run, connection, source.site, source.site_id, changes.events, now)
    source_store.set_document(connection, document.id, kind=read.kind, **_file_values(read, changes))
    if read.kind == "index":
        _list_children(connection, walk, document, listing.children)
    if changes.new > source.most_new:
        source_store.set_source(connection, source.id, most_new=changes.new)
    if changes.new and source.baseline_at is not None:
        wake_siblings(walk.run, connection, source, now)
    return changes


def _list_children(
    connection: Connection, walk: Walk, document: DocumentRow, children: Sequence[tuple[str, str | None]]
) -> None:
    """Store the children of an index with it, so that a 304 for the index still leads to them."""
    for url, _lastmod in children:
        if url in walk.elsewhere or url == document.url:
            continue
        child = walk.documents.get(url)
        if child is None:
            walk.documents[url] = source_store.add_document(
                connection, walk.source.id, url, "sitemap", document.url, quiet=walk.quiet
            )
        elif child.parent != document.url and child.parent is not None:
            source_store.set_document(connection, child.id, parent=document.url)


def _file_values(read: _Parsed, changes: Changes) -> dict[str, Any]:
    """What a read leaves of the file. Validators and hash are kept after a whole read only: a partial one that was
    remembered would be frozen by the next 304."""
    document, listing = read.document, read.listing
    kept = renew(document.validators(), read.reply) if listing.whole else None
    state = changes.state | {
        "rows": listing.rows,
        "bytes": len(read.reply.body),
        "seconds": round(read.reply.seconds, 3),
    }
    values: dict[str, Any] = {
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "body_hash": listing.digest if listing.whole else None,
        "read_at": read.now,
        "full_at": read.now,
        "suspect": listing.rows if listing.suspect else None,
        "unlisted": False,
        "absent": 0,
        "still": 0 if listing.listing is not None else document.still + 1,
        "error": "; ".join(p.message for p in listing.problems[:3]) or None,
        "state": json.dumps(state),
    }
    if listing.whole:
        values["complete_at"] = read.now
        values["counts"] = json.dumps([*document.memory().counts, listing.rows][-5:])
    elif not listing.complete:
        values["partials"] = document.partials + 1
    if changes.baseline:
        values["baseline_at"] = read.now
    return values
