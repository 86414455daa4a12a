"""A sitemap tree on its way: what was seen, what went wrong, which files need not be asked this time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core.file_turns import Watched, every_passes
from monitor.core.health import Outcome
from monitor.core.http import Reply, freshness
from monitor.core.url import host_of
from monitor.runtime import Runtime
from monitor.store import sources as source_store
from monitor.store.sources import DocumentRow, SourceRow

HONEST_READS = 20
"""An index's lastmods are believed once that many files were found unchanged as it said, none against it ..."""

ANNOUNCED = 3
"""... and so many changed ones had been announced: an index that never changes proves nothing."""

SKIP_SECONDS = 86400.0
"""A file that its index says is unchanged is asked once a day nevertheless: that keeps the proof alive."""


@dataclass(slots=True)
class Walk:
    """One poll of a tree.

    `full`: cold files, those whose turn it is not, are asked, too; `everything`: so are those that their index says
    are unchanged. `cold` are the files that were left for another pass.
    """

    run: Runtime
    source: SourceRow
    site: Site
    documents: dict[str, DocumentRow]
    elsewhere: set[str]
    quiet: bool
    full: bool
    everything: bool
    started: float
    seen: set[str] = field(default_factory=set)
    visited: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cold: list[tuple[str, str | None]] = field(default_factory=list)
    honest: dict[str, int] = field(default_factory=dict)
    announced: dict[str, int] = field(default_factory=dict)
    idle: dict[str, int] = field(default_factory=dict)
    dishonest: set[str] = field(default_factory=set)
    off_host: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    retry_at: float | None = None
    modified: bool = False
    new: int = 0
    fresh: int = 0
    dropped: int = 0
    files: int = 0
    root: Reply | None = None
    root_outcome: Outcome | None = None
    root_kind: str = "sitemap"

    def fail(self, url: str, why: str) -> None:
        """Note that a file could not be read, or not be believed."""
        self.failed.append(f"{url}: {why}")

    def must_wait(self, url: str) -> bool:
        """Whether the file's host asked us to wait, earlier in this poll."""
        return host_of(url) in self.waiting

    def heed(self, url: str, reply: Reply, now: float) -> None:
        """Obey a Retry-After, or a 429 without one, for the rest of the poll and until the next."""
        retry_at = freshness(reply, datetime.fromtimestamp(now, UTC)).retry_at
        if retry_at is not None:
            self.retry_at = max(self.retry_at or 0.0, retry_at.timestamp())
        if retry_at is not None or reply.status == 429:
            self.waiting.add(host_of(url))


def unchanged_by_index(walk: Walk, document: DocumentRow, parent: DocumentRow | None, now: float) -> bool:
    """Whether the index says that the file is unchanged since it was read, and has proven honest (DESIGN)."""
    if walk.everything or parent is None or document.kind == "index" or not _was_whole(document):
        return False
    state = json.loads(parent.state) if parent.state else {}
    recently = document.complete_at is not None and now - document.complete_at < SKIP_SECONDS
    honest = int(state.get("honest") or 0) >= HONEST_READS and int(state.get("announced") or 0) >= ANNOUNCED
    return recently and honest and document.index_lastmod is not None and _as_read(document)


def _as_read(document: DocumentRow) -> bool:
    return document.index_lastmod == document.read_lastmod


def is_cold(walk: Walk, document: DocumentRow, parent: DocumentRow | None) -> bool:
    """Whether the file is left for a later pass: by its own rate of change this is not its turn, its index announces
    nothing, and nothing hangs on it now."""
    if walk.full or document.kind != "sitemap" or not _was_whole(document):
        return False
    settings = walk.site.source_settings(walk.source.url).sitemap
    turns = every_passes(Watched(document.watched, document.changes, document.turn), settings.every)
    return walk.source.passes % turns != 0 and not _announced(document, parent)


def _announced(document: DocumentRow, parent: DocumentRow | None) -> bool:
    """Whether the index gives the file another lastmod than at its last read, and more often rightly than idly."""
    if parent is None or document.index_lastmod is None or _as_read(document):
        return False
    state = json.loads(parent.state) if parent.state else {}
    return int(state.get("announced") or 0) >= int(state.get("idle") or 0)


def _was_whole(document: DocumentRow) -> bool:
    known = document.baseline_at is not None and document.complete_at is not None and document.error is None
    return known and not document.unlisted and document.suspect is None


def weigh_honesty(walk: Walk, document: DocumentRow, *, changed: bool) -> None:
    """Hold what an index said of a file against what its read found."""
    if document.parent is None or document.index_lastmod is None or document.complete_at is None:
        return
    if _as_read(document):
        if changed:
            walk.dishonest.add(document.parent)
        else:
            walk.honest[document.parent] = walk.honest.get(document.parent, 0) + 1
    elif document.read_lastmod is not None:
        told = walk.announced if changed else walk.idle
        told[document.parent] = told.get(document.parent, 0) + 1


def note_honesty(connection: Connection, walk: Walk) -> None:
    """Write what this poll showed of the indexes' lastmods."""
    for url in {*walk.honest, *walk.announced, *walk.idle, *walk.dishonest}:
        index = walk.documents.get(url)
        if index is None:
            continue
        fresh = source_store.document_by_id(connection, index.id)
        state = json.loads(fresh.state) if fresh.state else {}
        for name, counted in (("honest", walk.honest), ("announced", walk.announced), ("idle", walk.idle)):
            before = int(state.get(name) or 0)
            state[name] = 0 if url in walk.dishonest and name != "idle" else min(1000, before + counted.get(url, 0))
        source_store.set_document(connection, index.id, state=json.dumps(state))
