"""The rate of arrivals, now and in the coming days.

The rate is a course of the week times a level, plus bursts (a Hawkes process with fixed decay times):

    rate(t) = w2 profile(t) level(t) + w1 n1 / T1 + w0 n0 / T0

The level is the mean of three gamma-Poisson means, of the arrivals of the last month, days and hours over the
exposure in profile time, each weighted by how well it foretold what came of late (Bayes with a fixed share, Herbster
and Warmuth 1998): so a change of regime is followed within a few arrivals, and forgotten noise costs nothing. The n
are decayed counts of the last hours and minutes. The weights w say how much of what comes each term explains; they
are learnt by attributing every arrival to the terms in proportion (one step of EM, Dempster et al. 1977) over what
each had announced. A steady publisher ends with w0 and w1 near zero, one that writes in bursts with much on them.

All rates here are arrivals an hour; several entries within a minute are one arrival.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from monitor.core.schedule_population import Population
from monitor.core.schedule_state import ODDS, SCALES

WEIGHTS = (0.03, 0.07, 0.90)
WEIGHT_COUNT = 12.0
REGIME_ARRIVAL = 0.03
REFUTED, REFUTED_KEPT = 0.2, 0.93
"""Below these odds the month is of another regime: each arrival takes some of it away."""
REGIME_HOURS = 300.0
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
HOUR_SHRINK, DAY_SHRINK, WEEKEND_SHRINK = 3.0, 20.0, 6.0
COMMON_SHARE, COMMON_HALF = 0.5, 10.0
"""Prior probability that a publisher keeps the population's hours, once many were watched; half of it at ten."""
PROFILE_FLOOR = 0.02


class Level:
    """The working copy of a state's counts while one poll is folded in: the only mutable thing here."""

    __slots__ = ("counts", "days", "expected", "explained", "exposures", "hours", "odds", "prior", "quiet")

    def __init__(
        self,
        *,
        counts: Sequence[float],
        exposures: Sequence[float],
        explained: Sequence[float],
        expected: Sequence[float],
        odds: Sequence[float],
        hours: Sequence[float],
        days: Sequence[float],
        quiet: int,
        prior: tuple[float, float],
    ) -> None:
        self.counts, self.exposures = list(counts), list(exposures)
        self.explained, self.expected, self.odds = list(explained), list(expected), list(odds)
        self.hours, self.days, self.quiet, self.prior = hours, days, quiet, prior

    def levels(self) -> tuple[float, float, float]:
        """The gamma-Poisson means of the hours, the days and the month, in arrivals an hour of profile time."""
        counts, exposures = self.counts, self.exposures
        month = month_rate(counts, exposures, self.prior)
        some_days = SHRINK * SCALES[3]
        days = (counts[3] + some_days * month) / (exposures[3] + some_days)
        some_hours = SHRINK * SCALES[2]
        return (counts[2] + some_hours * days) / (exposures[2] + some_hours), days, month

    def weights(self) -> tuple[float, float, float]:
        """How much of what comes is announced by the last minutes, by the last hours, and by the level."""
        explained, expected = self.explained, self.expected
        return (
            (explained[0] + WEIGHT_COUNT * WEIGHTS[0]) / (expected[0] + WEIGHT_COUNT),
            (explained[1] + WEIGHT_COUNT * WEIGHTS[1]) / (expected[1] + WEIGHT_COUNT),
            (explained[2] + WEIGHT_COUNT * WEIGHTS[2]) / (expected[2] + WEIGHT_COUNT),
        )

    def bursts(self, weights: Sequence[float]) -> tuple[float, float]:
        """The rates that the arrivals of the last minutes and hours excite."""
        return weights[0] * self.counts[0] / SCALES[0], weights[1] * self.counts[1] / SCALES[1]

    def advance(self, since: float, until: float) -> None:
        """Lets time pass without an arrival, from `since` to `until` (POSIX seconds)."""
        span = (until - since) / 3600.0
        if span <= 0:
            return
        passed = profile_hours(self.hours, self.days, self.quiet, since, until)
        levels, odds = self.levels(), self.odds
        counts, exposures, expected = self.counts, self.exposures, self.expected
        expected[2] += (odds[0] * levels[0] + odds[1] * levels[1] + odds[2] * levels[2]) * passed
        weight = self.weights()[2] * passed
        least = min(levels)
        self._mix([math.exp((least - level) * weight) for level in levels], 1.0 - math.exp(-span / REGIME_HOURS))
        for index, scale in enumerate(SCALES):
            kept = math.exp(-span / scale)
            if index < SLOW:
                expected[index] += counts[index] * (1.0 - kept)
            else:
                exposures[index] = exposures[index] * kept + passed * (1.0 - kept) * scale / span
            counts[index] *= kept

    def arrive(self, at: float) -> float:
        """Counts one arrival at `at`. Returns the share of it that is no burst, which is what a profile is made of."""
        weights = self.weights()
        minutes, hour = self.bursts(weights)
        course = weights[2] * profile_at(self.hours, self.days, self.quiet, at)
        levels, odds = self.levels(), self.odds
        level = course * (odds[0] * levels[0] + odds[1] * levels[1] + odds[2] * levels[2])
        total = minutes + hour + level
        explained, expected, counts = self.explained, self.expected, self.counts
        for index, term in enumerate((minutes, hour, level)):
            explained[index] = explained[index] * FORGET + term / total
            expected[index] *= FORGET
        self._mix([minutes + hour + course * one for one in levels], REGIME_ARRIVAL)
        if self.odds[2] < REFUTED:
            counts[4] *= REFUTED_KEPT
            self.exposures[4] *= REFUTED_KEPT
        for index in range(5):
            counts[index] += 1.0
        return level / total

    def _mix(self, likelihoods: Sequence[float], change: float) -> None:
        """Bayes on which memory the level follows, with a chance `change` that it is decided anew (fixed share)."""
        odds = [one * likelihood for one, likelihood in zip(self.odds, likelihoods, strict=True)]
        scale = (1.0 - change) / sum(odds)
        self.odds = [one * scale + change * prior for one, prior in zip(odds, ODDS, strict=True)]


