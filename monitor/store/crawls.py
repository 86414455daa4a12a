"""What a crawl remembers of the pages it visited, so that the next one asks only whether they changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from monitor.core.http import Validators
from monitor.core.identity import page_id
from monitor.core.listing_pack import pack_lines, unpack_lines
from monitor.core.url import page_key
from monitor.store.pages import upsert
from monitor.store.schema import crawled

FORGET = 30 * 86400.0
"""Seconds after which a page that no crawl visited any more is forgotten."""


@dataclass(frozen=True, slots=True)
class Crawled:
    """A page as it was last read: its validators, what it says of itself, its links below the sections."""

    url: str
    etag: str | None
    last_modified: str | None
    links: tuple[str, ...]
    title: str | None
    published_at: float | None
    canonical: str | None
    noindex: bool
    read_at: float

    def validators(self) -> Validators | None:
        """What makes a request for it conditional."""
        return Validators(self.url, self.etag, self.last_modified) if self.etag or self.last_modified else None


_COLUMNS = [
    crawled.c[name]
    for name in ("url", "etag", "last_modified", "links", "title", "published_at", "canonical", "noindex", "read_at")
]


def remembered(connection: Connection, document_id: int) -> dict[str, Crawled]:
    """The pages that earlier crawls read, by page key."""
    found = {}
    for row in connection.execute(select(*_COLUMNS).where(crawled.c.document_id == document_id)):
        found[page_key(row.url)] = Crawled(**{**row._mapping, "links": tuple(unpack_lines(row.links))})
    return found


def remember(connection: Connection, document_id: int, pages: Iterable[Crawled], now: float) -> None:
    """Write the pages of a crawl, and forget those that none has visited for long."""
    rows = [
        {
            "document_id": document_id,
            "page_id": page_id(page_key(one.url)),
            "url": one.url,
            "etag": one.etag,
            "last_modified": one.last_modified,
            "links": pack_lines(one.links),
            "title": one.title,
            "published_at": one.published_at,
            "canonical": one.canonical,
            "noindex": one.noindex,
            "read_at": one.read_at,
        }
        for one in pages
    ]
    upsert(connection, crawled, ("document_id", "page_id"), rows)
    connection.execute(delete(crawled).where(crawled.c.document_id == document_id, crawled.c.read_at < now - FORGET))
