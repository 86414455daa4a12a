"""Lists of other crawlers, read into the `crawl` source of the sites that their URLs belong to.

A list may have millions of rows: they go to temporary files by page id, then part after part into the database, each
part a document of its own. A page is always in the same part, so that a part can be compared with what it listed.
"""

from __future__ import annotations

import codecs
import gzip
import io
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from sqlalchemy import Connection

from monitor.commit_crawl import commit_crawl
from monitor.config import Site
from monitor.core.crawl_file import Tally, crawl_urls
from monitor.core.identity import page_ids
from monitor.core.url import host_of, page_keys
from monitor.poll_feed import baseline
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import listings as listing_store
from monitor.store import sources as source_store
from monitor.store.sources import NEVER, SourceRow

IMPORTED = "import:crawl"
"""The address of the source that holds what was imported for a site."""

SPLIT = 8
"""Temporary files: two to the power of this for each site."""

PART = 50_000
"""Rows of a part, at least so many if there is more than one; a part eight times as large is split anew."""

BATCH = 10_000
LONGEST = 1 << 16
"""Characters of a line at most; the rest counts as another line."""


@dataclass(slots=True)
class Imported:
    """What an import came to. `by_site` counts pages, repeats once; `foreign` rows belong to no site."""

    tally: Tally = field(default_factory=Tally)
    by_site: dict[str, int] = field(default_factory=dict)
    new: dict[str, int] = field(default_factory=dict)
    foreign: int = 0
    foreign_hosts: Counter[str] = field(default_factory=Counter)


class CannotReadError(ValueError):
    """The file cannot be read to its end. `str(error)` is one sentence; nothing of it was imported."""


def import_crawl(
    run: Runtime, file: IO[bytes], *, only: Site | None, say: Callable[[int], None] = lambda _rows: None
) -> Imported:
    """Read a list into the `crawl` source of its sites; what an earlier import listed and this one does not, leaves.

    `only` takes every row for one site. `say` is told the rows read so far, now and then. Raises NoURLsError,
    CannotReadError.
    """
    done = Imported()
    with tempfile.TemporaryDirectory(prefix="monitor-import-") as folder:
        spill = _Spill(Path(folder), run, only)
        try:
            for url in crawl_urls(text_lines(file), done.tally):
                spill.take(url, done)
                if done.tally.urls % BATCH == 0:
                    say(done.tally.urls)
        except (OSError, EOFError, zlib.error, UnicodeError) as error:
            raise CannotReadError(f"is damaged behind {done.tally.urls:,} URLs ({error})") from error
        spill.flush()
        for name, rows in spill.rows.items():
            site = run.sites[name]
            now = run.clock()
            source = run.db.call(partial(_source, run=run, site=site, now=now))
            count, new = _store(run, site, source, spill, rows)
            done.by_site[name], done.new[name] = count, new
    return done


def text_lines(file: IO[bytes]) -> Iterator[str]:
    """The lines of a file in UTF-8 or UTF-16, unpacked if it is gzip, however it is named."""
    stream = io.BufferedReader(file, 1 << 20) if isinstance(file, io.RawIOBase) else file
    head = _peek(stream)
    if head.startswith(b"\x1f\x8b"):
        stream = io.BufferedReader(gzip.GzipFile(fileobj=stream), 1 << 20)
        head = _peek(stream)
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = io.TextIOWrapper(stream, "utf-16" if wide else "utf-8-sig", errors="replace", newline="")
    while line := text.readline(LONGEST):
        yield line


def _peek(stream: IO[bytes]) -> bytes:
    peek = getattr(stream, "peek", None)
    return bytes(peek(2)[:2]) if peek is not None else b""