def month_rate(counts: Sequence[float], exposures: Sequence[float], prior: tuple[float, float]) -> float:
    """The gamma-Poisson mean of the last month, in arrivals an hour; `prior` is the population's (rate, weight)."""
    rate, weight = prior
    return (counts[4] + weight) / (exposures[4] + weight / rate)


def evenness(hours: Sequence[float], days: Sequence[float]) -> float:
    """Mean of the square root of the profile: 1 for a flat one, less the more of the week is quiet."""
    return sum(math.sqrt(value) for value in hours) / 24.0 * sum(math.sqrt(value) for value in days) / 7.0


def profile_at(hours: Sequence[float], days: Sequence[float], quiet: int, at: float) -> float:
    """The profile at an instant: 1.0 is the mean of the week."""
    local = at / 3600.0 - quiet + 72.0  # the epoch was a Thursday; weeks are counted from Monday
    return hours[int(local % 24.0) % 24] * days[int(local % 168.0 / 24.0) % 7]


def profile_hours(hours: Sequence[float], days: Sequence[float], quiet: int, since: float, until: float) -> float:
    """The profile summed over a span, in hours: as many as went by, more where they were busy ones."""
    first, last = since / 3600.0 - quiet + 72.0, until / 3600.0 - quiet + 72.0
    if int(first) == int(last):  # within one hour of the clock
        return (last - first) * hours[int(first % 24.0) % 24] * days[int(first % 168.0 / 24.0) % 7]
    week = Week(hours, days, quiet)
    return week.until(until) - week.until(since)


