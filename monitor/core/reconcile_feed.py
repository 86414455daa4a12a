"""A feed document against what is known of it: new entries, edits, withdrawals, gaps (pure).

Identity is (feed, guid or id), then link, then hash, as `core.feed` decides it; entries meet the rows of sitemaps in
the page of their link. What makes what is told in CONTRACT "Events" and DESIGN "Rules of the field: Feeds".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from monitor.core.identity import page_id
from monitor.core.reconcile import (
    PARTIALS_FOR_BASELINE,
    Changes,
    Check,
    DocumentMemory,
    Draft,
    KnownEntry,
    KnownPage,
    KnownRow,
    Rules,
    at,
    entry_data,
    found_in,
    same_headline,
    when,
)
from monitor.core.reconcile_entry import Read, back, entry_row, new_entry, unless
from monitor.core.reconcile_gap import Filled, find_gap, tell_gap
from monitor.core.reconcile_rekey import successors
from monitor.core.reconcile_shown import Placed, all_shown
from monitor.core.reconcile_window import PassedBy, judge_window
from monitor.core.url import page_key
from monitor.model import Entry, Feed

MAX_FLIPS = 2
"""A text that goes back to what it was before is told of once; then it is flapping (rssguard 451), and silent."""


def place_entries(
    feed: Feed, state: Mapping[str, Any], wanted: Callable[[str], bool] = lambda _url: True
) -> tuple[list[Placed], list[str]]:
    """Find each entry's page; returns them in document order, and the links known to be shared by several entries, of
    those that are `wanted`.

    A link that several entries of one document share (a changelog's anchors, a live blog, a home page) is no identity
    for a page: such entries are pages of their own, by fragment where that tells them apart, else by entry id. Once
    seen to be shared, a link stays so (`state["shared"]`).
    """
    links = [entry.original_url or entry.url for entry in feed.entries]
    keys = [page_key(link) if link else "" for link in links]
    owners: dict[str, set[str]] = {}
    for key, entry in zip(keys, feed.entries, strict=True):
        owners.setdefault(key, set()).add(entry.id)
    shared = dict.fromkeys(state.get("shared", ()))
    shared.update((key, None) for key, ids in owners.items() if key and len(ids) > 1)
    fragments = Counter(page_key(link, keep_fragment=True) for link in links if link)
    placed = []
    for key, link, entry in zip(keys, links, feed.entries, strict=True):
        own = key
        if not link:
            own = f"{feed.url}#{entry.id}"
        elif key in shared:
            anchored = page_key(link, keep_fragment=True)
            own = anchored if anchored != key and fragments[anchored] == 1 else f"{key}#{entry.id}"
        placed.append(Placed(entry, own, page_id(own), entry.url or link or own))
    return placed, [key for key in shared if wanted(key)][-1000:]


def reconcile_feed(
    feed: Feed,
    placed: Sequence[Placed],
    *,
    document: DocumentMemory,
    entries: Mapping[str, KnownEntry],
    pages: Mapping[int, KnownPage],
    rules: Rules,
    now: datetime,
    filled: Filled | None = None,
) -> Changes:
    """Decide what one successful read of a feed means.

    `placed` are the entries of the feed that were read, others of its `ids` are what they were at the last read;
    `entries` are all known entries of the document by id, `pages` the known pages among `placed`. `filled` is what
    other documents have of a gap that was found (`changes.gap`) in a reading without it. Returns the changes to commit;
    `changes.new` counts entries unknown before, for the schedule. Raises UnsureError where only a reading of the whole
    document would do.
    """
    passed_by = PassedBy.of(document)
    everything = all_shown(feed, placed, entries, passed_by.marks, document.state.get("shared", ()))
    quiet = document.baseline_at is None and not rules.alert_baseline
    read = Read(feed, document, entries, pages, rules, now.timestamp(), quiet, Changes())
    changes = read.changes
    shown = {item.entry_id for item in everything}
    unwatched = {item.entry.id for item in placed if not rules.wanted(item.observed)}
    rekeyed = successors(placed, entries, shown, complete=feed.complete)
    pages_shown = {item.page_id for item in everything}
    for item in placed:
        known = entries.get(item.entry.id)
        if known is None and (known := rekeyed.get(item.entry.id)) is not None:
            changes.forgotten.append(known.entry_id)
        if known is not None and known.page_id not in pages_shown and known.listed:
            changes.dropped.append(known.page_id)  # the entry's link is another now, and no other entry has the former
        if item.entry.id in unwatched:
            if known is not None and known.page_id != item.page_id:
                changes.forgotten.append(known.entry_id)  # it moved to where nobody watches
            continue
        if known is None:
            new_entry(read, item, let_in=passed_by.has(item.entry.id))
        else:
            _known_entry(read, item, known)
    forgotten = set(changes.forgotten)
    if document.baseline_at is not None and not rekeyed:
        changes.gap = find_gap(feed, shown, entries, passed_by)
        if changes.gap is not None:
            tell_gap(read, changes.gap, filled)
    ignored = [item for item in everything if item.passed_by or item.entry_id in unwatched]
    others = [item for item in everything if not item.passed_by and item.entry_id not in unwatched]
    changes.state["passed_by"] = passed_by.after(ignored, others, feed.complete).stored()
    left = [known for key, known in entries.items() if key not in shown and key not in forgotten]
    judge_window(
        feed, placed, everything, left, document=document, entries=entries, rules=rules, now=now, changes=changes
    )
    _finish(read)
    return changes


def _known_entry(read: Read, item: Placed, known: KnownEntry) -> None:
    changes, entry, now = read.changes, item.entry, read.now
    page = read.page(item.page_id)
    moved = known.page_id != item.page_id
    if page is None:
        # The entry's link changed, not the entry: its page is known under the former link.
        page = KnownPage(item.page_id, item.key, item.observed, entry.title, now, announced=not read.quiet)
        changes.pages[page.id] = page
    elif not page.stored:
        page = changes.pages[page.id] = replace(page, title=entry.title, stored=True)
    if moved or not known.listed:
        back(read, page, item)
    fields, flips = _edited(entry, known)
    weak = not fields and _advanced(at(entry.updated), known.updated_at)
    if fields and flips <= MAX_FLIPS and not _told(page, entry, fields, read.document.read_at):
        _changed(read, item, known, fields)
    elif "title" in fields and entry.title and entry.title != page.title:
        changes.pages[page.id] = replace(page, title=entry.title)  # told without its headline, or flapping
    elif weak and not read.quiet and read.rules.verify != "never":
        changes.checks.append(
            Check(
                page.id,
                "changed",
                {
                    "url": item.observed,
                    "found_in": found_in("feed", read.document.url),
                    "fields": ["updated"],
                    "before": {"updated": when(known.updated_at)},
                    "after": {"updated": when(at(entry.updated))},
                    "modified_at": at(entry.updated),
                    "weak": True,
                },
            )
        )
    same = (known.listed, known.absent, known.content_hash, known.title, known.updated_at, known.published_at) == (
        True,
        0,
        entry.content_hash,
        entry.title,
        at(entry.updated),
        at(entry.published),
    )
    if not same or moved or known.entry_id != entry.id:
        previous = known.previous_hash if known.content_hash == entry.content_hash else known.content_hash
        changes.entries.append(entry_row(item, now, first_at=known.first_at, previous=previous, flips=flips))
    if moved or not known.listed:
        changes.rows.append(KnownRow(item.page_id, unless(item.observed, page.url), now, None, entry.title))


def _edited(entry: Entry, known: KnownEntry) -> tuple[list[str], int]:
    """Fields of the entry that really differ, and how often it went back to its former text."""
    if entry.content_hash == known.content_hash and (entry.title or "") == (known.title or ""):
        return [], known.flips
    fields = ["title"] if (entry.title or "") != (known.title or "") else ["content"]
    if _advanced(at(entry.updated), known.updated_at):
        fields.append("updated")
    return fields, known.flips + 1 if entry.content_hash == known.previous_hash else known.flips


def _told(page: KnownPage, entry: Entry, fields: Sequence[str], read_at: float | None) -> bool:
    """Whether another source has already reported this very edit.

    It has if it reported a change of the page since this feed was last read (`read_at`), the headline that is new here,
    or a change later than the time the entry gives for its own.
    """
    if page.changed_at is None:
        return False
    if read_at is not None and page.changed_at > read_at:
        return True
    if "title" in fields and same_headline(page.title, entry.title):
        return True
    updated = at(entry.updated)
    return "updated" in fields and updated is not None and updated <= page.changed_at


def _changed(read: Read, item: Placed, known: KnownEntry, fields: list[str]) -> None:
    entry, now = item.entry, read.now
    page = read.page(item.page_id)
    assert page is not None
    before: dict[str, Any] = {"title": known.title, "updated": when(known.updated_at)}
    after: dict[str, Any] = {"title": entry.title, "updated": when(at(entry.updated))}
    read.changes.pages[page.id] = replace(page, title=entry.title or page.title, changed_at=now, changed="entry")
    if read.quiet:
        return
    read.changes.events.append(
        Draft(
            "url.changed",
            page.url,
            {
                "site": read.rules.site,
                "url": page.url,
                "observed_url": item.observed,
                "found_in": found_in("feed", read.document.url),
                "entry": entry_data(entry),
                "changed": fields,
                "before": {name: before.get(name) for name in fields if name in before},
                "after": {name: after.get(name) for name in fields if name in after},
                "evidence": "entry",
            },
        )
    )


def _finish(read: Read) -> None:
    changes, document = read.changes, read.document
    if document.baseline_at is None:
        changes.baseline = read.feed.complete or document.partials + 1 >= PARTIALS_FOR_BASELINE


def _advanced(now_at: float | None, before_at: float | None) -> bool:
    return now_at is not None and before_at is not None and now_at > before_at
