"""One file of a sitemap tree: fetch -> parse -> reconcile -> commit.

New pages are told at once, rows that are gone are only marked: what makes a page missing is decided when the whole
tree is through (`poll_tree`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from monitor.core.file_turns import Watched, after_read
from monitor.core.health import Outcome
from monitor.core.http import Reply, describe, permanent_target, renew, verdict
from monitor.core.listing import ListingRead
from monitor.core.reconcile import Changes
from monitor.core.reconcile_sitemap import changes_wanted, reconcile_listing
from monitor.keep_promises import commit_events
from monitor.model import NotASitemap
from monitor.parse_pool import ParseCrash
from monitor.poll_values import FULL_READ, confirmation
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Write
from monitor.store.sources import DocumentRow, SourceRow
from monitor.tree_walk import Walk, is_cold, unchanged_by_index, weigh_honesty
from monitor.wake_siblings import wake_siblings

ACCEPT = "application/xml, text/xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
NEWS_SHARE = 0.5
"""A file is a news sitemap when at least this share of its rows carries a news block, and all of these are recent."""


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
    if document is not None and (spared := _spared(walk, document, parent, asked_at)):
        return await _children(walk, document) if spared == "waits" else ()
    full = document is None or document.full_at is None or asked_at - document.full_at > FULL_READ
    reply = await run.fetcher.get(
        url,
        validators=None if full or document is None else document.validators(),
        accept=ACCEPT,
        policy=run.policy(walk.site, walk.source.known_as),
    )
    await run.reached(walk.source, walk.site, reply)
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
    walk.heed(url, reply, now)
    if kind in ("gone", "throttled"):
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


def _spared(walk: Walk, document: DocumentRow, parent: str | None, now: float) -> str:
    """Why a file is not asked this time, if it is not."""
    if walk.must_wait(document.url):
        walk.fail(document.url, "not asked: its host wants us to wait")
        walk.visited.append(document.id)
        return "waits"
    if unchanged_by_index(walk, document, walk.documents.get(parent or ""), now):
        walk.visited.append(document.id)
        return "unchanged"
    if is_cold(walk, document, walk.documents.get(parent or "")):
        walk.cold.append((document.url, parent))
        walk.visited.append(document.id)
        return "cold"
    return ""


async def _children(walk: Walk, document: DocumentRow) -> Sequence[str]:
    """What an index listed when it was last read: a failing index does not stop the watch of its files."""
    return await walk.run.db.run(lambda c: source_store.children(c, walk.source.id, document.url))


async def _confirmed(walk: Walk, document: DocumentRow, reply: Reply, now: float) -> tuple[Outcome, Sequence[str]]:
    kept = renew(document.validators(), reply)
    await walk.run.db.write(
        Write(
            source_store.DOCUMENT_CONFIRMED,
            confirmation(document, kept, reply, now, walk.source.passes) | {"error": None},
        )
    )
    weigh_honesty(walk, document, changed=False)
    if document.parent is None:
        walk.root_kind = document.kind
    children = await _children(walk, document) if document.kind == "index" else ()
    return Outcome("unchanged", reply.status, None, permanent_target(reply)), children


async def _parsed(walk: Walk, document: DocumentRow, reply: Reply, now: float) -> tuple[Outcome, Sequence[str]]:
    run = walk.run
    rules, memory = run.rules(walk.site, walk.source.known_as), document.memory()

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
            want=changes_wanted(memory, rules),
        )
    except (NotASitemap, ParseCrash) as error:
        return Outcome("failed", reply.status, str(error)), ()
    if listing is None:
        return await _confirmed(walk, document, reply, now)
    read = _Parsed(document, reply, listing, kind_of(listing, document, walk.source), now)
    changes = await run.db.run(lambda c: _commit_file(c, walk, read))
    walk.modified = True
    walk.dropped += len(listing.gone)
    walk.off_host += listing.off_host
    weigh_honesty(walk, document, changed=listing.listing is not None)
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
    rules = walk.run.rules(walk.site, walk.source.known_as)
    about = [one.id for one in (*listing.new, *listing.changed, *listing.gone)]
    pages = page_store.known_pages(connection, source.site_id, about)
    unknown = {one.id: (one.key, one.row.url) for one in listing.new if one.row and one.id not in pages}
    changes = reconcile_listing(
        listing,
        kind="news_sitemap" if read.kind == "news_sitemap" else "sitemap",
        document=replace(document.memory(), kind=read.kind),
        known=page_store.sightings(connection, document.id, about),
        pages=pages | listing_store.silent_pages(connection, source.site_id, unknown),
        rules=rules,
        most_new=source.most_new,
        told=walk.new,
        now=datetime.fromtimestamp(now, UTC),
    )
    walk.new += changes.new  # here, so that the next file's commit knows
    listing_store.write(connection, source.site_id, document.id, listing, now)
    page_store.apply(connection, source.site_id, document.id, changes, document.read_at or now)
    page_store.add_checks(connection, source.site_id, document.id, changes.checks, now)
    commit_events(walk.run, connection, source.site, source.site_id, changes.events, now)
    source_store.set_document(connection, document.id, kind=read.kind, **_file_values(walk, read, changes))
    if read.kind == "index":
        _list_children(connection, walk, document, listing.children)
    if changes.new and source.baseline_at is not None:
        wake_siblings(walk.run, connection, source, now)
    return changes


def _list_children(
    connection: Connection, walk: Walk, document: DocumentRow, children: Sequence[tuple[str, str | None]]
) -> None:
    """Store the children of an index with it, so that a 304 for the index still leads to them."""
    # Until an index was believed once, its files are as old as it is.
    quiet = walk.quiet or (document.quiet and document.baseline_at is None)
    for url, lastmod in children:
        if url in walk.elsewhere or url == document.url:
            continue
        child = walk.documents.get(url)
        if child is None:
            walk.documents[url] = source_store.add_document(
                connection, walk.source.id, url, "sitemap", document.url, quiet=quiet, index_lastmod=lastmod
            )
            continue
        if child.index_lastmod != lastmod:
            walk.documents[url] = replace(child, index_lastmod=lastmod)
            source_store.set_document(connection, child.id, index_lastmod=lastmod)
        if child.parent != document.url and child.parent is not None:
            source_store.set_document(connection, child.id, parent=document.url)


def _file_values(walk: Walk, read: _Parsed, changes: Changes) -> dict[str, Any]:
    """What a read leaves of the file. Validators and hash are kept after a whole read only: a partial one that was
    remembered would be frozen by the next 304."""
    document, listing = read.document, read.listing
    kept = renew(document.validators(), read.reply) if listing.whole else None
    before = document.memory().state
    watched = after_read(
        Watched(document.watched, document.changes, document.turn),
        walk.source.passes,
        changed=listing.listing is not None,
    )
    state = changes.state | {
        **{name: before[name] for name in ("honest", "announced", "idle") if name in before},
        "scope": walk.run.rules(walk.site, walk.source.known_as).scope.dump(),
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
        "read_lastmod": document.index_lastmod,
        "watched": watched.passes,
        "changes": watched.changes,
        "turn": watched.turn,
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
