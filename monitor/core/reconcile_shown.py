"""What a feed shows: the entries that were read, and those left out because they are what they were (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from monitor.core.identity import page_id
from monitor.core.reconcile import KnownEntry, at
from monitor.core.url import page_key
from monitor.model import Entry, Feed


class UnsureError(Exception):
    """An entry that was left out cannot be judged without its text: the document must be read as a whole."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry with the page it belongs to. `observed` is the link as published."""

    entry: Entry
    key: str
    page_id: int
    observed: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry of the document, read or not. `date` is when it was published, else updated; `link` its page's.

    `passed_by` says of one that was left out that `include` and `exclude` pass it by.
    """

    entry_id: str
    date: float | None
    link: str
    page_id: int | None
    passed_by: bool = False


def all_shown(
    feed: Feed,
    placed: Sequence[Placed],
    entries: Mapping[str, KnownEntry],
    passed_by: frozenset[int],
    shared: Iterable[str],
) -> list[Shown]:
    """Every entry that the document shows, in its order; `passed_by` are marks of those the filter passed by before.

    Raises UnsureError where an entry was left out of which nothing is known, whose page one that was read shares, or
    whose link is one of the `shared`: which page is whose is then decided by all entries of the document.
    """
    together = {key.partition("#")[0] for key in shared}
    read = {item.entry.id: item for item in placed}
    # Keys as `place_entries` weighs them: an entry that was read may share its link with one that was not.
    theirs = {key for item in placed for key in (item.key, *_keys(item))} if len(read) < len(feed.ids) else set()
    shown = []
    for number, entry_id in enumerate(feed.ids):
        if (item := read.get(entry_id)) is not None:
            entry = item.entry
            link = entry.original_url or entry.url or feed.url
            shown.append(Shown(entry_id, at(entry.published or entry.updated), link, item.page_id))
            continue
        known, date = entries.get(entry_id), at(feed.moments[number])
        if page_id(entry_id) in passed_by:
            shown.append(Shown(entry_id, date, known.page_key if known else feed.url, None, passed_by=True))
        elif known is not None and known.listed and not _contested(known.page_key, theirs, together):
            shown.append(Shown(entry_id, date, known.page_key, known.page_id))
        else:
            raise UnsureError(entry_id)
    return shown


def _contested(key: str, theirs: set[str], together: set[str]) -> bool:
    return key in theirs or key.partition("#")[0] in together


def _keys(item: Placed) -> list[str]:
    link = item.entry.original_url or item.entry.url
    return [page_key(link), page_key(link, keep_fragment=True)] if link else []
