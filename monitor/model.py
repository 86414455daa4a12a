"""The vocabulary: values that pass between the parts of the product.

Every value here is immutable and free of behaviour that needs a clock, a socket or a database. Words are those of
RSS 2.0, RFC 4287, sitemaps.org and RFC 9110. Instants are aware `datetime`s in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SourceKind = Literal["feed", "sitemap", "news_sitemap", "crawl"]
IdKind = Literal["guid", "link", "hash"]
Precision = Literal["year", "month", "day", "minute", "second"]
SitemapKind = Literal["urlset", "index", "text", "feed"]


class NotAFeed(ValueError):  # noqa: N818 - the contract's name
    """The bytes hold no feed of any kind. `str(error)` says in one sentence what they hold instead."""


class NotASitemap(ValueError):  # noqa: N818 - the contract's name
    """The bytes hold no sitemap of any kind. `str(error)` says in one sentence what they hold instead."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document, none of which keeps the rest from being read.

    `rule` is a stable id such as ``xml.cut``, `place` says where (``line 12``, ``entry 3``, ``byte 4096``), `message`
    is one sentence.
    """

    rule: str
    place: str
    message: str


@dataclass(frozen=True, slots=True)
class Date:
    """A date as published, with what is known of it.

    `instant` is None when the text is no date or a sentinel; `precision` is None then, too. A text without a zone is
    read as UTC and has `zone` False: it may be up to 14 hours off. `problem` names why a text is invalid or odd
    (``sentinel``, ``not-a-date``, ``out-of-range``, ``ambiguous``, ``offset``, ...), None when it is clean.
    """

    text: str
    instant: datetime | None
    precision: Precision | None
    zone: bool = True
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a feed (RSS `item`, Atom `entry`), known by `id` within that feed.

    `id_kind` says where `id` came from: the feed's own guid or id, else the link, else a hash of title and date.
    `url` is the link as published, absolute, or None. `content_hash` covers title, summary and content as a reader
    sees them (markup, white space and what rotates at each build left out).
    """

    id: str
    id_kind: IdKind
    url: str | None
    title: str | None
    published: datetime | None
    updated: datetime | None
    authors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    summary: str | None = None
    content_hash: str = ""
    original_url: str | None = None
    """A feed proxy's original link (`feedburner:origLink`), where there is one."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed document as parsed. `entries` leaves out those whose id was known; `ids` and `size` count all.

    `complete` is False where the bytes were cut or damaged: such a read may add, never remove. `ttl` is in seconds
    (RSS gives minutes); `update_period` in seconds is that of `sy:updatePeriod` over `sy:updateFrequency`.
    `skip_hours` are hours of the day in UTC, `skip_days` weekdays with Monday 0 (RSS 2.0).
    """

    format: str
    url: str
    title: str | None
    entries: tuple[Entry, ...]
    ids: tuple[str, ...]
    size: int
    complete: bool
    problems: tuple[Problem, ...] = ()
    moments: tuple[datetime | None, ...] = ()
    """Of each of `ids` in turn: when the entry was published, else updated; None where it has neither date."""
    home_url: str | None = None
    self_url: str | None = None
    hub: str | None = None
    next_archive: str | None = None
    ttl: float | None = None
    update_period: float | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    language: str | None = None
    generator: str | None = None
    """What made it, by name or address."""

    @property
    def dates(self) -> tuple[datetime, ...]:
        """The dates of all entries shown that have one, in document order."""
        return tuple(moment for moment in self.moments if moment is not None)


@dataclass(frozen=True, slots=True)
class News:
    """The `news:news` block of a row (Google's news sitemap schema). Absent fields are None or empty."""

    title: str | None = None
    publication_date: datetime | None = None
    publication_date_text: str | None = None
    name: str | None = None
    language: str | None = None
    access: str | None = None
    genres: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    stock_tickers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An `image:image` block."""

    url: str | None
    title: str | None = None
    caption: str | None = None
    geo_location: str | None = None
    license: str | None = None


@dataclass(frozen=True, slots=True)
class Video:
    """A `video:video` block. `fields` holds every element of it by local name, texts as published."""

    title: str | None = None
    description: str | None = None
    thumbnail_url: str | None = None
    content_url: str | None = None
    player_url: str | None = None
    publication_date: datetime | None = None
    duration: int | None = None
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alternate:
    """An `xhtml:link rel=alternate` of a row: another language or medium of the same page. Never the same page."""

    url: str
    hreflang: str | None = None
    media: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One `url` of a urlset, one `sitemap` of an index, one line of a text sitemap, one item of a feed.

    `url` is as published, unescaped once, made absolute against the document. `lastmod` keeps what was understood of
    `lastmod_text`; `lastmod_zone` is False where the text gave no zone; `lastmod_problem` is why it is invalid.
    `child` is True for a row that names a further sitemap.
    """

    url: str
    lastmod: datetime | None = None
    lastmod_precision: Precision | None = None
    lastmod_text: str | None = None
    lastmod_zone: bool = True
    lastmod_problem: str | None = None
    news: News | None = None
    images: tuple[Image, ...] = ()
    videos: tuple[Video, ...] = ()
    alternates: tuple[Alternate, ...] = ()
    title: str | None = None
    """The item's title where the sitemap is a feed."""
    child: bool = False


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap document as parsed (sitemaps.org 0.9 and relatives).

    `kind` tells the form, `is_news` whether any row carries a `news:news` block. `complete` is False where the bytes
    were cut, damaged or recovered: such a read may add, never remove.
    """

    kind: SitemapKind
    url: str
    rows: tuple[Row, ...]
    complete: bool
    is_news: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One CloudEvents 1.0 event. `id` is a ULID that sorts by time; `type` one of CONTRACT's, such as ``url.new``."""

    id: str
    type: str
    site: str
    subject: str
    time: datetime
    data: dict[str, Any]

    def envelope(self) -> dict[str, Any]:
        """The event as the JSON object that every sink receives (CloudEvents 1.0, section 3.1)."""
        return {
            "specversion": "1.0",
            "id": self.id,
            "type": self.type,
            "source": f"/sites/{self.site}",
            "subject": self.subject,
            "time": format_instant(self.time),
            "datacontenttype": "application/json",
            "data": self.data,
        }


def format_instant(instant: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as in CONTRACT's example: ``2026-12-01T09:00:03.120Z``."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
