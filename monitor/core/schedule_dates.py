"""Which arrivals a poll tells of, and when they were: by the entries' own dates where these are sane.

Told apart: dates that fall between the last poll and this one (sane); a constant error of the clock or the time zone
(every poll contradicts its dates by the same amount); dates in the future or long past (a calendar, an import); no
dates. What cannot be dated is spread over the time between the polls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

SLACK = 120.0
"""Seconds by which clocks may differ before a date counts as wrong."""
SKEW_LEAST, ZONE_STEP = 900.0, 900.0
"""Entries that show minutes after their date are late, not of a wrong clock; zones differ by quarter hours."""
SKEW_POLLS = 3
SKEW_LIMIT = 86400.0
LOOKBACK = 365 * 86400.0
FIRST_LIMIT = 300
SPREAD_LIMIT = 40
BULK_SHARE = 0.5
BULK_LEAST = 5

Skew = tuple[float, float, int]


class Arrival(NamedTuple):
    """Entries that came at `at` (POSIX seconds, between the polls), by their own `date` where it is known."""

    at: float
    entries: float
    date: float | None


def skew_of(skew: Skew) -> float:
    """Seconds to add to a date to get the instant the entry showed: 0 unless several polls agree on an error."""
    low, high, polls = skew
    if polls < SKEW_POLLS:
        return 0.0
    step = math.ceil(low / ZONE_STEP) * ZONE_STEP
    return step if step <= high else (low + high) / 2.0


def learn_skew(skew: Skew, newest: float, since: float, until: float) -> Skew:
    """Bounds on a constant error, from the newest date of a poll that had news between `since` and `until`."""
    low, high = since - newest, until - newest
    if low - SKEW_LEAST <= 0.0 <= high + SLACK:
        return (0.0, 0.0, 0) if skew[2] <= 1 else (skew[0], skew[1], skew[2] - 2)
    if min(abs(low), abs(high)) > SKEW_LIMIT:
        return skew
    both_low, both_high = max(low, skew[0]), min(high, skew[1])
    if skew[2] and both_low - SLACK <= both_high:
        return min(both_low, both_high), max(both_low, both_high), min(skew[2] + 1, 20)
    return low, high, 1


def first_arrivals(dates: Sequence[float], at: float) -> list[Arrival]:
    """Sorted arrivals of a first document: the sane dates, without a few far older than the rest (pinned entries)."""
    sane = sorted(date for date in dates if at - LOOKBACK < date <= at + SLACK)[-FIRST_LIMIT:]
    for _ in range(len(sane) // 8):
        if sane[1] - sane[0] > 3.0 * (at - sane[1]):
            del sane[0]
    return [Arrival(min(date, at), 1.0, date) for date in sane]


def arrivals(
    dates: Sequence[float], new: int, size: int, *, mark: float, since: float, until: float, skew: Skew
) -> tuple[list[Arrival], float | None]:
    """Arrivals between two polls, sorted, and the newest date as published.

    `dates` as published, `new` how many entries were unknown, `mark` the newest date counted before. Dated entries
    that are newer than `mark` are taken at their date; of the rest, a bulk (an import: many at once, of old date)
    counts as one, the others are spread evenly between the polls.
    """
    if new <= 0:
        return [], None
    shift = skew_of(skew)
    ahead = until + SLACK - shift
    fresh = sorted((date for date in dates if mark < date <= ahead), reverse=True)[:new]
    newest = fresh[0] if fresh else None
    found = [Arrival(min(max(date + shift, since), until), 1.0, date + shift) for date in fresh]
    rest = new - len(fresh)
    if rest > 0:
        old = sum(date <= min(mark, since - SLACK) for date in dates)
        if rest >= BULK_LEAST and rest >= BULK_SHARE * size and old >= rest and len(dates) >= rest:
            rest = 1
        points = min(rest, SPREAD_LIMIT)
        step = (until - since) / points
        found.extend(Arrival(since + step * (index + 0.5), rest / points, None) for index in range(points))
    found.sort(key=lambda arrival: arrival.at)
    return found, newest
