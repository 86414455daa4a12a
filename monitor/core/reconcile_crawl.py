"""What one crawl, or one imported list, means against what is known (pure).

A crawl that found a page nobody listed before makes it news. It makes nothing missing: what it links to no more may
only have left the front pages. `listing.compare_listing` finds what came and went.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from monitor.core.listing import Listed, ListingRead, Pages, compare_listing
from monitor.core.reconcile import (
    Changes,
    DocumentMemory,
    Draft,
    KnownPage,
    KnownRow,
    Rules,
    Scope,
    at,
    found_in,
    is_news,
    returned,
    when,
)
from monitor.core.reconcile_sitemap import LATE, SURGE, SURGE_FACTOR, surge_event
from monitor.core.sitemap_lines import PlainLines
from monitor.core.trust import Movement
from monitor.model import Row, Sitemap


def compare_crawl(
    rows: Sequence[Row] | str,
    *,
    previous: bytes | None,
    memory: DocumentMemory,
    scope: Scope,
    quiet: bool,
    watched: frozenset[int],
) -> ListingRead:
    """What a crawl lists against what it listed. `rows` may be lines, ``address TAB LF`` each, where they are many."""
    pages = Pages(scope)
    kept = pages.plain(PlainLines(rows, None, own_keys=False)) if isinstance(rows, str) else pages.rows(rows)
    read = compare_listing(
        Sitemap("urlset", memory.url, (), complete=True),
        previous=previous,
        memory=replace(memory, counts=(), suspect=None),  # what is handed in is meant, however short it is
        scope=scope,
        quiet=quiet,
        watched=watched,
        kept=kept,
    )
    return replace(read, movement=Movement(read.listed, 0, 0, 0))


def reconcile_crawl(
    read: ListingRead,
    *,
    document: DocumentMemory,
    known: Mapping[int, KnownRow],
    pages: Mapping[int, KnownPage],
    rules: Rules,
    most_new: int,
    now: datetime,
) -> Changes:
    """Decide what one crawl means. The values are those of `reconcile_sitemap.reconcile_listing`.

    `document.state["whole"]` False: the crawl before was cut short by its bounds. What this one found besides is news
    only if its date says so; the rest may be as old as the site.
    """
    changes, moment = Changes(), now.timestamp()
    quiet = document.baseline_at is None and not rules.alert_baseline
    whole = bool(document.state.get("whole", True))
    for one in read.new:
        assert one.row is not None
        published = at(one.row.lastmod)
        page = pages.get(one.id)
        dated = published is not None and document.baseline_at is not None and published > document.baseline_at
        back = one.id in known
        announce = not quiet and not back and (whole or dated) and is_news(page, published, rules, moment)
        if announce:
            page = page or KnownPage(one.id, one.key, one.row.url, one.row.title, moment, announced=True)
            date = page.published_at if page.published_at is not None else published
            page = changes.pages[one.id] = replace(page, announced=True, stored=True, published_at=date)
            changes.new += 1
            changes.events.append(_new(page, one.row, document.url, rules, moment))
        if page is None or not page.stored:
            continue
        first_at = known[one.id].first_at if back else moment
        changes.rows.append(KnownRow(page.id, None if one.row.url == page.url else one.row.url, first_at))
        if page.missing_at is not None and page.missing_reason in ("dead", "redirected"):
            changes.events.append(returned(page, "crawl", document.url, one.row.url, rules, moment))
            changes.pages[page.id] = replace(page, missing_at=None, missing_reason=None)
    for one in read.gone:
        _gone(changes, one, pages, known, document, moment)
    changes.baseline = document.baseline_at is None
    _sum_up(changes, pages, document.url, rules.site, most_new)
    return changes


def _new(page: KnownPage, row: Row, url: str, rules: Rules, now: float) -> Draft:
    published = at(row.lastmod)
    entry = {"id": None, "title": row.title, "published": when(published), "updated": None}
    return Draft(
        "url.new",
        page.url,
        {
            "site": rules.site,
            "url": page.url,
            "observed_url": row.url,
            "found_in": found_in("crawl", url),
            "entry": entry | {"authors": [], "tags": [], "summary": None} if row.title else None,
            "delay_seconds": None if published is None else round(max(0.0, now - published), 3),
            "late": published is not None and now - published > LATE,
        },
        page.id,
    )


def _gone(
    changes: Changes,
    one: Listed,
    pages: Mapping[int, KnownPage],
    known: Mapping[int, KnownRow],
    document: DocumentMemory,
    now: float,
) -> None:
    page = pages.get(one.id)
    if page is None or not page.stored:
        return
    row = known.get(one.id) or KnownRow(one.id, None, page.first_at)
    seen_at = document.read_at if document.read_at is not None else now
    changes.rows.append(replace(row, last_at=seen_at, absent=0))


def _sum_up(changes: Changes, pages: Mapping[int, KnownPage], url: str, site: str, most_new: int) -> None:
    """Far more new pages than ever, and over a thousand: one event (CONTRACT `source.surge`); they stay lines."""
    news = [draft for draft in changes.events if draft.type == "url.new"]
    if len(news) <= max(SURGE, SURGE_FACTOR * most_new):
        return
    told = {draft.page_id for draft in news if draft.page_id is not None}
    silent = {number for number in told if number not in pages or not pages[number].stored}
    changes.events = [draft for draft in changes.events if draft.type != "url.new"]
    changes.rows = [row for row in changes.rows if row.page_id not in silent]
    for number in silent:
        del changes.pages[number]
    changes.events.append(surge_event(site, "crawl", url, len(news), [draft.subject for draft in news], most_new))
