"""What one read of a sitemap document means, against what is known (pure).

`listing.read_listing` finds the rows that are new, changed or gone; only those come here. `reconcile_listing` turns
them into intents. Nothing is missing by one document's word: pages that a complete read lists no longer are dropped,
and `absences.judge_absences` decides once the whole tree was read.

A page has a row of its own only if it has a story: it was told, changed, asked about or dropped. The others are lines
of listings, and stay so (`KnownPage.stored`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from monitor.core.dates import parse_date
from monitor.core.listing import Listed, ListingRead, Wanted, title_of
from monitor.core.listing_pack import Line
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
from monitor.model import Row

LATE = 86400.0
SURGE = 1000
SURGE_FACTOR = 5


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

    def silent(self, one: Listed, url: str) -> KnownPage:
        """A page that is a line of this listing and nothing else."""
        first_at = self.document.baseline_at or self.document.read_at or self.now
        title = one.before.title if one.before else None
        return KnownPage(one.id, one.key, url, title, first_at, announced=False, stored=False)


def reconcile_listing(
    read: ListingRead,
    *,
    kind: str,
    document: DocumentMemory,
    known: Mapping[int, KnownRow],
    pages: Mapping[int, KnownPage],
    rules: Rules,
    most_new: int,
    told: int = 0,
    now: datetime,
) -> Changes:
    """Decide what one successful read of a sitemap document means.

    `most_new` is the most new pages that one poll of the source ever brought, `told` those that this one told already.

    `known` are the stored sightings by this document, `pages` the known pages, of those that the read is about: stored
    ones, and those that another listing of the site has.
    """
    quiet = document.baseline_at is None and document.quiet and not rules.alert_baseline
    evidence = judge_read(read.movement, document.state.get("trust") or {})
    work = _Read(kind, document, known, pages, rules, now.timestamp(), quiet, evidence, Changes())
    changes = work.changes
    changes.state["trust"] = evidence.memory
    changes.state["off_host"] = {"count": read.off_hosts, "sample": list(read.off_host)}
    for one in read.new:
        assert one.row is not None
        if one.id in known and known[one.id].last_at is not None:
            _back_row(work, one, one.row)
        else:
            _new_row(work, one, one.row)
    for one in read.changed:
        assert one.row is not None
        assert one.before is not None
        _changed_row(work, one, one.row, one.before)
    for one in read.gone:
        assert one.before is not None
        _gone_row(work, one, one.before)
    # A document that its source never had before its baseline is news itself: nothing of it is quiet.
    changes.baseline = document.baseline_at is None and (read.whole or document.partials + 1 >= PARTIALS_FOR_BASELINE)
    if evidence.verdict_changed and not quiet:
        changes.events.append(_verdict(work))
    _sum_up_new(work, most_new, told)
    _sum_up_changed(work, read)
    return changes


def _verdict(read: _Read) -> Draft:
    url, evidence = read.document.url, read.evidence
    data = {"site": read.rules.site, "url": url, "found_in": found_in(read.kind, url), "evidence": evidence.reasons}
    return Draft("source.untrusted" if evidence.verdict == "untrusted" else "source.trusted", url, data)


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


def _sight(read: _Read, one: Listed, row: Row, page: KnownPage, title_at: float | None = None) -> None:
    """Note that the document lists the page, if the page has a story."""
    if not page.stored:
        return
    before = read.known.get(one.id)
    title = title_of(row)
    if title is None and one.before is not None:
        title = one.before.title  # the news block goes after two days; the headline stays what it was
    read.changes.rows.append(
        KnownRow(
            page_id=one.id,
            url=None if row.url == page.url else row.url,
            first_at=before.first_at if before else read.now if one.before is None else page.first_at,
            lastmod=row.lastmod_text,
            title=title,
            title_at=title_at if title_at is not None else before.title_at if before else None,
        )
    )


def _new_row(read: _Read, one: Listed, row: Row) -> None:
    changes, now = read.changes, read.now
    page = read.page(one.id)
    published, lastmod = at(published_of(row)), at(row.lastmod)
    announce = not read.quiet and is_news(page, published, read.rules, now)
    if page is None and not announce:
        return
    if announce:
        page = page or KnownPage(one.id, one.key, row.url, title_of(row), now, announced=True)
        dated = page.published_at if page.published_at is not None else published
        page = changes.pages[one.id] = replace(page, announced=True, stored=True, published_at=dated)
    assert page is not None
    _sight(read, one, row, page)
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


def _back_row(read: _Read, one: Listed, row: Row) -> None:
    page = read.page(one.id)
    if page is None:  # its sighting outlived it: a page that was told once is not new again
        page = read.changes.pages[one.id] = KnownPage(one.id, one.key, row.url, title_of(row), read.now, announced=True)
    _sight(read, one, row, page)
    _return(read, page, row)


def _return(read: _Read, page: KnownPage, row: Row) -> None:
    if page.missing_at is None or page.missing_reason == "expected":
        return
    read.changes.events.append(returned(page, read.kind, read.document.url, row.url, read.rules, read.now))
    read.changes.pages[page.id] = replace(page, missing_at=None, missing_reason=None)


def _gone_row(read: _Read, one: Listed, before: Line) -> None:
    """The document lists the page no more. What leaves a news sitemap has aged out: there only a story has an end."""
    page = read.page(one.id)
    if page is None or not page.stored:
        if read.kind == "news_sitemap":
            return
        page = read.changes.pages[one.id] = replace(page or read.silent(one, before.url), stored=True)
    seen_at = read.document.read_at if read.document.read_at is not None else read.now
    known = read.known.get(one.id) or KnownRow(
        one.id, None if before.url == page.url else before.url, page.first_at, before.lastmod, before.title
    )
    read.changes.rows.append(replace(known, last_at=seen_at, absent=0))


def _changed_row(read: _Read, one: Listed, row: Row, before: Line) -> None:
    page = read.page(one.id) or read.silent(one, row.url)
    title = title_of(row)
    retitled = title is not None and before.title is not None and before.title != title
    _sight(read, one, row, page, read.now if retitled else None)
    if read.quiet:
        return
    if (
        retitled
        and not same_headline(before.title, title)
        and not (page.changed_at is not None and same_headline(page.title, title))
    ):
        read.changes.pages[one.id] = replace(page, title=title, changed_at=read.now, changed="entry", stored=True)
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


def _moved_lastmod(read: _Read, page: KnownPage, row: Row, before: Line) -> None:
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
    read.changes.pages[page.id] = replace(page, stored=True)
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


def _sum_up_new(read: _Read, most_new: int, told_before: int) -> None:
    """Far more new pages than ever, and over a thousand: one event instead of a flood (CONTRACT `source.surge`).

    The pages stay lines of the listing.
    """
    changes = read.changes
    news = [draft for draft in changes.events if draft.type == "url.new"]
    if not news or told_before + len(news) <= max(SURGE, SURGE_FACTOR * most_new):
        return
    told = {draft.page_id for draft in news if draft.page_id is not None and not _is_stored(read, draft.page_id)}
    changes.events = [draft for draft in changes.events if draft.type != "url.new"]
    changes.rows = [row for row in changes.rows if row.page_id not in told]
    for number in told:
        del changes.pages[number]
    changes.events.append(_surge(read, len(news), [draft.subject for draft in news], most_new))


def changes_wanted(document: DocumentMemory, rules: Rules) -> Wanted:
    """What `read_listing` is to hand out of the lastmods that moved in a document."""
    verdict = (document.state.get("trust") or {}).get("verdict")
    if verdict == "untrusted" or (rules.verify == "never" and verdict != "trusted"):
        return Wanted(lastmods=False)
    most = int(document.state.get("most_changed") or 0)
    return Wanted(most=max(SURGE, SURGE_FACTOR * most), sample=rules.sample)


def _sum_up_changed(read: _Read, listing: ListingRead) -> None:
    """The same for changes. Of lastmods that advanced a sample of the pages is asked (`changes_wanted`), so that the
    file's trust is still judged."""
    changes = read.changes
    most = int(read.document.state.get("most_changed") or 0)
    changes.state["most_changed"] = max(most, listing.changed_count)
    limit = max(SURGE, SURGE_FACTOR * most)
    told = [draft for draft in changes.events if draft.type == "url.changed"]
    if len(told) <= limit and (listing.changed_count <= limit or not changes.checks):
        return
    if len(told) > limit:
        changes.events = [draft for draft in changes.events if draft.type != "url.changed"]
    urls = [draft.subject for draft in told] + [check.detail["url"] for check in changes.checks]
    changes.events.append(_surge(read, listing.changed_count, urls, most))


def _is_stored(read: _Read, number: int) -> bool:
    page = read.pages.get(number)
    return page is not None and page.stored


def _surge(read: _Read, count: int, urls: list[str], usual: int) -> Draft:
    return surge_event(read.rules.site, read.kind, read.document.url, count, urls, usual)


def surge_event(site: str, kind: str, url: str, count: int, urls: list[str], usual: int) -> Draft:
    """The `source.surge` event of a document."""
    data = {"site": site, "url": url, "found_in": found_in(kind, url)}
    return Draft("source.surge", url, data | {"count": count, "sample": urls[:20], "usual": usual})
