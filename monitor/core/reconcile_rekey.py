"""Entries that came back under another id: renumbered, moved to another host, or renamed with their headline (pure)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from monitor.core.reconcile import KnownEntry, at
from monitor.core.reconcile_shown import Placed

ALIKE = 0.5
"""Share of the words of two headlines that are common to both, from which on one is an edited other."""

T = TypeVar("T")
_NUMBER = re.compile(r"(?<!\d)(?!(?:19|20)\d{6}(?!\d))\d{5,}(?!\d)")  # of an article; a day is none
_WORD = re.compile(r"\w+")


def successors(
    placed: Sequence[Placed], entries: Mapping[str, KnownEntry], shown: Collection[str], *, complete: bool
) -> dict[str, KnownEntry]:
    """For ids that were not known: the known entry that each of them is, which is not shown under its own id any more.

    One of the same page was renumbered (liferea 1195). Of a document that is `complete`, so that what it does not show
    is gone from it: one of the same headline and date moved with its address (all links from http to https and another
    host, fornever.me 3); one of the same date whose headline is alike, or whose address has the same number, was
    renamed (miniflux 2358). The last two hold only where one entry alone fits, on either side.
    """
    fresh = [item for item in placed if item.entry.id not in entries]
    gone = [known for known in entries.values() if known.entry_id not in shown]
    found: dict[str, KnownEntry] = {}
    by_page = {known.page_id: known for known in gone}
    for item in fresh:
        if (known := by_page.pop(item.page_id, None)) is not None:
            found[item.entry.id] = known
    if not complete or not gone:
        return found
    for new_mark, old_mark, fits in (
        (lambda i: (i.entry.title, at(i.entry.published)), lambda k: (k.title, k.published_at), _same),
        (lambda i: at(i.entry.published), lambda k: k.published_at, _renamed),
    ):
        taken = {known.entry_id for known in found.values()}
        olds = _single((k for k in gone if k.listed and k.entry_id not in taken and k.published_at), old_mark)
        news = _single((i for i in fresh if i.entry.id not in found and i.entry.published), new_mark)
        for mark, item in news.items():
            known = olds.get(mark)
            if known is not None and fits(item, known):
                found[item.entry.id] = known
    return found


def _single(items: Iterable[T], mark: Callable[[T], Hashable]) -> dict[Hashable, T]:
    """Those of which no other has the same mark."""
    groups: defaultdict[Hashable, list[T]] = defaultdict(list)
    for item in items:
        groups[mark(item)].append(item)
    return {key: group[0] for key, group in groups.items() if len(group) == 1}


def _same(item: Placed, known: KnownEntry) -> bool:
    return bool(item.entry.title) and item.entry.title == known.title


def _renamed(item: Placed, known: KnownEntry) -> bool:
    if set(_NUMBER.findall(item.key)) & set(_NUMBER.findall(known.page_key)):
        return True
    one, other = (set(_WORD.findall((text or "").casefold())) for text in (item.entry.title, known.title))
    return bool(one and other) and len(one & other) / len(one | other) >= ALIKE
