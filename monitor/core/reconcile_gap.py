"""A feed's gap: entries that came and went between two polls, and what other documents still have of them (pure)."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

from monitor.core.identity import page_id
from monitor.core.reconcile import Draft, Gap, KnownEntry, KnownRow, at, found_in, when
from monitor.core.reconcile_entry import Read, add_page, entry_row, unless
from monitor.core.reconcile_shown import Placed
from monitor.core.reconcile_window import PassedBy
from monitor.core.url import page_key
from monitor.model import Entry, Feed, Sitemap


@dataclass(frozen=True, slots=True)
class Filled:
    """What was found for a gap: `entries` in the feed's archives or further pages, `rows` of news sitemaps, each with
    the address of the sitemap. `closed`: an archive reached back to an entry that was known, so that nothing is lost.
    """

    entries: tuple[Placed, ...] = ()
    rows: tuple[tuple[str, Placed], ...] = ()
    closed: bool = False


def find_gap(feed: Feed, shown: Collection[str], entries: Mapping[str, KnownEntry], passed_by: PassedBy) -> Gap | None:
    """A poll of which no entry was known, the oldest newer than all that were: some may have been lost between.

    The entries that `include` and `exclude` pass by are known, too: the window is the feed's, not the filter's. What a
    partial read does not show may well overlap.
    """
    listed = [known for known in entries.values() if known.listed]
    dates = [d.timestamp() for d in feed.dates]
    newest = max([k.published_at or k.updated_at or 0.0 for k in listed] + [passed_by.newest])
    known = bool(listed or passed_by.marks)
    if not feed.complete or not known or not shown or not dates or not newest:
        return None
    if any(key in entries or passed_by.has(key) for key in shown):
        return None
    oldest = min(dates)
    if oldest <= newest:
        return None
    # At the rate of the entries now shown, this many would have come in the time nothing is known of.
    span = max(dates) - oldest
    steps = round((oldest - newest) / span * (len(dates) - 1)) if span > 0 else 0
    lost = max(0, steps - 1)
    return Gap(newest, oldest, len(listed) + len(passed_by.marks), lost)


def within_gap(feed: Feed, gap: Gap, known: Container[str], window: Container[str]) -> tuple[set[str], bool]:
    """Of an archive or a further page of a feed: the ids of its entries that the gap swallowed, and whether it reaches
    back to what was known, by an id or by a date.

    `window` are the ids that the feed shows now. Archives may be in any order (RFC 5005, 4); an entry without a date
    counts while nothing known stands before it.
    """
    found: set[str] = set()
    closed = False
    for entry_id, moment in zip(feed.ids, feed.moments, strict=True):
        date = at(moment)
        if entry_id in known or (date is not None and date <= gap.newest_known):
            closed = True
        elif entry_id not in window and (date is not None or not closed):
            found.add(entry_id)
    return found, closed


def rows_within(sitemap: Sitemap, gap: Gap) -> list[Placed]:
    """The rows of a news sitemap that were published within the gap."""
    found = []
    for row in sitemap.rows:
        news = row.news
        date = (news.publication_date if news else None) or row.lastmod
        moment = at(date)
        if moment is None or not gap.newest_known < moment < gap.oldest_now:
            continue
        key = page_key(row.url)
        entry = Entry(row.url, "link", row.url, news.title if news else None, date, None)
        found.append(Placed(entry, key, page_id(key), row.url))
    return found


def next_page(url: str, feed: Feed, number: int) -> str | None:
    """Where the entries before those of `feed`, the page `number` (from 1) of the feed at `url`, may be read.

    The archive or the next page that it names (RFC 5005, 4 and 3), else WordPress' own way; None where there is none.
    """
    if feed.next_archive is not None:
        return feed.next_archive
    if "wordpress" not in (feed.generator or "").lower():
        return None
    parts = urlsplit(url)
    query = [pair for pair in parts.query.split("&") if pair and not pair.startswith("paged=")]
    return urlunsplit(parts._replace(query="&".join([*query, f"paged={number + 1}"]), fragment=""))


def tell_gap(read: Read, gap: Gap, filled: Filled | None) -> None:
    """Add the recovered entries, and the one event that says how many they are and how many stay lost."""
    filled = filled or Filled()
    recovered: set[int] = set()
    shown = {item.page_id for item in filled.entries}
    window = set(read.feed.ids)
    for item in filled.entries:
        if item.entry.id in read.entries or item.entry.id in window or not read.rules.wanted(item.observed):
            continue
        page = add_page(read, item, "feed", read.document.url)
        row = KnownRow(item.page_id, unless(item.observed, page.url), read.now, None, item.entry.title)
        # The window has left it behind: it is known, and not listed now.
        read.changes.rows.append(replace(row, last_at=read.now))
        read.changes.entries.append(replace(entry_row(item, read.now, first_at=read.now), listed=False))
        recovered.add(item.page_id)
    for url, item in filled.rows:
        if item.page_id not in shown and read.rules.scope.covers(item.observed):
            add_page(read, item, "news_sitemap", url)
            recovered.add(item.page_id)
    read.changes.events.append(
        Draft(
            "source.gap",
            read.document.url,
            {
                "site": read.rules.site,
                "url": read.document.url,
                "found_in": found_in("feed", read.document.url),
                "known_before": gap.known_before,
                "newest_known": when(gap.newest_known),
                "oldest_now": when(gap.oldest_now),
                "estimated_lost": 0 if filled.closed else max(0, gap.lost - len(recovered)),
                "recovered": len(recovered),
            },
        )
    )
