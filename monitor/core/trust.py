"""Whether a sitemap's lastmod is worth believing (pure).

Bing's survey (2023) found 18 % of lastmods wrong, the worst being the time of generation in every row; Google uses
lastmod only while it is consistently verifiable. Here is the part that the listing itself shows: rows that all move
together, values that are the time of the read, values that go backwards or into the future. Pages confirm or deny the
rest (`page_checks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from monitor.core.dates import parse_date
from monitor.model import Row

Verdict = Literal["unknown", "trusted", "untrusted"]

BULK_SHARE = 0.5
"""More than this share of the rows moving in one read is a rebuild, not so many edits ..."""
BULK_FLOOR = 5
"""... if it is at least so many rows."""
STRIKES = 2
"""Reads with such signs, in a row, until the file's lastmods are untrusted; clean reads with movement to mend it."""
REDEEM = 5


@dataclass(frozen=True, slots=True)
class ReadEvidence:
    """What one read says of a file's lastmods. `memory` is the small JSON object to keep until the next."""

    verdict: Verdict
    verdict_changed: bool
    reasons: dict[str, Any]
    memory: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Movement:
    """How the lastmods of a file moved between two reads.

    `rows`: pages listed; `known`: those listed before, with a lastmod; `moved`: those of them whose lastmod differs;
    `one_instant`: rows that share the commonest lastmod (counted only where enough moved for it to matter).
    """

    rows: int
    known: int
    moved: int
    one_instant: int


def judge_read(movement: Movement, memory: Mapping[str, Any]) -> ReadEvidence:
    """Judge one read.

    A bulk move (over half of the known rows at once) or one instant for nearly all rows, another at each read, is a
    strike; two in a row make the file untrusted, five clean reads in which something moved trusted again.
    """
    moved = movement.moved
    bulk = moved >= BULK_FLOOR and moved > BULK_SHARE * movement.known
    stamped = movement.rows >= BULK_FLOOR <= moved and movement.one_instant >= 0.9 * movement.rows
    strike = bulk or stamped
    strikes = int(memory.get("strikes", 0)) + 1 if strike else (0 if moved else int(memory.get("strikes", 0)))
    clean = 0 if strike else int(memory.get("clean", 0)) + (1 if moved else 0)
    denied, confirmed = int(memory.get("denied", 0)), int(memory.get("confirmed", 0))
    before: Verdict = memory.get("verdict", "unknown")
    verdict = before
    if strikes >= STRIKES or (denied >= 3 and denied > confirmed):
        verdict = "untrusted"
    elif (before == "untrusted" and clean >= REDEEM and confirmed >= denied) or (
        before == "unknown" and confirmed >= 3 and confirmed >= 4 * denied
    ):
        verdict = "trusted"
    reasons = {
        "rows": movement.rows,
        "moved": moved,
        "one_instant": movement.one_instant,
        "strikes": strikes,
        "confirmed": confirmed,
        "denied": denied,
    }
    if strike and verdict != "untrusted":
        # Not yet a habit, but this read's movements say nothing.
        return ReadEvidence("untrusted", False, reasons, {**memory, "strikes": strikes, "clean": clean})
    # The first trusted verdict is the ordinary case and no news; losing trust and regaining it is.
    news = verdict != before and not (before == "unknown" and verdict == "trusted")
    kept = {**memory, "strikes": strikes, "clean": clean, "verdict": verdict}
    if verdict != before:
        kept |= {"confirmed": 0, "denied": 0} if verdict == "trusted" and before == "untrusted" else {}
    return ReadEvidence(verdict, news, reasons, kept)


def plausible(
    before: str | None, row: Row, read_at: float | None, now: float
) -> Literal["plausible", "odd", "not-newer"]:
    """Whether a row's new lastmod could be an honest report of a change since the last read.

    ``not-newer``: the same instant in another form, an invalid one, or one that went backwards. ``plausible``: it
    lies between the last read and now (a day of slack for day precision and caches, an hour otherwise). ``odd``:
    newer than before but not in that span; only the page itself can tell.
    """
    if row.lastmod is None or before is None or row.lastmod_problem == "future":
        return "not-newer"
    former = parse_date(before).instant
    moment = row.lastmod.timestamp()
    if former is None or moment <= former.timestamp():
        return "not-newer"
    slack = 86400.0 if row.lastmod_precision in ("day", "month", "year") or not row.lastmod_zone else 3600.0
    since = (read_at if read_at is not None else now) - slack
    return "plausible" if since <= moment <= now + slack else "odd"


@dataclass(frozen=True, slots=True)
class Spread:
    """How the lastmods of a listing lie: `dated` of `rows` have one, `invalid` of these are no date or lie in the
    future, `top` share the commonest text, `fresh` are of the last 24 hours."""

    rows: int
    dated: int
    invalid: int
    top: int
    fresh: int


def score(memory: Mapping[str, Any], spread: Spread) -> float | None:
    """How far a file's lastmods are worth believing, 0 to 1; None where it has none.

    The share of sampled moves that the pages confirmed (Laplace's rule: one half while none was asked), times the share
    of valid dates. A file that is untrusted, or on its way there by a strike, has half of that at most for each.
    """
    if not spread.dated:
        return None
    confirmed, denied = int(memory.get("confirmed", 0)), int(memory.get("denied", 0))
    found = (confirmed + 1) / (confirmed + denied + 2) * (1 - spread.invalid / spread.dated)
    halvings = int(memory.get("strikes", 0) > 0) + (memory.get("verdict") == "untrusted")
    return round(found / (1 << halvings), 3)
