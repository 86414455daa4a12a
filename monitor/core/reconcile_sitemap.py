"""A sitemap document, and a whole tree of them, against what is known (pure).

`diff_rows` finds the rows that are new, changed, back or gone; only those need their pages looked up.
`reconcile_listing` turns them into intents. Nothing is missing by one document's word: rows that a complete read
lists no longer are `dropped`, and `absences.judge_absences` decides once the whole tree was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Any

from monitor.core.dates import parse_date
from monitor.core.identity import page_id
from monitor.core.reconcile import (
    PARTIALS_FOR_BASELINE,
    SAME_EDIT,
    Changes,
    Check,
    DocumentMemory,
    Draft,
    KnownPage,
    KnownRow,
    Rules,
    at,
    found_in,
    is_news,
    returned,
    same_headline,
    when,
)
from monitor.core.trust import ReadEvidence, judge_read, plausible
from monitor.core.url import host_of, is_site_host, page_key
from monitor.model import Row, Sitemap

LATE = 86400.0
SHRINK = 0.7
"""A complete read below this share of the median of the last five is suspicious and needs a further one (DESIGN)."""
SHRINK_FLOOR = 5
"""... if it lacks at least so many rows: a file of three that becomes one of two is no sign of damage."""
SURGE = 1000
SURGE_FACTOR = 5


@dataclass(slots=True)
class RowDiff:
    """What a read of one document brought, by page id. `rows` has one row a page, the first that named it."""

    rows: dict[int, tuple[str, Row]] = field(default_factory=dict)
    new: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    off_host: list[str] = field(default_factory=list)
    off_hosts: int = 0
    filtered: int = 0

    def touched(self) -> list[int]:
        """The pages that must be looked up to decide."""
        return [*self.new, *self.changed, *self.back]


def is_suspect(rows: int, document: DocumentMemory) -> bool:
    """Whether a whole read is suspiciously short against the last ones, and not yet confirmed by a further one.

    A read as short as the last one that was believed is confirmed by it, while the median is still that of before.
    """
    if len(document.counts) < 1:
        return False
    usual = median(document.counts)
    if rows >= usual * SHRINK or usual - rows < SHRINK_FLOOR:
        return False
    alike = [n for n in (document.suspect, document.counts[-1]) if n is not None]
    return all(abs(rows - n) > max(SHRINK_FLOOR, 0.1 * n) for n in alike)


def diff_rows(sitemap: Sitemap, known: Mapping[int, KnownRow], rules: Rules) -> RowDiff:
    """Compare a document's rows with the sightings known of it.

    Texts are compared, so that a reformatted instant is looked at once and found to be none. Rows on hosts that are
    not the site's are counted apart.
    """
    diff = RowDiff()
    origins: dict[str, bool] = {}  # rows are many, hosts few
    for row in sitemap.rows:
        if row.child:
            continue
        origin = row.url[: row.url.find("/", 8)]
        ours = origins.get(origin)
        if ours is None:
            ours = origins[origin] = is_site_host(host_of(row.url), rules.hosts)
        if not ours:
            diff.off_hosts += 1
            if len(diff.off_host) < 100:
                diff.off_host.append(row.url)
            continue
        if not rules.wanted(row.url):
            diff.filtered += 1
            continue
        key = page_key(row.url)
        number = page_id(key)
        if number in diff.rows:
            continue
        diff.rows[number] = (key, row)
        before = known.get(number)
        if before is None:
            diff.new.append(number)
        elif before.last_at is not None:
            diff.back.append(number)
        elif before.lastmod != row.lastmod_text or (title_of(row) is not None and before.title != title_of(row)):
            diff.changed.append(number)
    diff.gone = [number for number, row in known.items() if row.last_at is None and number not in diff.rows]
    return diff


def title_of(row: Row) -> str | None:
    """The headline a row carries, if any: of its news block, or of the item where the sitemap is a feed."""
    return row.news.title if row.news is not None else row.title


def published_of(row: Row) -> datetime | None:
    """When the page was published, as far as the row says so."""
    return row.news.publication_date if row.news is not None else None


@dataclass(slots=True)
class _Read:
    kind: str
    document: DocumentMemory
    known: Mapping[int, KnownRow]
    pages: Mapping[int, KnownPage]
    rules: Rules
    now: float
    quiet: bool
    evidence: ReadEvidence
    changes: Changes

    def page(self, number: int) -> KnownPage | None:
        return self.changes.pages.get(number) or self.pages.get(number)


def reconcile_listing(
    sitemap: Sitemap,
    diff: RowDiff,
    *,
    kind: str,
    document: DocumentMemory,
    known: Mapping[int, KnownRow],
    pages: Mapping[int, KnownPage],
    rules: Rules,
    whole: bool,
    most_new: int,
    now: datetime,
) -> Changes:
    """Decide what one successful read of a sitemap document means.

    `whole` is False for a partial or suspiciously short read: it adds, and drops nothing. `pages` are the known pages
    among `diff.touched()`; `most_new` is the most new pages that one read of the source ever brought.
    """
    quiet = document.baseline_at is None and document.quiet and not rules.alert_baseline
    evidence = judge_read(
        [
            (row.lastmod_text, at(row.lastmod), known[number].lastmod if number in known else None)
            for number, (_key, row) in diff.rows.items()
        ],
        document.state.get("trust") or {},
        now.timestamp(),
    )
    read = _Read(kind, document, known, pages, rules, now.timestamp(), quiet, evidence, Changes())
    changes = read.changes
    changes.state["trust"] = evidence.memory
    changes.state["off_host"] = {"count": diff.off_hosts, "sample": diff.off_host[:20]}
    for number in diff.new:
        _new_row(read, number, *diff.rows[number])
    for number in diff.back:
        _back_row(read, number, *diff.rows[number])
    for number in diff.changed:
        _changed_row(read, number, *diff.rows[number])
    if whole:
        changes.dropped = diff.gone
    # A document that its source never had before its baseline is news itself: nothing of it is quiet.
    complete = sitemap.complete and whole
    changes.baseline = document.baseline_at is None and (complete or document.partials + 1 >= PARTIALS_FOR_BASELINE)
    if evidence.verdict_changed and not quiet:
        changes.events.append(
            Draft(
                "source.untrusted" if evidence.verdict == "untrusted" else "source.trusted",
                document.url,
                {
                    "site": rules.site,
                    "url": document.url,
                    "found_in": found_in(kind, document.url),
                    "evidence": evidence.reasons,
                },
            )
        )
    _sum_up_surge(read, most_new)
    return changes


def _row_data(row: Row) -> dict[str, Any] | None:
    if row.news is None and row.title is None:
        return None
    return {
        "id": None,
        "title": title_of(row),
        "published": when(at(published_of(row))),
        "updated": None,
        "authors": [],
        "tags": list(row.news.keywords) if row.news else [],
        "summary": None,
    }


def _sight(read: _Read, number: int, row: Row, page_url: str, **more: Any) -> None:
    before = read.known.get(number)
    title = title_of(row)
    if title is None and before is not None:
        title = before.title  # the news block goes after two days; the headline stays what it was
    read.changes.rows.append(
        KnownRow(
            page_id=number,
            url=None if row.url == page_url else row.url,
            first_at=before.first_at if before else read.now,
            lastmod=row.lastmod_text,
            title=title,
            title_at=more.get("title_at", before.title_at if before else None),
        )
    )


def _new_row(read: _Read, number: int, key: str, row: Row) -> None:
    changes, now = read.changes, read.now
    page = read.page(number)
    published, lastmod = at(published_of(row)), at(row.lastmod)
    announce = not read.quiet and is_news(page, published, read.rules, now)
    if page is None:
        page = KnownPage(number, key, row.url, title_of(row), now, announced=announce)
        changes.pages[number] = page
    elif announce:
        page = replace(page, announced=True)
        changes.pages[number] = page
    _sight(read, number, row, page.url)
    if announce:
        changes.new += 1
        known_since = published if published is not None else lastmod
        exact = published is not None or row.lastmod_precision in ("minute", "second")
        changes.events.append(
            Draft(
                "url.new",
                page.url,
                {
                    "site": read.rules.site,
                    "url": page.url,
                    "observed_url": row.url,
                    "found_in": found_in(read.kind, read.document.url),
                    "entry": _row_data(row),
                    "lastmod": row.lastmod_text,
                    "delay_seconds": round(max(0.0, now - known_since), 3) if known_since and exact else None,
                    "late": known_since is not None and now - known_since > LATE + (0 if exact else LATE),
                },
                page.id,
            )
        )
    _return(read, page, row)


def _back_row(read: _Read, number: int, key: str, row: Row) -> None:
    page = read.page(number)
    if page is None:
        page = KnownPage(number, key, row.url, title_of(row), read.now, announced=True)
        read.changes.pages[number] = page
    _sight(read, number, row, page.url)
    _return(read, page, row)


def _return(read: _Read, page: KnownPage, row: Row) -> None:
    if page.missing_at is None or page.missing_reason == "expected":
        return
    read.changes.events.append(returned(page, read.kind, read.document.url, row.url, read.rules, read.now))
    read.changes.pages[page.id] = replace(page, missing_at=None, missing_reason=None)


def _changed_row(read: _Read, number: int, key: str, row: Row) -> None:
    before = read.known[number]
    page = read.page(number) or KnownPage(number, key, row.url, title_of(row), read.now, announced=True)
    title = title_of(row)
    retitled = title is not None and before.title is not None and before.title != title
    _sight(read, number, row, page.url, title_at=read.now if retitled else before.title_at)
    if read.quiet:
        return
    if (
        retitled
        and not same_headline(before.title, title)
        and not (page.changed_at is not None and same_headline(page.title, title))
    ):
        read.changes.pages[number] = replace(page, title=title, changed_at=read.now, changed="entry")
        read.changes.events.append(
            Draft(
                "url.changed",
                page.url,
                {
                    "site": read.rules.site,
                    "url": page.url,
                    "observed_url": row.url,
                    "found_in": found_in(read.kind, read.document.url),
                    "entry": _row_data(row),
                    "changed": ["title"],
                    "before": {"title": before.title},
                    "after": {"title": title},
                    "evidence": "entry",
                },
            )
        )
        return
    if before.lastmod != row.lastmod_text:
        _moved_lastmod(read, page, row, before)


def _moved_lastmod(read: _Read, page: KnownPage, row: Row, before: KnownRow) -> None:
    """A lastmod that advanced is a reason to ask the page, if the file's lastmods can be believed at all."""
    if read.evidence.verdict == "untrusted" or (read.rules.verify == "never" and read.evidence.verdict != "trusted"):
        return
    verdict = plausible(before.lastmod, row, read.document.read_at, read.now)
    if verdict == "not-newer" or row.lastmod is None:
        return
    # A lastmod of day precision says only that it was at the end of that day at the latest.
    end = row.lastmod.timestamp() + (86400.0 if row.lastmod_precision == "day" else 0.0)
    if page.changed_at is not None and min(end, row.lastmod.timestamp()) <= page.changed_at + SAME_EDIT:
        return
    read.changes.checks.append(
        Check(
            page.id,
            "changed",
            {
                "url": row.url,
                "found_in": found_in(read.kind, read.document.url),
                "fields": ["lastmod"],
                "before": {"lastmod": before.lastmod},
                "after": {"lastmod": row.lastmod_text},
                "before_at": at(_instant(before.lastmod)),
                "modified_at": row.lastmod.timestamp(),
                "weak": verdict != "plausible",
            },
        )
    )


def _instant(text: str | None) -> datetime | None:

    return parse_date(text).instant if text else None


def _sum_up_surge(read: _Read, most_new: int) -> None:
    """Far more new pages than ever, and over a thousand: one event instead of a flood (CONTRACT `source.surge`)."""
    changes = read.changes
    news = [draft for draft in changes.events if draft.type == "url.new"]
    if len(news) <= SURGE or len(news) <= SURGE_FACTOR * most_new:
        return
    changes.events = [draft for draft in changes.events if draft.type != "url.new"]
    changes.events.append(
        Draft(
            "source.surge",
            read.document.url,
            {
                "site": read.rules.site,
                "url": read.document.url,
                "found_in": found_in(read.kind, read.document.url),
                "count": len(news),
                "sample": [draft.data["url"] for draft in news[:20]],
                "usual": most_new,
            },
        )
    )
