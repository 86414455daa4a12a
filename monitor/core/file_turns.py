"""In which passes over a sitemap tree each of its files is asked (pure).

The same economy as for feeds: the density of reads goes with the square root of the rate of change. Here the price is
fixed: one read is worth as much as one change that waits for one pass. Asked in every k-th pass, a file of `rate`
changes a pass costs 1/k reads and `rate` * k of waiting; k = 1 / sqrt(rate) costs least (Cho and Garcia-Molina,
"Effective page refresh policies for web crawlers", TODS 2003, on why the rate itself would be the wrong measure).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

KNOWN_AFTER = 8.0
"""A file that was watched for fewer passes is asked in each: nothing is known of it."""

LONGEST = 86400.0
"""Seconds: each file is asked once a day, or in every fourth pass where passes are too rare for that ..."""

FOURTH, EIGHTH = 4.0, 8.0
"""... and in every eighth pass in any case: who asks for a look every ten minutes does not mean a day."""

_PRIOR = 0.5
"""Of a gamma distribution, shape and rate alike (Jeffreys): a file that never changed is no file that never will."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What the reads of a file showed: for how many passes it was watched and in how many reads it had changed, both
    halved by each change, so that the last few count. `turn` is the pass of the last read, None before the first."""

    passes: float = 0.0
    changes: float = 0.0
    turn: int | None = None


def after_read(watched: Watched, turn: int, *, changed: bool) -> Watched:
    """Count the read of pass `turn`. The first one shows no change: there was nothing to compare with.

    Where the file was not asked for longer than by its turns, since its index told it unchanged, that was the index's
    word: no more passes count than its turns are apart.
    """
    if watched.turn is None:
        return Watched(watched.passes, watched.changes, turn)
    passes = watched.passes + max(0, min(turn - watched.turn, _turns(watched, inf)))
    if not changed:
        return Watched(passes, watched.changes, turn)
    return Watched(passes / 2.0, (watched.changes + 1.0) / 2.0, turn)


def every_passes(watched: Watched, every: float) -> int:
    """In every how manieth pass the file is asked, passes being `every` seconds apart: a power of two, so that the
    turns of all files meet in one pass, which alone may judge what is listed nowhere any more."""
    return _turns(watched, max(FOURTH, min(EIGHTH, LONGEST / every)))


def _turns(watched: Watched, most: float) -> int:
    if watched.passes < KNOWN_AFTER:
        return 1
    rate = (watched.changes + _PRIOR) / (watched.passes + _PRIOR)
    best = min(1.0 / sqrt(rate), most)
    turns = 1
    while turns * 2 <= best:
        turns *= 2
    return turns