class Week:
    """The profile summed up: what `profile_hours` reads differences from."""

    __slots__ = ("days", "hours", "offset", "sum_days", "sum_hours")

    def __init__(self, hours: Sequence[float], days: Sequence[float], quiet: int) -> None:
        self.hours, self.days, self.offset = hours, days, 72.0 - quiet
        self.sum_hours = (0.0, *accumulate(hours))
        self.sum_days = (0.0, *accumulate(days))

    def until(self, at: float) -> float:
        """Hours of the profile up to an instant."""
        weeks, rest = divmod(at / 3600.0 + self.offset, 168.0)
        day = min(int(rest / 24.0), 6)
        of_day = rest - 24.0 * day
        hour = min(int(of_day), 23)
        done = self.sum_hours[hour] + self.hours[hour] * (of_day - hour)
        return weeks * 168.0 + 24.0 * self.sum_days[day] + self.days[day] * done


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
    hours: Sequence[float],
    seen_hours: Sequence[float],
    days: Sequence[float],
    seen_days: Sequence[float],
    common: Population,
) -> tuple[tuple[float, ...], tuple[float, ...], int]:
    """The course of the day and of the week from decayed counts by UTC hour and by weekday.

    The day is at first the mean of two beliefs, each as probable as it makes the counts: the hours `common` to the
    population, begun at any hour of the 24, and a von Mises curve exp(k cos(hour - peak)), k by Bayes over a grid.
    That finds the time zone from a dozen arrivals. Hour by hour the counts then correct it. The weekend comes next,
    single days last, both shrunk towards the population's.

    Returns (24 factors from the quiet hour on, 7 factors from Monday on, the quiet hour), each with mean 1.
    """
    total = sum(hours)
    watched = sum(seen_hours)
    if total <= 0 or watched <= 0:
        return (1.0,) * 24, common.days, 0
    expected = [total * seen / watched for seen in seen_hours]
    across = sum((n - m) * c for n, m, c in zip(hours, expected, COSINES, strict=True))
    along = sum((n - m) * s for n, m, s in zip(hours, expected, SINES, strict=True))
    curve = _first_curve(hours, math.hypot(across, along), math.atan2(along, across), total, common)
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
    return local, _week(days, seen_days, common.days), quiet if quiet <= 12 else quiet - 24


def _first_curve(hours: Sequence[float], length: float, peak: float, total: float, common: Population) -> list[float]:
    """The course of the day before single hours count: by von Mises, by the population, or between the two."""
    curve, evidence = _von_mises(length, peak, total)
    share = COMMON_SHARE * common.size / (common.size + COMMON_HALF)
    if share <= 0.0:
        return curve
    logs = [math.log(max(PROFILE_FLOOR, factor)) for factor in common.hours]
    doubled = logs + logs
    fits = [sum(map(mul, hours, doubled[24 - begin : 48 - begin])) for begin in range(24)]
    top = max(fits)
    odds = [math.exp(fit - top) for fit in fits]
    mass = sum(odds)
    lean = math.log(share / (1.0 - share)) + top + math.log(mass / 24.0) - evidence
    trust = 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, lean))))
    if trust < 0.01:
        return curve
    shared = [0.0] * 24
    for begin, weight in enumerate(odds):
        if weight > 0.01 * mass:
            for hour in range(24):
                shared[hour] += weight / mass * common.hours[hour - begin]
    return [own + trust * (theirs - own) for own, theirs in zip(curve, shared, strict=True)]


def _von_mises(length: float, peak: float, total: float) -> tuple[list[float], float]:
    """The curve, and the log of how probable it makes the counts against hours that are all alike."""
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
    return curve, top + math.log(mass)


def _log_bessel(x: float) -> float:
    """log of the modified Bessel function I0 (Abramowitz and Stegun 9.8.1 and 9.7.1, to a few per mille)."""
    if x < 3.75:
        t = (x / 3.75) ** 2
        return math.log(1 + t * (3.5156229 + t * (3.0899424 + t * (1.2067492 + t * (0.2659732 + t * 0.0360768)))))
    return x - 0.5 * math.log(2 * math.pi * x) + math.log1p(1 / (8 * x) + 9 / (128 * x * x))


def _week(days: Sequence[float], seen: Sequence[float], common: Sequence[float]) -> tuple[float, ...]:
    total, watched = sum(days), sum(seen)
    if total <= 0 or watched <= 0:
        return tuple(common)
    expected = [total * hours / watched for hours in seen]
    got = sum(days[day] for day in WEEKEND)
    due = sum(expected[day] for day in WEEKEND)
    rest, work = (common[5] + common[6]) / 2.0, sum(common[:5]) / 5.0
    weekend = (got + WEEKEND_SHRINK * rest) / (due + WEEKEND_SHRINK)
    weekday = (total - got + WEEKEND_SHRINK * work) / (total - due + WEEKEND_SHRINK)
    factors = []
    for day in range(7):
        base = weekend * common[day] / rest if day in WEEKEND else weekday * common[day] / work
        factors.append(base * (days[day] + DAY_SHRINK) / (expected[day] * base + DAY_SHRINK))
    mean = sum(factors) / 7.0
    return tuple(round(max(PROFILE_FLOOR, value / mean), 3) for value in factors)
