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
FADED = 14.0
"""Hours after which a burst is over."""
KNOTS = tuple(hours * 3600.0 for hours in (0.5, 1.5, 4.0, 9.0, 24.0, 48.0, 96.0, 168.0, 336.0, 720.0))
"""Between two of these the level counts as even when the window is reckoned with."""
BURST_LEAST, BURST_MOST = 2.0, 3.0
SHORT_WATCH = 10.0
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
        hours=state.learnt.hour_profile,
        days=state.learnt.day_profile,
        quiet=state.learnt.quiet,
        prior=state.prior,
    )


def entries_per_arrival(state: State) -> float:
    """Mean number of entries that come together, with a prior of one."""
    entries, groups = state.learnt.batch
    return (entries + 2.0) / (groups + 2.0)


def plan(state: State, since: float) -> Plan:
    """Looks ahead from the last successful poll at `since` (POSIX seconds) as far as the longest interval."""
    level = level_of(state)
    rate_of = _Course(state, level)
    density = 1.0 / math.sqrt(2.0 * state.policy.price)
    horizon = min(state.policy.max_interval, LIMIT)
    fine = FINE if rate_of.bursting() else HOUR
    economy = math.inf
    done = at = 0.0
    steps = []
    while at < horizon:
        length = _step(since, at, fine)
        rate = rate_of(since, at + length / 2.0)
        steps.append((at, length, rate))
        gain = math.sqrt(rate) * density
        if done + gain * length >= 1.0:
            economy = at + (1.0 - done) / gain
            break
        done += gain * length
        at += length
    overflow = math.inf
    if state.learnt.window:
        sure = UPPER + 1.0 / math.sqrt(level.counts[4] + 1.0)
        overflow = min(rate_of.reaches(since, capacity_of(state) / sure, horizon), burst_horizon(state))
    now, month = steps[0][2], rate_of.month
    text = f"about {now * 86400:.3g} entries a day are expected now, {month * 86400:.3g} on average"
    return Plan(economy, overflow, now, month, "economy", text, tuple(steps))


class _Course:
    """The expected rate in the days ahead, entries a second: the week's course times a level, bursts that fade, and
    the chance, growing with the wait, that a new regime has begun."""

    __slots__ = ("bursts", "lifts", "month", "profile", "steady", "wake")

    def __init__(self, state: State, level: rates.Level) -> None:
        weights = level.weights()
        hours, days, month = level.levels()
        size = entries_per_arrival(state) / 3600.0
        minutes_now, hours_now = level.bursts(weights)
        self.bursts = minutes_now * size, hours_now * size
        self.month = month * size
        self.steady = sum(weights) * self.month
        share = weights[2] * size
        self.lifts = (
            -weights[0] * self.month,
            -weights[1] * self.month,
            share * level.odds[0] * (hours - month),
            share * level.odds[1] * (days - month),
        )
        self.wake = state.prior[0] / 3600.0 / (REGIME_DAYS * 24.0)
        self.profile = level.hours, level.days, level.quiet

    def bursting(self) -> bool:
        """Whether the last minutes raise the rate enough to look ahead in minutes."""
        return self.bursts[0] > 0.05 * self.steady

    def __call__(self, since: float, ahead: float) -> float:
        """The rate `ahead` seconds from `since`."""
        level, bursts = self._parts(ahead / 3600.0)
        return level * rates.profile_at(*self.profile, since + ahead) + bursts

    def _parts(self, hours: float) -> tuple[float, float]:
        """The level, which follows the week's course, and what does not, `hours` ahead."""
        lifts, exp = self.lifts, math.exp
        level = self.steady + lifts[2] * exp(-hours / SCALES[2]) + lifts[3] * exp(-hours / SCALES[3])
        rest = self.wake * hours
        if hours < FADED:
            short, some = exp(-hours / SCALES[0]), exp(-hours / SCALES[1])
            level += lifts[0] * short + lifts[1] * some
            rest += self.bursts[0] * short + self.bursts[1] * some
        return max(level, 0.0), rest

    def reaches(self, since: float, capacity: float, horizon: float) -> float:
        """Seconds until the expected entries reach `capacity`; `inf` where that is beyond `horizon`.

        The same whatever the price: a wait that the server's hints prolong ends here, too.
        """
        week = rates.Week(*self.profile)
        room, begin, before = capacity, 0.0, week.until(since)
        for knot in KNOTS:
            end = min(knot, horizon)
            level, rest = self._parts((begin + end) / 7200.0)
            after = week.until(since + end)
            come = level * 3600.0 * (after - before) + rest * (end - begin)
            if come >= room:
                break
            room -= come
            begin, before = end, after
            if end >= horizon:
                return math.inf
        low, high = begin, end
        for _ in range(8):
            middle = (low + high) / 2.0
            if level * 3600.0 * (week.until(since + middle) - before) + rest * (middle - begin) < room:
                low = middle
            else:
                high = middle
        return low


def capacity_of(state: State) -> float:
    """Entries that may be expected until the next poll so that more than the window come with a chance of 1e-3 only.

    Numbers that scatter by `dispersion` beyond Poisson are counted in lots of that size.
    """
    learnt = state.learnt
    return overflow_capacity(int(learnt.window / learnt.dispersion), LOSS) * learnt.dispersion


def burst_horizon(state: State) -> float:
    """Seconds in which a burst somewhat over the greatest seen, out of the quiet, fills the window; `inf` if none can.

    The greatest of n spans of two hours is what one in n exceeds. With an exponential tail one in 1 / LOSS exceeds
    ln(1 / LOSS) / ln(n) times as much: three times what a day showed. It is never taken for less than twice: the tails
    of bursts are heavier, and a month is short.
    """
    window = state.learnt.window
    spans = max(SHORT_WATCH, state.exposures[4] / SCALES[1])
    beyond = min(BURST_MOST, max(BURST_LEAST, -math.log(LOSS) / math.log(spans)))
    greatest = state.learnt.peak * entries_per_arrival(state) * beyond
    return SCALES[1] * 3600.0 * window / greatest if greatest > window else math.inf


def _step(since: float, at: float, fine: float) -> float:
    """Length of the step that begins `at` seconds ahead: within the hour, short at first where a burst is under way,
    days ahead a quarter day."""
    if at >= FAR:
        return COARSE
    left = HOUR - (since + at) % HOUR
    return left if at + fine >= left and at > 0 else min(left, max(fine, at))
