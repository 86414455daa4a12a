"""Looking ahead: the expected course of the rate, and when economy and window ask for the next poll."""

from __future__ import annotations

import math
from dataclasses import dataclass

from monitor.core import schedule_rate as rates
from monitor.core.schedule_bounds import LOSS, overflow_capacity
from monitor.core.schedule_state import SCALES, State

FINE, HOUR, COARSE = 300.0, 3600.0, 6 * 3600.0
FAR = 2 * 86400.0
LIMIT = 30 * 86400.0
BURST = 2.0
"""A burst may bring this multiple of what its best two hours brought, by a decayed count."""
REGIME_DAYS = 60.0
"""How long a regime lasts on average; it may be followed by any that the population knows."""
UPPER = 1.5
"""The upper bound of the rate is this multiple of the expected one, and more where little is known."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Seconds from the last successful poll to the next one by economy and by the window, and the rates behind them.

    `steps` is the course of the rate: (start, seconds, entries a second) of each step looked at.
    """

    economy: float
    overflow: float
    now: float
    mean: float
    reason: str
    text: str
    steps: tuple[tuple[float, float, float], ...]

    def waiting(self, until: float) -> tuple[float, float]:
        """Entries expected at `until` seconds, and the mean seconds that they will have waited by then."""
        entries, waited, at, rate = 0.0, 0.0, 0.0, self.now
        for start, length, rate in self.steps:
            if start >= until:
                break
            span = min(length, until - start)
            waited += entries * span + rate * span * span / 2.0
            entries += rate * span
            at = start + span
        if until > at:
            span = until - at
            waited += entries * span + rate * span * span / 2.0
            entries += rate * span
        return entries, waited / entries if entries > 0 else 0.0


def level_of(state: State) -> rates.Level:
    """The state's counts as the working copy that `schedule_rate` computes with."""
    return rates.Level(
        counts=state.counts,
        exposures=state.exposures,
        explained=state.explained,
        expected=state.expected,
        odds=state.odds,
        hours=state.hour_profile,
        days=state.day_profile,
        quiet=state.quiet,
    )


def entries_per_arrival(state: State) -> float:
    """Mean number of entries that come together, with a prior of one."""
    entries, groups = state.batch
    return (entries + 2.0) / (groups + 2.0)


def plan(state: State, since: float) -> Plan:
    """Looks ahead from the last successful poll at `since` (POSIX seconds) as far as the longest interval."""
    level = level_of(state)
    weights = level.weights()
    hours, days, month = level.levels()
    size = entries_per_arrival(state) / 3600.0
    minutes_now, hours_now = level.bursts(weights)
    bursts = minutes_now * size, hours_now * size
    month *= size
    steady = sum(weights) * month
    share = weights[2] * size
    lifts = (
        -weights[0] * month,
        -weights[1] * month,
        share * level.odds[0] * (hours - month / size),
        share * level.odds[1] * (days - month / size),
    )
    wake = rates.PRIOR_RATE / 3600.0 / (REGIME_DAYS * 24.0)
    density = 1.0 / math.sqrt(2.0 * state.policy.price)
    horizon = min(state.policy.max_interval, LIMIT)
    hours_of, days_of, quiet = state.hour_profile, state.day_profile, state.quiet
    economy = math.inf
    done = at = 0.0
    steps = []
    while at < horizon:
        length = _step(since, at)
        middle = (at + length / 2.0) / -3600.0
        minutes, hour = math.exp(middle / SCALES[0]), math.exp(middle / SCALES[1])
        part, some = math.exp(middle / SCALES[2]), math.exp(middle / SCALES[3])
        course = rates.profile_at(hours_of, days_of, quiet, since - middle * 3600.0)
        rate = course * (steady + lifts[0] * minutes + lifts[1] * hour + lifts[2] * part + lifts[3] * some)
        rate = max(rate, 0.0)
        rate += bursts[0] * minutes + bursts[1] * hour - wake * middle
        steps.append((at, length, rate))
        gain = math.sqrt(rate) * density
        if done + gain * length >= 1.0:
            economy = at + (1.0 - done) / gain
            break
        done += gain * length
        at += length
    overflow = math.inf
    if state.window:
        sure = UPPER + 1.0 / math.sqrt(level.counts[4] + 1.0)
        capacity = capacity_of(state) / sure
        overflow = _overflow(state, since, steps, capacity, (max(steady, rate / max(course, 0.1)), horizon))
        overflow = min(overflow, burst_horizon(state))
    now = steps[0][2]
    text = f"about {now * 86400:.3g} entries a day are expected now, {month * 86400:.3g} on average"
    return Plan(economy, overflow, now, month, "economy", text, tuple(steps))


def capacity_of(state: State) -> float:
    """Entries that may be expected until the next poll so that more than the window come with a chance of 1e-3 only.

    Numbers that scatter by `dispersion` beyond Poisson are counted in lots of that size.
    """
    return overflow_capacity(int(state.window / state.dispersion), LOSS) * state.dispersion


def burst_horizon(state: State) -> float:
    """Seconds in which a burst like the greatest seen, out of the quiet, fills the window; `inf` where none can."""
    greatest = state.peak * entries_per_arrival(state) * BURST
    return SCALES[1] * 3600.0 * state.window / greatest if greatest > state.window else math.inf


def _overflow(
    state: State, since: float, steps: list[tuple[float, float, float]], capacity: float, later: tuple[float, float]
) -> float:
    """Seconds until the expected entries reach `capacity`: by the steps, and from there on by the profile.

    `later` is (entries a second at a profile of 1, seconds beyond which it does not matter).
    """
    room = end = 0.0
    for start, length, rate in steps:
        if room + rate * length >= capacity:
            return start + (capacity - room) / rate if rate > 0 else start
        room += rate * length
        end = start + length
    steady, horizon = later
    if steady <= 0 or end >= horizon:
        return math.inf
    need = (capacity - room) / steady
    profile = state.hour_profile, state.day_profile, state.quiet
    if rates.profile_hours(*profile, since + end, since + horizon) * 3600.0 < need:
        return math.inf
    low, high = end, horizon
    while high - low > 60.0:
        middle = (low + high) / 2.0
        if rates.profile_hours(*profile, since + end, since + middle) * 3600.0 < need:
            low = middle
        else:
            high = middle
    return low


def _step(since: float, at: float) -> float:
    """Length of the step that begins `at` seconds ahead: within the hour, short at first, days ahead a quarter day."""
    if at >= FAR:
        return COARSE
    left = HOUR - (since + at) % HOUR
    return left if at + FINE >= left and at > 0 else min(left, max(FINE, at))
