"""What the reconciler works with: known state in, intents out.

`reconcile_feed`, `reconcile_listing` and `page_checks` are functions of these values. A `Changes` says what to write
and which events to send; the store applies it in one transaction. Instants known from the store are seconds since the
epoch (`*_at`), those of documents are aware datetimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from monitor.core.url import host_of, is_site_host, matches
from monitor.model import Entry, SourceKind

SKEW = 300.0
"""Seconds by which a publisher's clock and ours may differ."""

SAME_EDIT = 60.0
"""A modification dated up to so many seconds after an edit was told is that edit: clocks differ."""

PARTIALS_FOR_BASELINE = 3
"""A document that is never whole would never have a baseline and so never alert: its third partial read counts."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which pages are the site's: its hosts, and the patterns of `include` and `exclude`."""

    hosts: frozenset[str]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def wanted(self, url: str) -> bool:
        """Whether the page at `url` is watched: by `include` (all, where there is none) and not by `exclude`."""
        if self.include and not any(matches(pattern, url) for pattern in self.include):
            return False
        return not any(matches(pattern, url) for pattern in self.exclude)

    def covers(self, url: str) -> bool:
        """Whether the page at `url` is the site's and watched."""
        return is_site_host(host_of(url), self.hosts) and self.wanted(url)

    def dump(self) -> list[list[str]]:
        """The scope as JSON holds it."""
        return [sorted(self.hosts), list(self.include), list(self.exclude)]

    @staticmethod
    def load(dumped: list[list[str]]) -> Scope:
        """What `dump` made."""
        hosts, include, exclude = dumped
        return Scope(frozenset(hosts), tuple(include), tuple(exclude))


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a site's configuration decides about its pages.

    `scope` says which pages are the site's, `since_at` is when the first source of the site had its baseline (None:
    none had).
    """

    site: str
    scope: Scope
    confirm_missing: int = 2
    alert_baseline: bool = False
    verify: str = "auto"
    sample: int = 20
    since_at: float | None = None

    def wanted(self, url: str) -> bool:
        """Whether a published URL passes `include` and `exclude`."""
        return self.scope.wanted(url)


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page as it is known. `announced` is False where a baseline absorbed it without an alert.

    `stored` False: it has no row of its own, a listing of the site has it.
    """

    id: int
    key: str
    url: str
    title: str | None
    first_at: float
    announced: bool
    changed_at: float | None = None
    changed: str | None = None
    missing_at: float | None = None
    missing_reason: str | None = None
    stored: bool = True
    published_at: float | None = None


@dataclass(frozen=True, slots=True)
class KnownEntry:
    """An entry of a feed as the store has it. `absent` counts reads that lacked it while older entries stayed."""

    entry_id: str
    page_id: int
    page_key: str
    title: str | None
    content_hash: str
    published_at: float | None
    updated_at: float | None
    first_at: float
    listed: bool = True
    absent: int = 0
    previous_hash: str | None = None
    flips: int = 0


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A sighting: what a sitemap document said of a page. `last_at` is None while it is listed."""

    page_id: int
    url: str | None
    first_at: float
    lastmod: str | None = None
    title: str | None = None
    last_at: float | None = None
    absent: int = 0
    title_at: float | None = None


@dataclass(frozen=True, slots=True)
class DocumentMemory:
    """What is remembered of one document between reads.

    `read_at` is the read before this one. `quiet`: it was listed before its source had a baseline, so its own first
    read is a baseline, too. `counts` are the rows of its last complete reads, `suspect` those of a suspiciously short
    one that awaits confirmation. `state` is a small JSON object of the reconciler's.
    """

    url: str
    kind: str
    read_at: float | None = None
    baseline_at: float | None = None
    quiet: bool = True
    partials: int = 0
    pending: int = 0
    counts: tuple[int, ...] = ()
    suspect: int | None = None
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it has an id and a time. `page_id` is set where it tells of a new page."""

    type: str
    subject: str
    data: dict[str, Any]
    page_id: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A page that must be asked before a verdict. `why` is ``changed`` or ``missing``; `detail` is JSON."""

    page_id: int
    why: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gap:
    """A poll of a feed that overlaps with none before it. `newest_known` and `oldest_now` bound the time of which
    nothing is known (seconds since the epoch); `lost` entries would have come in it at the rate of those now shown."""

    newest_known: float
    oldest_now: float
    known_before: int
    lost: int


@dataclass(slots=True)
class Changes:
    """Intents: what one read changes. Applied whole or not at all.

    `pages`, `rows` and `entries` replace or add by id; `dropped` are pages that a feed lists no more; `forgotten` are
    entry ids that live on under another id.
    """

    pages: dict[int, KnownPage] = field(default_factory=dict)
    rows: list[KnownRow] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    entries: list[KnownEntry] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    events: list[Draft] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    baseline: bool = False
    new: int = 0
    pending: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    gap: Gap | None = None


def at(instant: datetime | None) -> float | None:
    """Seconds since the epoch of an aware datetime; None for None."""
    return None if instant is None else instant.timestamp()


def when(seconds: float | None) -> str | None:
    """The RFC 3339 text of seconds since the epoch, to the second, as events carry it; None for None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def found_in(kind: SourceKind | str, url: str) -> dict[str, str]:
    """The `found_in` member of an event."""
    return {"kind": kind, "url": url}


def entry_data(entry: Entry) -> dict[str, Any]:
    """The `entry` member of an event."""
    return {
        "id": entry.id,
        "title": entry.title,
        "published": when(at(entry.published)),
        "updated": when(at(entry.updated)),
        "authors": list(entry.authors),
        "tags": list(entry.tags),
        "summary": entry.summary,
    }


def is_news(page: KnownPage | None, published: float | None, rules: Rules, now: float) -> bool:
    """Whether a listing after its source's baseline makes `url.new`.

    A page nobody listed before does. So does one that the baseline of a further source absorbed although it was
    published after the site's first baseline: without that, an article published while the first reads were under way
    would be lost in silence.
    """
    if page is None:
        return True
    if page.announced or published is None or rules.since_at is None:
        return False
    return page.first_at > rules.since_at and rules.since_at < published <= now + SKEW


def same_headline(one: str | None, other: str | None) -> bool:
    """Whether two titles are one headline: alike, or one the other with the site's name before or behind it."""
    if not one or not other:
        return False
    a, b = (" ".join(text.casefold().split()) for text in (one, other))
    short, long = sorted((a, b), key=len)
    return a == b or (len(short) >= 12 and (long.startswith(short) or long.endswith(short)))


def returned(page: KnownPage, kind: str, url: str, observed: str, rules: Rules, now: float) -> Draft:
    """The `url.returned` event of a missing page that is listed or alive again."""
    missing_at = page.missing_at if page.missing_at is not None else now
    return Draft(
        "url.returned",
        page.url,
        {
            "site": rules.site,
            "url": page.url,
            "observed_url": observed,
            "found_in": found_in(kind, url),
            "reason": page.missing_reason,
            "missing_seconds": round(now - missing_at, 3),
        },
    )
