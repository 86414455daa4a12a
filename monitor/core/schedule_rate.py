"""The rate of arrivals, now and in the coming days.

The rate is a course of the week times a level, plus bursts (a Hawkes process with fixed decay times):

    rate(t) = profile(t) * (w4 x4 + w3 x3 + w2 x2) + w1 n1 / T1 + w0 n0 / T0

Each x is a gamma-Poisson mean of the arrivals of the last month, days or hours over the exposure in profile time,
each n a decayed count of the last hours or minutes. The weights w say how much of what comes each memory explains;
they are learnt by attributing every arrival to the terms in proportion (one step of EM, Dempster et al. 1977) over
what each term had announced. A steady publisher ends with all weight on the month, one that writes in bursts with
much on the minutes, a change of regime is followed by the days within hours.

All rates here are arrivals an hour; several entries within a minute are one arrival.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from monitor.core.schedule_state import SCALES

PRIOR_RATE = 4.0 / 24.0
PRIOR_COUNT = 0.4
"""Weight of the prior rate, in arrivals: feeds of news sites publish about four entries a day."""
PRIOR_WEIGHTS = (0.03, 0.07, 0.10, 0.25, 0.55)
PRIOR_WEIGHT_COUNT = 12.0
SHRINK = 0.3
"""Prior exposure of the middle scales, as a share of their span, at the long rate."""
FORGET = 1.0 - 1.0 / 300.0
SLOW = 2
"""Scales from this one on run in profile time."""
PROFILE_SPAN = 45 * 86400.0
CONCENTRATIONS = (0.0, 0.5, 1.0, 1.5, 2.2, 3.0)
CONCENTRATION_PRIOR = (0.30, 0.20, 0.20, 0.15, 0.10, 0.05)
COSINES = tuple(math.cos(2 * math.pi * hour / 24) for hour in range(24))
SINES = tuple(math.sin(2 * math.pi * hour / 24) for hour in range(24))
WEEKEND = (5, 6)
HOUR_SHRINK, DAY_SHRINK, WEEKEND_SHRINK, WEEKEND_PRIOR = 2.0, 20.0, 6.0, 0.8
PROFILE_FLOOR = 0.02


class Level:
    """The working copy of a state's counts while one poll is folded in: the only mutable thing here."""

    __slots__ = ("counts", "days", "expected", "explained", "exposures", "hours", "quiet")

    def __init__(
        self,
        *,
        counts: Sequence[float],
        exposures: Sequence[float],
        explained: Sequence[float],
        expected: Sequence[float],
        hours: Sequence[float],
        days: Sequence[float],
        quiet: int,
    ) -> None:
        self.counts, self.exposures = list(counts), list(exposures)
        self.explained, self.expected = list(explained), list(expected)
        self.hours, self.days, self.quiet = hours, days, quiet

    def levels(self) -> tuple[float, float, float]:
        """The gamma-Poisson means of the hours, the days and the month, in arrivals an hour of profile time."""
        counts, exposures = self.counts, self.exposures
        month = month_rate(counts, exposures)
        some_days = SHRINK * SCALES[3]
        some_hours = SHRINK * SCALES[2]
        return (
            (counts[2] + some_hours * month) / (exposures[2] + some_hours),
            (counts[3] + some_days * month) / (exposures[3] + some_days),
            month,
        )

    def weights(self) -> list[float]:
        """How much of what comes each scale explains, from the minutes to the month."""
        return [
            (got + PRIOR_WEIGHT_COUNT * prior) / (said + PRIOR_WEIGHT_COUNT)
            for got, said, prior in zip(self.explained, self.expected, PRIOR_WEIGHTS, strict=True)
        ]

    def terms(self) -> tuple[float, float, float, float, float]:
        """The five terms of the rate, each with its weight; the last three still without the profile."""
        weights, counts = self.weights(), self.counts
        hours, days, month = self.levels()
        return (
            weights[0] * counts[0] / SCALES[0],
            weights[1] * counts[1] / SCALES[1],
            weights[2] * hours,
            weights[3] * days,
            weights[4] * month,
        )

    def advance(self, since: float, until: float) -> None:
        """Lets time pass without an arrival, from `since` to `until` (POSIX seconds)."""
        span = (until - since) / 3600.0
        if span <= 0:
            return
        passed = profile_hours(self.hours, self.days, self.quiet, since, until)
        hours, days, month = self.levels()
        counts, exposures, expected = self.counts, self.exposures, self.expected
        expected[2] += hours * passed
        expected[3] += days * passed
        expected[4] += month * passed
        for index, scale in enumerate(SCALES):
            kept = math.exp(-span / scale)
            if index < SLOW:
                expected[index] += counts[index] * (1.0 - kept)
            else:
                exposures[index] = exposures[index] * kept + passed * (1.0 - kept) * scale / span
            counts[index] *= kept

    def arrive(self, at: float) -> float:
        """Counts one arrival at `at`. Returns the share of it that is no burst, which is what a profile is made of."""
        terms = self.terms()
        course = profile_at(self.hours, self.days, self.quiet, at)
        burst = terms[0] + terms[1]
        total = burst + (terms[2] + terms[3] + terms[4]) * course
        explained, expected, counts = self.explained, self.expected, self.counts
        for index in range(5):
            share = terms[index] * (course if index >= SLOW else 1.0) / total if total > 0 else 0.2
            explained[index] = explained[index] * FORGET + share
            expected[index] *= FORGET
            counts[index] += 1.0
        return 1.0 - burst / total if total > 0 else 1.0


