"""One file of a sitemap tree: fetch -> parse -> reconcile -> commit.

New pages are told at once, rows that are gone are only marked: what makes a page missing is decided when the whole
tree is through (`poll_tree`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core.decode import decode
from monitor.core.health import Outcome
from monitor.core.http import Reply, describe, permanent_target, renew, verdict
from monitor.core.reconcile import Changes
from monitor.core.reconcile_sitemap import diff_rows, is_suspect, reconcile_listing
from monitor.keep_promises import commit_events
from monitor.model import News, NotASitemap, Row, Sitemap
from monitor.parse_pool import ParseCrash
from monitor.poll_feed import FULL_READ, confirmation
from monitor.runtime import Runtime
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Write
from monitor.store.sources import DocumentRow, SourceRow
from monitor.wake_siblings import wake_siblings

ACCEPT = "application/xml, text/xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
NEWS_SHARE = 0.5
"""A file is a news sitemap when at least this share of its rows carries a news block ..."""

NEWS_SPAN = timedelta(days=10)
"""... and all but a tenth of them were published within this span: Google asks for two days, sites keep a few more."""


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
    """A file as read: its document so far, the reply, what it holds, and whether it is suspiciously short."""

    document: DocumentRow
    reply: Reply
    sitemap: Sitemap
    kind: str
    digest: str
    now: float
    suspect: bool

    @property
    def whole(self) -> bool:
        """Whether what is not listed is known to be gone."""
        return self.sitemap.complete and not self.suspect


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
    data = decode(reply.body)
    digest = sha256(data.data).hexdigest()
    transferred = reply.complete and data.complete
    if transferred and digest == document.body_hash and not document.unlisted:
        return await _confirmed(walk, document, reply, now)
    try:
        sitemap = await walk.run.pool.sitemap(data.data, reply.final_url or document.url)
    except (NotASitemap, ParseCrash) as error:
        return Outcome("failed", reply.status, str(error)), ()
    if not transferred and sitemap.kind == "text":
        sitemap = replace(sitemap, rows=sitemap.rows[:-1])  # the last line of a cut list may be half an address
    sitemap = replace(sitemap, complete=sitemap.complete and transferred)
    children = [row.url for row in sitemap.rows if row.child]
    memory = document.memory()
    suspect = sitemap.complete and is_suspect(len(sitemap.rows), memory)
    read = _Parsed(document, reply, sitemap, kind_of(sitemap, document, walk.source), digest, now, suspect)
    changes = await walk.run.db.run(lambda c: _commit_file(c, walk, read))
    walk.modified = True
    walk.new += changes.new
    walk.fresh += sum(row.first_at >= now for row in changes.rows)
    if document.parent is None:
        walk.root_kind = read.kind
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
    news = [row.news for row in rows if row.news is not None]
    if rows and len(news) >= NEWS_SHARE * len(rows) and _is_recent_window(news):
        return "news_sitemap"
    if document.kind == "news_sitemap" and len(rows) <= 1000:
        return "news_sitemap"
    if document.baseline_at is None and not rows and "news" in document.url.rsplit("/", 1)[-1].casefold():
        return "news_sitemap"
    return "sitemap"


def _is_recent_window(news: Sequence[News]) -> bool:
    """Whether the articles came within days of each other, as those of a news sitemap do, however old they are by now.

    Some sites put a news block on every row of their whole archive: that is no news sitemap, and pages do go missing
    from it.
    """
    dates = sorted(n.publication_date for n in news if n.publication_date is not None)
    if len(dates) < 2:
        return True
    return dates[-(len(dates) // 20) - 1] - dates[len(dates) // 20] <= NEWS_SPAN


def _commit_file(connection: Connection, walk: Walk, read: _Parsed) -> Changes:
    source, document, now = walk.source, read.document, read.now
    rules = walk.run.rules(walk.site)
    known = page_store.known_rows(connection, document.id)
    diff = diff_rows(read.sitemap, known, rules)
    changes = reconcile_listing(
        read.sitemap,
        diff,
        kind="news_sitemap" if read.kind == "news_sitemap" else "sitemap",
        document=replace(document.memory(), kind=read.kind),
        known=known,
        pages=page_store.known_pages(connection, source.site_id, diff.touched()),
        rules=rules,
        whole=read.whole,
        most_new=source.most_new,
        now=datetime.fromtimestamp(now, UTC),
    )
    page_store.apply(connection, source.site_id, document.id, changes, document.read_at or now)
    page_store.add_checks(connection, source.site_id, document.id, changes.checks, now)
    commit_events(walk.run, connection, source.site, source.site_id, changes.events, now)
    source_store.set_document(connection, document.id, kind=read.kind, **_file_values(read, changes))
    if read.kind == "index":
        _list_children(connection, walk, document, read.sitemap.rows)
    if changes.new > source.most_new:
        source_store.set_source(connection, source.id, most_new=changes.new)
    if changes.new and source.baseline_at is not None:
        wake_siblings(walk.run, connection, source, now)
    return changes


def _list_children(connection: Connection, walk: Walk, document: DocumentRow, rows: Sequence[Row]) -> None:
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


def _file_values(read: _Parsed, changes: Changes) -> dict[str, Any]:
    """What a read leaves of the file. Validators and hash are kept after a whole read only: a partial one that was
    remembered would be frozen by the next 304."""
    document, rows = read.document, len(read.sitemap.rows)
    kept = renew(document.validators(), read.reply) if read.whole else None
    values: dict[str, Any] = {
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "body_hash": read.digest if read.whole else None,
        "read_at": read.now,
        "full_at": read.now,
        "suspect": rows if read.suspect else None,
        "unlisted": False,
        "error": "; ".join(p.message for p in read.sitemap.problems[:3]) or None,
        "state": json.dumps(changes.state | {"rows": rows}),
    }
    if read.whole:
        values["complete_at"] = read.now
        values["counts"] = json.dumps([*document.memory().counts, rows][-5:])
    elif not read.sitemap.complete:
        values["partials"] = document.partials + 1
    if changes.baseline:
        values["baseline_at"] = read.now
    return values