class _Spill:
    """URLs on their way: a temporary file for each site and each of the first `SPLIT` bits of a page id."""

    def __init__(self, folder: Path, run: Runtime, only: Site | None) -> None:
        self._folder, self._only = folder, only
        self._sites = list(run.sites.values())
        self._hosts: dict[str, list[Site]] = {}
        self._own = {site.name: run.rules(site).scope for site in self._sites}
        self._waiting: list[tuple[str, str]] = []
        self.rows: dict[str, int] = {}

    def take(self, url: str, done: Imported) -> None:
        """Take a URL for the sites that its host belongs to."""
        host = host_of(url)
        sites = [self._only] if self._only is not None else self._hosts.get(host)
        if sites is None:
            sites = [site for site in self._sites if site.owns_host(host) or host in self._own[site.name].hosts]
            if len(self._hosts) < BATCH:  # a list may name a million hosts
                self._hosts[host] = sites
        if not sites:
            done.foreign += 1
            if host in done.foreign_hosts or len(done.foreign_hosts) < 1000:
                done.foreign_hosts[host] += 1
        self._waiting += [(site.name, url) for site in sites]
        if len(self._waiting) >= 20 * BATCH:
            self.flush()

    def flush(self) -> None:
        """Write out what waits."""
        parts: dict[tuple[str, int], list[str]] = {}
        urls = [url for _name, url in self._waiting]
        for (name, url), number in zip(self._waiting, page_ids(page_keys(urls)), strict=True):
            parts.setdefault((name, number >> (63 - SPLIT)), []).append(url)
            self.rows[name] = self.rows.get(name, 0) + 1
        for (name, part), lines in parts.items():
            with self._path(name, part).open("a", encoding="utf-8", errors="surrogatepass") as file:
                file.write("\n".join(lines) + "\n")
        self._waiting.clear()

    def _path(self, name: str, part: int) -> Path:
        return self._folder / f"{name}-{part:03}"

    def lines(self, name: str, bits: int, part: int) -> list[str]:
        """The URLs of a site in one of two to the power of `bits` parts."""
        found = []
        for number in range(part << (SPLIT - bits), (part + 1) << (SPLIT - bits)):
            path = self._path(name, number)
            if path.exists():
                found += path.read_text(encoding="utf-8", errors="surrogatepass").splitlines()
        return found


def _source(connection: Connection, run: Runtime, site: Site, now: float) -> SourceRow:
    """The source that holds a site's imports, made if it is not there."""
    row = run.rows[site.name]
    source_store.sync_sources(connection, row.id, [("crawl", IMPORTED, "import")], now, origins="import")
    found = next(s for s in source_store.all_sources(connection) if s.site_id == row.id and s.url == IMPORTED)
    source_store.set_source(connection, found.id, next_at=NEVER, reason="imported by hand: `monitor import crawl`")
    return found


def _store(run: Runtime, site: Site, source: SourceRow, spill: _Spill, rows: int) -> tuple[int, int]:
    """Commit the parts of a site, and what the whole amounts to; returns its pages, and how many of them are news."""
    began, now = time.monotonic(), run.clock()
    documents = run.db.call(lambda c: source_store.documents(c, source.id))
    bits = _bits(list(documents), rows)
    new = 0

    def one(connection: Connection, part: int) -> int:
        url = f"{IMPORTED}/{bits}/{part}"
        lines = "".join(f"{url}\t\n" for url in spill.lines(site.name, bits, part))
        document = source_store.add_document(connection, source.id, url, "crawl", None, quiet=True)
        changes = commit_crawl(connection, run, site, source, document, lines, {"started_at": now}, now)
        return changes.new

    for part in range(1 << bits):
        new += run.db.call(partial(one, part=part))

    def finish(connection: Connection) -> int:
        kept = {f"{IMPORTED}/{bits}/{part}" for part in range(1 << bits)}
        stored = source_store.documents(connection, source.id)
        for document in stored.values():
            if document.url not in kept:
                listing_store.retire(connection, document.id, now)
                source_store.set_document(connection, document.id, unlisted=True)
        pages = listing_store.rows_listed(connection, [stored[url].id for url in kept])
        if source.baseline_at is None:
            drafts = baseline(run, connection, source, pages, 1, time.monotonic() - began, now)
            event_store.add_events(connection, source.site, drafts, run.routes, now)
        values = {"state": "ok", "last_at": now, "last_result": "modified", "most_new": max(source.most_new, new)}
        source_store.set_source(connection, source.id, **values, passes=source.passes + 1)
        return pages

    return run.db.call(finish), new


def _bits(urls: Sequence[str], rows: int) -> int:
    """Into how many parts a list is split, as a power of two: as before, unless that would be far too few."""
    stored = [int(url.split("/")[1]) for url in urls]
    fitting = min(SPLIT, max(0, (rows // PART).bit_length()))
    if stored and rows >> max(stored) <= 8 * PART:
        return max(stored)
    return max([fitting, *stored])