def month_rate(counts: Sequence[float], exposures: Sequence[float]) -> float:
    """The gamma-Poisson mean of the last month, in arrivals an hour."""
    return (counts[4] + PRIOR_COUNT) / (exposures[4] + PRIOR_COUNT / PRIOR_RATE)


def evenness(hours: Sequence[float], days: Sequence[float]) -> float:
    """Mean of the square root of the profile: 1 for a flat one, less the more of the week is quiet."""
    return sum(math.sqrt(value) for value in hours) / 24.0 * sum(math.sqrt(value) for value in days) / 7.0


def profile_at(hours: Sequence[float], days: Sequence[float], quiet: int, at: float) -> float:
    """The profile at an instant: 1.0 is the mean of the week."""
    local = at / 3600.0 - quiet + 72.0  # the epoch was a Thursday; weeks are counted from Monday
    return hours[int(local % 24.0) % 24] * days[int(local % 168.0 / 24.0) % 7]


def profile_hours(hours: Sequence[float], days: Sequence[float], quiet: int, since: float, until: float) -> float:
    """The profile summed over a span, in hours: as many as went by, more where they were busy ones."""
    return _cumulated(hours, days, until / 3600.0 - quiet + 72.0) - _cumulated(hours, days, since / 3600.0 - quiet + 72)


def _cumulated(hours: Sequence[float], days: Sequence[float], local: float) -> float:
    weeks, rest = divmod(local, 168.0)
    day = int(rest / 24.0) % 7
    of_day = rest - 24.0 * day
    hour = int(of_day)
    if hour >= 24:
        hour = 23
    return weeks * 168.0 + 24.0 * sum(days[:day]) + days[day] * (sum(hours[:hour]) + hours[hour] * (of_day - hour))


