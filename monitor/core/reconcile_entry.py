"""One entry that a feed had not: its page, its sighting, whether it is news (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from monitor.core.reconcile import (
    Changes,
    DocumentMemory,
    Draft,
    KnownEntry,
    KnownPage,
    KnownRow,
    Rules,
    at,
    entry_data,
    found_in,
    is_news,
    returned,
)
from monitor.core.reconcile_shown import Placed
from monitor.model import Entry, Feed

LATE = 86400.0
"""An entry published more than this many seconds before it appeared is `late`."""


@dataclass(slots=True)
class Read:
    """One read of a feed under way: what every step of it needs."""

    feed: Feed
    document: DocumentMemory
    entries: Mapping[str, KnownEntry]
    pages: Mapping[int, KnownPage]
    rules: Rules
    now: float
    quiet: bool
    changes: Changes

    def page(self, number: int) -> KnownPage | None:
        return self.changes.pages.get(number) or self.pages.get(number)


def new_entry(read: Read, item: Placed, *, let_in: bool) -> None:
    """An entry that the window shows and that was not known.

    `let_in`: the filter passed it by until now. What a change of the configuration lets in is no news.
    """
    read.changes.new += 1
    page = add_page(read, item, "feed", read.document.url, let_in=let_in)
    read.changes.entries.append(entry_row(item, read.now, first_at=read.now))
    read.changes.rows.append(KnownRow(item.page_id, unless(item.observed, page.url), read.now, None, item.entry.title))


def add_page(read: Read, item: Placed, kind: str, url: str, *, let_in: bool = False) -> KnownPage:
    """The page of an entry that the source of that kind at `url` brought, with the `url.new` event if it is news."""
    changes, entry, now = read.changes, item.entry, read.now
    page = read.page(item.page_id)
    published = at(entry.published) or at(entry.updated)
    announce = not read.quiet and not let_in and is_news(page, at(entry.published), read.rules, now)
    if page is None:
        page = KnownPage(item.page_id, item.key, item.observed, entry.title, now, announced=announce)
        changes.pages[page.id] = page
    elif announce:
        page = replace(page, announced=True, title=page.title or entry.title, stored=True)
        changes.pages[page.id] = page
    elif not page.stored:  # so far a line of a sitemap
        page = changes.pages[page.id] = replace(page, title=entry.title, stored=True)
    if announce:
        changes.events.append(
            Draft(
                "url.new",
                page.url,
                {
                    "site": read.rules.site,
                    "url": page.url,
                    "observed_url": item.observed,
                    "found_in": found_in(kind, url),
                    "entry": entry_data(entry),
                    "delay_seconds": None if published is None else round(max(0.0, now - published), 3),
                    "late": published is not None and now - published > LATE,
                },
                page.id,
            )
        )
    back(read, page, item)
    date_page(read, page, entry)
    return page


def date_page(read: Read, page: KnownPage, entry: Entry) -> None:
    """Note when the page was published, if no other source has said so."""
    known = read.changes.pages.get(page.id, page)
    if known.published_at is None and known.stored and entry.published is not None:
        read.changes.pages[page.id] = replace(known, published_at=at(entry.published))


def back(read: Read, page: KnownPage, item: Placed) -> None:
    """A missing page that is listed again has returned."""
    if page.missing_at is None or page.missing_reason == "expected":
        return
    read.changes.events.append(returned(page, "feed", read.document.url, item.observed, read.rules, read.now))
    read.changes.pages[page.id] = replace(page, missing_at=None, missing_reason=None)


def entry_row(item: Placed, now: float, *, first_at: float, previous: str | None = None, flips: int = 0) -> KnownEntry:
    """The entry as it is stored once it was read."""
    entry = item.entry
    return KnownEntry(
        entry_id=entry.id,
        page_id=item.page_id,
        page_key=item.key,
        title=entry.title,
        content_hash=entry.content_hash,
        published_at=at(entry.published),
        updated_at=at(entry.updated),
        first_at=first_at,
        previous_hash=previous,
        flips=flips,
    )


def unless(observed: str, url: str) -> str | None:
    """A sighting's own URL; None where it is the page's."""
    return None if observed == url else observed
