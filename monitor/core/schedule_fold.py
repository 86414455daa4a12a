"""What one more poll tells of a document: the fold of `schedule.observe`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from monitor.core import schedule_bounds as limits
from monitor.core import schedule_rate as rates
from monitor.core.schedule_dates import Arrival, arrivals, first_arrivals, learn_skew
from monitor.core.schedule_plan import entries_per_arrival, level_of
from monitor.core.schedule_population import USUAL, Population
from monitor.core.schedule_state import LAG_START, Hints, Learnt, Poll, State, write_tally

SAME_ARRIVAL = 60.0
SMALL_WINDOW = 10
DAY = 86400.0
LATTICE_LEAST, LATTICE_SHARE, LATTICE_PEAK = 6.0, 0.6, 4.0
LAG_FADE, LAG_MARGIN, LAG_LIMIT = 0.995, 15.0, 600.0


def observe(state: State, poll: Poll, population: Population = USUAL) -> State:
    """The state after one more poll; `population` is the prior of what the polls have not yet told.

    Takes any history: a clock that steps back starts a new count from there, dates may repeat, lie in the future or be
    missing. Work grows with the entries shown, not with the history.
    """
    at = poll.at.timestamp()
    changes: dict[str, Any] = {
        "polls": state.polls + 1,
        "last_at": at,
        "retry_at": None,
        "prior": (population.rate, population.weight),
    }
    if state.first_at is None or at < state.first_at:
        changes["first_at"] = at
    learnt = state.learnt
    if poll.hints is not None:
        retry = poll.hints.retry_at
        changes["retry_at"] = None if retry is None else min(retry.timestamp(), at + limits.RETRY_LIMIT)
        if not poll.failed:
            changes["max_age"] = poll.hints.max_age
            if poll.modified:
                learnt = _said(learnt, poll.hints)
    if poll.failed:
        return replace(state, fails=state.fails + 1, **changes)
    changes["fails"] = 0
    if poll.size > 0 and poll.modified:
        window = _window(learnt, poll)
        if (window, poll.size) != (learnt.window, learnt.shown):
            learnt = replace(learnt, window=window, shown=poll.size)
    if state.clock is None:
        return _first(state, learnt, poll, at, changes, population)
    return _next(state, learnt, poll, at, state.clock, changes, population)


def _window(learnt: Learnt, poll: Poll) -> int:
    """How many entries the document shows when full. A short list is full only once news pushed others out of it."""
    full = 0 < learnt.window < SMALL_WINDOW or (poll.new > 0 and 0 < poll.size <= learnt.shown)
    return poll.size if full else max(poll.size, SMALL_WINDOW)


def _said(learnt: Learnt, said: Hints) -> Learnt:
    """The hints in force: what a document says holds until it is read again; a 304 or an error says nothing."""
    hours, days = tuple(sorted(said.skip_hours)), tuple(sorted(said.skip_days))
    if (said.ttl, said.update_period, hours, days, said.hub) == (
        learnt.ttl,
        learnt.update_period,
        learnt.skip_hours,
        learnt.skip_days,
        learnt.hub,
    ):
        return learnt
    return replace(
        learnt, ttl=said.ttl, update_period=said.update_period, skip_hours=hours, skip_days=days, hub=said.hub
    )


def _first(
    state: State, learnt: Learnt, poll: Poll, at: float, changes: dict[str, Any], population: Population
) -> State:
    found = first_arrivals([date.timestamp() for date in poll.entries], at)
    begin = found[0].at if found else at
    learnt = replace(learnt, folded_at=at, seen_to=max(begin, at - rates.PROFILE_SPAN))
    if found:
        learnt = replace(learnt, mark=found[-1].at, dated=True)
    changes |= {"clock": at, "new": 0, "elapsed": 0.0}
    return _fold(state, learnt, found[1:], begin, at, changes, population)


def _next(
    state: State,
    learnt: Learnt,
    poll: Poll,
    at: float,
    clock: float,
    changes: dict[str, Any],
    population: Population,
) -> State:
    since = min(clock, at)
    changes |= {"clock": at, "new": poll.new, "elapsed": at - since, "found": state.found + (poll.new > 0)}
    if at < learnt.seen_to:
        learnt = replace(learnt, seen_to=at)
    found: list[Arrival] = []
    if poll.new > 0:
        mark = learnt.mark if learnt.mark is not None else -math.inf
        if mark > at + DAY:
            mark = at
        dates = [date.timestamp() for date in poll.entries]
        found, newest = arrivals(dates, poll.new, poll.size, mark=mark, since=since, until=at, skew=learnt.skew)
        recent = [date for date in dates if date > mark]
        if recent:
            learnt = replace(learnt, skew=learn_skew(learnt.skew, max(recent), since, at))
        if newest is not None:
            lag = _learn_lag(learnt, newest, since) if learnt.lattice else learnt.lag
            learnt = replace(learnt, mark=newest, dated=True, lag=lag)
    return _fold(state, learnt, found, since, at, changes, population)


def _fold(
    state: State,
    learnt: Learnt,
    found: list[Arrival],
    since: float,
    at: float,
    changes: dict[str, Any],
    population: Population,
) -> State:
    """Runs the rate over the arrivals, in order, up to the poll; learns profile and lattice where there is reason."""
    level = level_of(state)
    tallies = None
    if found:
        tallies = learnt.tallies()
        learnt = _count(level, learnt, tallies, found, since, at)
    else:
        level.advance(since, at)
    changes |= {
        "counts": tuple(level.counts),
        "exposures": tuple(level.exposures),
        "explained": tuple(level.explained),
        "expected": tuple(level.expected),
        "odds": tuple(level.odds),
    }
    if at > since:
        variability, learnt = _spread(state, learnt, level, found, at - since, at)
        changes["variability"] = variability
    if abs(at - learnt.folded_at) >= DAY or (tallies and learnt.fresh >= 1.0 + sum(tallies[0]) / 16.0):
        learnt = _learn(learnt, tallies or learnt.tallies(), at, population)
    elif tallies:
        learnt = replace(learnt, tally=write_tally(tallies))
    return replace(state, learnt=learnt, **changes)


def _count(
    level: rates.Level, learnt: Learnt, tallies: list[list[float]], found: list[Arrival], since: float, at: float
) -> Learnt:
    """Counts the arrivals, in the level and in `tallies`, both changed in place."""
    hours, _, days, _, minutes = tallies
    entries, groups = learnt.batch
    last, clock, fresh, peak = learnt.last_event, since, learnt.fresh, learnt.peak
    for when, weight, date in found:
        entries += weight
        if last is not None and abs(when - last) < SAME_ARRIVAL:
            continue
        level.advance(clock, when)
        steady = level.arrive(when)
        peak = max(peak, level.counts[1])
        last, clock = when, max(clock, when)
        entries, groups = entries * 0.99, groups * 0.99 + 1.0
        fresh += 1.0
        if at - when < rates.PROFILE_SPAN:
            hours[int(when / 3600.0 % 24.0) % 24] += steady
            days[rates.day_of(learnt.quiet, when)] += steady
        if date is not None and at - date < rates.PROFILE_SPAN:
            minutes[int(date / 60.0 % 60.0) % 60] += 1.0
    level.advance(clock, at)
    return replace(learnt, last_event=last, batch=(entries, groups), fresh=fresh, peak=peak)


def _spread(
    state: State, learnt: Learnt, level: rates.Level, found: list[Arrival], span: float, at: float
) -> tuple[float, Learnt]:
    """How the rate departs from its mean course, and how far numbers of polls with news scatter beyond Poisson."""
    weights, levels, odds = level.weights(), level.levels(), level.odds
    course = rates.profile_at(level.hours, level.days, level.quiet, at)
    month = levels[2] * course
    follow = odds[0] * levels[0] + odds[1] * levels[1] + odds[2] * levels[2]
    now = sum(level.bursts(weights)) + course * weights[2] * follow
    kept = math.exp(-span / (7 * DAY))
    ratio = min(2.0, math.sqrt(now / month)) if month > 0 else 1.0
    variability = state.variability * kept + ratio * (1.0 - kept)
    if state.clock is not None and found:
        number = sum(arrival.entries for arrival in found)
        due = month * (entries_per_arrival(state) / 3600.0) * span
        if due > 0:
            excess = (number - due) ** 2 / max(due, number, 1.0)
            dispersion = max(1.0, min(10.0, learnt.dispersion + 0.05 * (excess - learnt.dispersion)))
            learnt = replace(learnt, dispersion=dispersion)
    return variability, learnt


def _learn(learnt: Learnt, tallies: list[list[float]], at: float, population: Population) -> Learnt:
    """Renews profile and lattice from the counts, and lets the counts of past weeks fade."""
    rates.see(tallies[1], tallies[3], learnt.quiet, max(learnt.seen_to, at - rates.PROFILE_SPAN), at)
    passed = max(0.0, at - learnt.folded_at)
    folded_at, peak = learnt.folded_at, learnt.peak
    if passed >= DAY or at < learnt.folded_at:
        kept = math.exp(-passed / rates.PROFILE_SPAN)
        tallies = [[value * kept for value in counts] for counts in tallies]
        folded_at, peak = at, peak * kept
    hours, hours_seen, days, days_seen, minutes = tallies
    hour_profile, day_profile, quiet = rates.learn_profile(hours, hours_seen, days, days_seen, population)
    lattice, share = find_lattice(minutes)
    return replace(
        learnt,
        tally=write_tally(tallies),
        seen_to=at,
        folded_at=folded_at,
        fresh=0.0,
        peak=peak,
        hour_profile=hour_profile,
        day_profile=day_profile,
        quiet=quiet,
        evenness=rates.evenness(hour_profile, day_profile),
        lattice=lattice,
        lattice_share=share,
        lag=learnt.lag if lattice else LAG_START,
    )


def find_lattice(minutes: Sequence[float]) -> tuple[tuple[int, ...], float]:
    """The minutes of the hour on which a publisher posts, where most of its arrivals keep to a few of them.

    Takes decayed counts by minute. Returns (minutes, share of the arrivals there); ((), 0.0) where there is none.
    """
    total = sum(minutes)
    if total < LATTICE_LEAST:
        return (), 0.0
    least = max(2.5, LATTICE_PEAK * total / 60.0)
    chosen = [minute for minute, count in enumerate(minutes) if count >= least]
    share = sum(minutes[minute] for minute in chosen) / total
    if share < LATTICE_SHARE or len(chosen) > 12:
        return (), 0.0
    starts = tuple(minute for minute in chosen if (minute - 1) % 60 not in chosen)
    return starts, round(share, 3)


def _learn_lag(learnt: Learnt, date: float, since: float) -> float:
    """How long after its minute an entry on the lattice shows: the longest wait seen, fading.

    An entry that the last poll, made after its date, did not show, came later than that poll. Polling a little late
    costs seconds, a little early a whole round.
    """
    after = min((date - minute * 60.0) % 3600.0 for minute in learnt.lattice)
    missed = since - date + after
    seen = missed if after < missed < LAG_LIMIT else after if after < LAG_LIMIT else 0.0
    return max(LAG_START, learnt.lag * LAG_FADE, min(LAG_LIMIT, seen + max(LAG_MARGIN, 0.2 * seen)))