def see(seen_hours: list[float], seen_days: list[float], quiet: int, since: float, until: float) -> None:
    """Adds the span to the hours and days that have been watched, in hours."""
    if until - since >= 14 * 86400.0:
        share = (until - since) / 3600.0
        for hour in range(24):
            seen_hours[hour] += share / 24.0
        for day in range(7):
            seen_days[day] += share / 7.0
        return
    at = since
    while at < until:
        upto = min(until, (at // 3600.0 + 1.0) * 3600.0)
        span = (upto - at) / 3600.0
        seen_hours[int(at / 3600.0 % 24.0) % 24] += span
        seen_days[day_of(quiet, at)] += span
        at = upto


def day_of(quiet: int, at: float) -> int:
    """The publisher's weekday, Monday 0, the day beginning at the quiet hour."""
    return int((at / 3600.0 - quiet + 72.0) % 168.0 / 24.0) % 7


def learn_profile(
    hours: Sequence[float], seen_hours: Sequence[float], days: Sequence[float], seen_days: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...], int]:
    """The course of the day and of the week from decayed counts by UTC hour and by weekday.

    The day is at first a von Mises curve exp(k cos(hour - peak)), k and peak by Bayes over a grid of k: that finds the
    time zone from a dozen arrivals. Hour by hour the counts then correct it. The weekend comes next, single days last.

    Returns (24 factors from the quiet hour on, 7 factors from Monday on, the quiet hour), each with mean 1.
    """
    total = sum(hours)
    watched = sum(seen_hours)
    if total <= 0 or watched <= 0:
        return (1.0,) * 24, (1.0,) * 7, 0
    expected = [total * seen / watched for seen in seen_hours]
    across = sum((n - m) * c for n, m, c in zip(hours, expected, COSINES, strict=True))
    along = sum((n - m) * s for n, m, s in zip(hours, expected, SINES, strict=True))
    curve = _von_mises(math.hypot(across, along), math.atan2(along, across), total)
    shape = []
    for hour in range(24):
        before, after = hour - 1, (hour + 1) % 24
        got = 0.5 * hours[hour] + 0.25 * (hours[before] + hours[after])
        due = 0.5 * expected[hour] + 0.25 * (expected[before] + expected[after])
        shape.append(max(PROFILE_FLOOR, curve[hour] * (got + HOUR_SHRINK) / (due * curve[hour] + HOUR_SHRINK)))
    mean = sum(shape) / 24.0
    shape = [round(value / mean, 3) for value in shape]
    smooth = [shape[hour - 2] + shape[hour - 1] + shape[hour] for hour in range(24)]
    quiet = (smooth.index(min(smooth)) - 1) % 24
    local = tuple(shape[quiet:] + shape[:quiet])
    return local, _week(days, seen_days), quiet if quiet <= 12 else quiet - 24


def _von_mises(length: float, peak: float, total: float) -> list[float]:
    logs = [
        math.log(prior) + _log_bessel(k * length) - total * _log_bessel(k)
        for k, prior in zip(CONCENTRATIONS, CONCENTRATION_PRIOR, strict=True)
    ]
    top = max(logs)
    odds = [math.exp(value - top) for value in logs]
    mass = sum(odds)
    curve = [0.0] * 24
    for k, weight in zip(CONCENTRATIONS, odds, strict=True):
        if weight < 0.01 * mass:
            continue
        sure = k * length / (1.0 + k * length)  # the peak itself is known only so well
        scale = weight / mass / math.exp(_log_bessel(k * sure))
        for hour in range(24):
            curve[hour] += scale * math.exp(k * sure * math.cos(2 * math.pi * (hour + 0.5) / 24 - peak))
    return curve


def _log_bessel(x: float) -> float:
    """log of the modified Bessel function I0 (Abramowitz and Stegun 9.8.1 and 9.7.1, to a few per mille)."""
    if x < 3.75:
        t = (x / 3.75) ** 2
        return math.log(1 + t * (3.5156229 + t * (3.0899424 + t * (1.2067492 + t * (0.2659732 + t * 0.0360768)))))
    return x - 0.5 * math.log(2 * math.pi * x) + math.log1p(1 / (8 * x) + 9 / (128 * x * x))


def _week(days: Sequence[float], seen: Sequence[float]) -> tuple[float, ...]:
    total, watched = sum(days), sum(seen)
    if total <= 0 or watched <= 0:
        return (1.0,) * 7
    expected = [total * hours / watched for hours in seen]
    got = sum(days[day] for day in WEEKEND)
    due = sum(expected[day] for day in WEEKEND)
    weekend = (got + WEEKEND_SHRINK * WEEKEND_PRIOR) / (due + WEEKEND_SHRINK)
    weekday = (total - got + WEEKEND_SHRINK) / (total - due + WEEKEND_SHRINK)
    factors = []
    for day in range(7):
        base = weekend if day in WEEKEND else weekday
        factors.append(base * (days[day] + DAY_SHRINK) / (expected[day] * base + DAY_SHRINK))
    mean = sum(factors) / 7.0
    return tuple(round(max(PROFILE_FLOOR, value / mean), 3) for value in factors)
