"""What a site's sitemaps hold, file by file; and what they held at another time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from sqlalchemy import Connection

from monitor.core.dates import parse_date
from monitor.core.listing_pack import Line, parse_line, unpack_lines
from monitor.core.reconcile import when
from monitor.store import listings as listing_store

JUMP = 10.0
"""A tree that lists so many times what it usually did, or so small a part of it, is worth a look."""

_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class FileReport:
    """One sitemap file. Shares are parts of its URLs; `bytes` and `seconds` are those of its last full answer."""

    site: str
    root: str
    url: str
    kind: str
    urls: int
    lastmod_share: float | None
    fresh_share: float | None
    bytes: int | None
    seconds: float | None
    read: str | None
    changed: str | None
    complete: bool
    listed: bool
    problems: str | None


@dataclass(frozen=True, slots=True)
class SiteReport:
    """A site's files, how many URLs they list together, and what is odd about that."""

    site: str
    urls: int
    files: tuple[FileReport, ...]
    warnings: tuple[str, ...]


def report(connection: Connection, sites: Sequence[tuple[int, str]], now: float) -> list[SiteReport]:
    """The sitemaps of these (id, name) sites as they were last read."""
    found = []
    for site_id, name in sites:
        rows = listing_store.documents_of_site(connection, site_id)
        files = tuple(_file(connection, name, row, now) for row in rows)
        urls = sum(file.urls for file in files if file.listed)
        found.append(SiteReport(name, urls, files, tuple(_warnings(rows))))
    return found


def _file(connection: Connection, site: str, row: Any, now: float) -> FileReport:
    lines = unpack_lines(listing_store.text_of(connection, row.id))
    state: dict[str, Any] = json.loads(row.state) if row.state else {}
    dates = [line.partition("\t")[2].partition("\t")[0] for line in lines]
    dated = sum(map(bool, dates))
    fresh = count_fresh(dates, datetime.fromtimestamp(now, UTC))
    return FileReport(
        site=site,
        root=row.root,
        url=row.url,
        kind=row.kind,
        urls=len(lines),
        lastmod_share=round(dated / len(lines), 4) if lines else None,
        fresh_share=round(fresh / len(lines), 4) if lines else None,
        bytes=state.get("bytes"),
        seconds=state.get("seconds"),
        read=when(row.read_at),
        changed=when(row.changed_at),
        complete=row.complete_at is not None and row.complete_at == row.read_at,
        listed=not row.unlisted,
        problems=row.error,
    )


def count_fresh(dates: Sequence[str], now: datetime) -> int:
    """How many of these lastmods are of the last 24 hours; a date without a time is its day's end."""
    since = now - timedelta(hours=24)
    early = since.date().isoformat()
    fresh = 0
    for text in dates:
        # Of most dates their first ten characters say enough.
        if not text or (_ISO_DAY.match(text) and text[:10] < early):
            continue
        date = parse_date(text)
        if date.instant is not None:
            end = date.instant + timedelta(hours=24 if date.precision == "day" else 0)
            fresh += since <= end <= now + timedelta(hours=24)
    return fresh


def _warnings(rows: Sequence[Any]) -> list[str]:
    found = []
    for root, counts in sorted({(row.root, row.source_counts) for row in rows if row.source_counts}):
        series = json.loads(counts)["counts"]
        if len(series) < 2:
            continue
        usual, last = median(series[:-1]), series[-1]
        if usual > 0 and not usual / JUMP < last < usual * JUMP:
            found.append(f"{root} lists {last} URLs where it listed {usual:.0f}")
    return found


def listed_at(
    connection: Connection, sites: Sequence[tuple[int, str]], moment: float
) -> list[tuple[str, str, str, list[Line] | None]]:
    """(site, file, its kind, what it listed at an instant) of each file; None where that is not known."""
    found = []
    for site_id, name in sites:
        for row in listing_store.documents_of_site(connection, site_id):
            lines = listing_store.lines_at(connection, row.id, moment)
            told = None if lines is None else sorted(map(parse_line, lines), key=lambda line: line.url)
            found.append((name, row.url, row.kind, told))
    return found
