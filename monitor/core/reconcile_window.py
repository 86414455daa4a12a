"""A feed's window: what left it by age, and what was withdrawn from within it (pure).

Only a feed that shows its entries in strict date order, and has for some reads, has a window at all: an edited or
searched feed (a front page, "most read") drops and takes back entries as it likes, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from monitor.core.identity import page_id
from monitor.core.reconcile import Changes, Check, DocumentMemory, KnownEntry, Rules, at, found_in, when
from monitor.core.reconcile_shown import Placed, Shown
from monitor.core.url import host_of
from monitor.model import Feed

MOST_PASSED_BY = 1000
"""Entries remembered of a window that `include` and `exclude` pass by."""

STEADY_READS = 3
"""Reads in strict date order before a feed's window is believed to be chronological."""


@dataclass(frozen=True, slots=True)
class PassedBy:
    """The entries of the last window that `include` and `exclude` pass by: they are known, though never stored.

    `marks` are hashes of their ids, `newest` the date of the newest, 0 where none has one.
    """

    marks: frozenset[int] = frozenset()
    newest: float = 0.0

    @classmethod
    def of(cls, document: DocumentMemory) -> PassedBy:
        """What is remembered of a document."""
        kept = document.state.get("passed_by") or {}
        return cls(frozenset(kept.get("marks", ())), float(kept.get("newest", 0.0)))

    def has(self, entry_id: str) -> bool:
        """Whether an entry was among them."""
        return page_id(entry_id) in self.marks

    def after(self, entries: Sequence[Shown], others: Sequence[Shown], complete: bool) -> PassedBy:
        """What to remember after a read that passed by `entries` and not `others`; a partial one does not show the
        whole window."""
        marks = [page_id(entry.entry_id) for entry in entries[:MOST_PASSED_BY]]
        newest = max((entry.date or 0.0 for entry in entries), default=0.0)
        if complete:
            return PassedBy(frozenset(marks), newest)
        room = MOST_PASSED_BY - len(marks)
        rest = self.marks - {page_id(entry.entry_id) for entry in others}
        return PassedBy(frozenset([*marks, *list(rest)[:room]]), max(newest, self.newest))

    def stored(self) -> dict[str, Any]:
        """As JSON, for the document's state."""
        return {"marks": sorted(self.marks), "newest": self.newest} if self.marks else {}


def judge_window(
    feed: Feed,
    placed: Sequence[Placed],
    shown: Sequence[Shown],
    left: Sequence[KnownEntry],
    *,
    document: DocumentMemory,
    entries: Mapping[str, KnownEntry],
    rules: Rules,
    now: datetime,
    changes: Changes,
) -> None:
    """Add to `changes` what it means that the entries in `left` were known and are not `shown`.

    A partial read says nothing of what it does not show: those entries stay as they were.
    """
    changes.state["steady"] = _steady_reads(placed, shown, entries, document)
    if not feed.complete:
        changes.pending = sum(1 for known in left if known.absent)
        return
    steady = changes.state["steady"] >= STEADY_READS
    floors = _floors(shown, entries)
    in_order = _in_order(shown)
    for known in left:
        if not known.listed and not known.absent:
            continue
        if known.listed:
            changes.dropped.append(known.page_id)
        date = known.published_at or known.updated_at
        floor = floors.get(host_of(known.page_key))
        if not in_order or floor is None or date is None or date <= floor:
            changes.entries.append(replace(known, listed=False, absent=0))  # it aged out
            continue
        absent = known.absent + 1
        confirmed = absent >= rules.confirm_missing
        changes.entries.append(replace(known, listed=False, absent=0 if confirmed else absent))
        if not confirmed:
            changes.pending += 1
        elif document.baseline_at is not None or rules.alert_baseline:
            changes.checks.append(withdrawal(known, document, steady, absent, now.timestamp()))


def _steady_reads(
    placed: Sequence[Placed], shown: Sequence[Shown], entries: Mapping[str, KnownEntry], document: DocumentMemory
) -> int:
    """How many reads in a row the feed has shown its newest entries, newest first, and taken none back."""
    passed_by = PassedBy.of(document)
    came_back = any(k.absent or not k.listed for item in shown if (k := entries.get(item.entry_id)))
    # An entry that appears below ones that were there before it was not published at the top.
    newest_known = max((k.published_at or 0.0 for k in entries.values()), default=0.0)
    inserted = document.baseline_at is not None and any(
        item.entry.id not in entries
        and (at(item.entry.published) or newest_known) < newest_known - 3600
        and not passed_by.has(item.entry.id)
        for item in placed
    )
    return 0 if came_back or inserted or not _in_order(shown) else int(document.state.get("steady", 0)) + 1


def _in_order(shown: Sequence[Shown]) -> bool:
    known = [item.date for item in shown if item.date is not None]
    return len(known) == len(shown) > 1 and all(a >= b for a, b in pairwise(known))


def _floors(shown: Sequence[Shown], entries: Mapping[str, KnownEntry]) -> dict[str, float]:
    """For each host, the date above which its window is whole: that of the second oldest entry (one may be pinned).

    Only entries that stayed count: a feed whose links all changed has withdrawn nothing. A feed merged of several shows
    a window of each, the newest articles of a site among years of its videos: there an entry leaves by age while older
    ones of another host stay.
    """
    dates: dict[str, list[float]] = {}
    for item in shown:
        if item.date is not None and item.entry_id in entries:
            dates.setdefault(host_of(item.link), []).append(item.date)
    return {host: sorted(found)[1] for host, found in dates.items() if len(found) > 2}


def withdrawal(known: KnownEntry, document: DocumentMemory, steady: bool, reads: int, now: float) -> Check:
    """The check of a page whose entry vanished from inside the window in `reads` reads.

    `steady` False: the feed has not proven that it never drops an entry that lives; then only a page that is dead
    itself counts as missing.
    """
    return Check(
        known.page_id,
        "missing",
        {
            "reason": "withdrawn",
            "found_in": found_in("feed", document.url),
            "missing_from": ["feed"],
            "last_seen": when(document.read_at or now),
            "reads": reads,
            "proof_needed": not steady,
        },
    )


def confirm_absences(
    pending: Sequence[KnownEntry], *, document: DocumentMemory, rules: Rules, now: datetime
) -> Changes:
    """Count a confirmed-unchanged read (304, or the same body) for the entries that were absent from the last one.

    `pending` are the entries with `absent` between 1 and `rules.confirm_missing` - 1 (CONTRACT: "a document confirmed
    unchanged counts as read").
    """
    changes = Changes(state=dict(document.state))
    steady = int(document.state.get("steady", 0)) >= STEADY_READS
    for known in pending:
        absent = known.absent + 1
        confirmed = absent >= rules.confirm_missing
        changes.entries.append(replace(known, absent=0 if confirmed else absent))
        if confirmed:
            changes.checks.append(withdrawal(known, document, steady, absent, now.timestamp()))
        else:
            changes.pending += 1
    return changes
