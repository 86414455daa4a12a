"""When to poll a document next: a pure fold over its polls.

    state = start(policy); state = observe(state, poll); decision = decide(state, now)

Economy. Entries arrive at rate r(t). Polled every tau seconds, they wait tau / 2 on average, so that a second costs
r tau / 2 entry-seconds of waiting plus price / tau of polling. The sum is least at tau = sqrt(2 price / r): polls are
laid at the density sqrt(r(t) / (2 price)), and the next is due when that density has summed to one. With one price for
a whole population no poll can be moved from one document to another to any gain. (Cho and Garcia-Molina 2003 and Sia,
Cho and Cho 2007 derive the same square root.) The rate is that of `schedule_rate`.

Safety. Whatever the economy says, the chance that more entries come than the window shows stays below 1e-3.

Precedence, the first wins: Retry-After; min_interval; back-off; the overflow of the window; max_interval; the hints of
server and feed; the economy. `Decision.bounds` lists all that apply.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from typing import Any

from monitor.core import schedule_bounds as limits
from monitor.core import schedule_rate as rates
from monitor.core.schedule_dates import Arrival, arrivals, first_arrivals, learn_skew
from monitor.core.schedule_plan import entries_per_arrival, level_of, plan
from monitor.core.schedule_state import LAG_START, Bound, Decision, Hints, Poll, State, instant

SAME_ARRIVAL = 60.0
UNKNOWN_INTERVAL = 1200.0
SMALL_WINDOW = 10
DAY = 86400.0
LATTICE_LEAST, LATTICE_SHARE, LATTICE_PEAK = 6.0, 0.6, 4.0
LAG_FADE, LAG_MARGIN, LAG_LIMIT = 0.995, 15.0, 600.0


def observe(state: State, poll: Poll) -> State:
    """The state after one more poll.

    Takes any history: a clock that steps back starts a new count from there, dates may repeat, lie in the future or be
    missing. Work grows with the entries shown, not with the history.
    """
    at = poll.at.timestamp()
    changes: dict[str, Any] = {"polls": state.polls + 1, "last_at": at, "retry_at": None}
    if state.first_at is None or at < state.first_at:
        changes["first_at"] = at
    if poll.hints is not None:
        retry = poll.hints.retry_at
        changes["retry_at"] = None if retry is None else min(retry.timestamp(), at + limits.RETRY_LIMIT)
        changes["hints"] = _hints(state.hints, poll.hints, poll)
    if poll.failed:
        return replace(state, fails=state.fails + 1, **changes)
    changes["fails"] = 0
    if poll.size > 0 and poll.modified:
        changes |= {"window": _window(state, poll), "shown": poll.size}
    if state.clock is None:
        return _first(state, poll, at, changes)
    return _next(state, poll, at, state.clock, changes)


def _window(state: State, poll: Poll) -> int:
    """How many entries the document shows when full. A short list is full only once news pushed others out of it."""
    full = 0 < state.window < SMALL_WINDOW or (poll.new > 0 and 0 < poll.size <= state.shown)
    return poll.size if full else max(poll.size, SMALL_WINDOW)


def _hints(before: Hints, said: Hints, poll: Poll) -> Hints:
    """The hints in force: what a document says holds until it is read again, an error says nothing."""
    if poll.failed:
        return before
    if poll.modified:
        return replace(said, retry_at=None)
    return replace(before, max_age=said.max_age)


def _first(state: State, poll: Poll, at: float, changes: dict[str, Any]) -> State:
    found = first_arrivals([date.timestamp() for date in poll.entries], at)
    if found:
        changes |= {"mark": found[-1].at, "dated": True}
    begin = found[0].at if found else at
    changes |= {"clock": at, "folded_at": at, "new": 0, "elapsed": 0.0}
    return _fold(state, found[1:], begin, at, changes)


def _next(state: State, poll: Poll, at: float, clock: float, changes: dict[str, Any]) -> State:
    since = min(clock, at)
    changes |= {"clock": at, "new": poll.new, "elapsed": at - since}
    mark = state.mark if state.mark is not None else -math.inf
    if mark > at + DAY:
        mark = at
    found: list[Arrival] = []
    if poll.new > 0:
        dates = [date.timestamp() for date in poll.entries]
        found, newest = arrivals(dates, poll.new, poll.size, mark=mark, since=since, until=at, skew=state.skew)
        recent = [date for date in dates if date > mark]
        if recent:
            changes["skew"] = learn_skew(state.skew, max(recent), since, at)
        if newest is not None:
            changes |= {"mark": newest, "dated": True}
            if state.lattice:
                changes["lag"] = _learn_lag(state, newest, since)
    return _fold(state, found, since, at, changes)


def _fold(state: State, found: list[Arrival], since: float, at: float, changes: dict[str, Any]) -> State:
    """Runs the rate over the arrivals, in order, up to the poll; learns the profile and the lattice."""
    level = level_of(state)
    seen_hours, seen_days = list(state.hours_seen), list(state.days_seen)
    rates.see(seen_hours, seen_days, state.quiet, max(since, at - rates.PROFILE_SPAN), at)
    changes |= {"hours_seen": tuple(seen_hours), "days_seen": tuple(seen_days)}
    if found:
        hours, days, minutes = list(state.hours), list(state.days), list(state.minutes)
        entries, groups = state.batch
        last, clock, fresh, peak = state.last_event, since, state.fresh, state.peak
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
                days[rates.day_of(state.quiet, when)] += steady
            if date is not None and at - date < rates.PROFILE_SPAN:
                minutes[int(date / 60.0 % 60.0) % 60] += 1.0
        level.advance(clock, at)
        changes |= {"last_event": last, "batch": (entries, groups), "fresh": fresh, "peak": peak}
        changes |= {"hours": tuple(hours), "days": tuple(days), "minutes": tuple(minutes)}
    else:
        level.advance(since, at)
    changes |= {
        "counts": tuple(level.counts),
        "exposures": tuple(level.exposures),
        "explained": tuple(level.explained),
        "expected": tuple(level.expected),
        "odds": tuple(level.odds),
    }
    changes |= _spread(state, level, found, since, at)
    after = replace(state, **changes)
    total = sum(after.hours)
    if after.fresh >= 1.0 + total / 16.0 or at - after.folded_at >= DAY:
        return _learn(after, at)
    return after


def _spread(state: State, level: rates.Level, found: list[Arrival], since: float, at: float) -> dict[str, Any]:
    """How far the numbers of polls with news scatter beyond Poisson, and how the rate departs from its mean course."""
    span = at - since
    if span <= 0:
        return {}
    weights, levels = level.weights(), level.levels()
    course = rates.profile_at(level.hours, level.days, level.quiet, at)
    month = levels[2] * course
    follow = sum(odds * one for odds, one in zip(level.odds, levels, strict=True))
    now = sum(level.bursts(weights)) + course * weights[2] * follow
    kept = math.exp(-span / (7 * DAY))
    ratio = min(2.0, math.sqrt(now / month)) if month > 0 else 1.0
    changes: dict[str, Any] = {"variability": state.variability * kept + ratio * (1.0 - kept)}
    if state.clock is not None and found:
        number = sum(arrival.entries for arrival in found)
        due = month * (entries_per_arrival(state) / 3600.0) * span
        if due > 0:
            excess = (number - due) ** 2 / max(due, number, 1.0)
            changes["dispersion"] = max(1.0, min(10.0, state.dispersion + 0.05 * (excess - state.dispersion)))
    return changes


def _learn(state: State, at: float) -> State:
    """Renews profile and lattice from the counts, and lets the counts of past weeks fade."""
    passed = max(0.0, at - state.folded_at)
    hours, hours_seen, days, days_seen, minutes = (
        state.hours,
        state.hours_seen,
        state.days,
        state.days_seen,
        state.minutes,
    )
    changes: dict[str, Any] = {"fresh": 0.0}
    if passed >= DAY or at < state.folded_at:
        kept = math.exp(-passed / rates.PROFILE_SPAN)
        hours, hours_seen, days, days_seen, minutes = (
            tuple(round(value * kept, 3) for value in values)
            for values in (hours, hours_seen, days, days_seen, minutes)
        )
        changes |= {"folded_at": at, "hours": hours, "hours_seen": hours_seen, "peak": state.peak * kept}
        changes |= {"days": days, "days_seen": days_seen, "minutes": minutes}
    hour_profile, day_profile, quiet = rates.learn_profile(hours, hours_seen, days, days_seen)
    lattice, share = find_lattice(minutes)
    changes |= {"hour_profile": hour_profile, "day_profile": day_profile, "quiet": quiet}
    changes |= {"lattice": lattice, "lattice_share": share, "evenness": rates.evenness(hour_profile, day_profile)}
    if not lattice:
        changes["lag"] = LAG_START
    return replace(state, **changes)


def find_lattice(minutes: tuple[float, ...]) -> tuple[tuple[int, ...], float]:
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


def _learn_lag(state: State, date: float, since: float) -> float:
    """How long after its minute an entry on the lattice shows: the longest wait seen, fading.

    An entry that the last poll, made after its date, did not show, came later than that poll. Polling a little late
    costs seconds, a little early a whole round.
    """
    after = min((date - minute * 60.0) % 3600.0 for minute in state.lattice)
    missed = since - date + after
    seen = missed if after < missed < LAG_LIMIT else after if after < LAG_LIMIT else 0.0
    return max(LAG_START, state.lag * LAG_FADE, min(LAG_LIMIT, seen + max(LAG_MARGIN, 0.2 * seen)))


def decide(state: State, now: datetime) -> Decision:
    """When to poll next, and why. Depends on `now` only in that the answer is never before it."""
    moment = now.timestamp()
    if state.last_at is None:
        return Decision(instant(moment), "first", (), "never polled yet", 0.0, 4.0, 4.0, 0.0, 0.0, 0.0)
    last = min(state.last_at, moment)
    since = min(state.clock, last) if state.clock is not None else last
    ahead = plan(state, since)
    choice = Choice(since + snap(state, since, ahead.economy), ahead.reason, ahead.text)
    choice.apply(_ceilings_of_news(state, since))
    choice.apply(limits.hint_floors(state.hints, last, 1.0 / ahead.mean if ahead.mean > 0 else math.inf))
    skipped = limits.skip_to(state.hints, choice.due)
    if skipped > choice.due:
        choice.apply([limits.floor("skip", last, skipped - last, "the feed names hours or days without news")])
    choice.apply(_ceilings(state, last, since, ahead.overflow))
    choice.apply(_floors(state, last, min(ahead.economy, state.policy.max_interval)))
    due = max(choice.due, moment)
    expected, delay = ahead.waiting(due - since)
    return Decision(
        at=instant(due),
        reason=choice.reason,
        bounds=tuple(choice.bounds),
        text=choice.text,
        interval=due - last,
        rate=ahead.now * DAY,
        mean_rate=ahead.mean * DAY,
        expected=expected,
        delay=delay,
        risk=limits.overflow_risk(expected / state.dispersion, state.window / state.dispersion)
        if state.window
        else 0.0,
    )


class Choice:
    """The time chosen so far, and what chose it. Limits are applied in rising precedence."""

    __slots__ = ("bounds", "due", "reason", "text")

    def __init__(self, due: float, reason: str, text: str) -> None:
        self.due, self.reason, self.text = due, reason, text
        self.bounds: list[Bound] = []

    def apply(self, bounds: list[Bound]) -> None:
        """Moves the time to where each limit allows it."""
        for bound in bounds:
            limit = bound.since + bound.seconds
            if limit > self.due if bound.kind == "floor" else limit < self.due:
                self.due, self.reason, self.text = limit, bound.name, bound.text
        self.bounds.extend(bounds)


def _ceilings_of_news(state: State, since: float) -> list[Bound]:
    bounds = []
    if not state.dated and sum(state.explained) < 3.0 and state.first_at is not None:
        unknown = max(UNKNOWN_INTERVAL, (since - state.first_at) / 4.0)
        bounds.append(limits.ceiling("unknown", since, unknown, "its rate is not known yet"))
    if state.window and state.new * 2 >= state.window and state.elapsed > 0:
        half = state.elapsed * state.window / (2.0 * state.new)
        bounds.append(limits.ceiling("burst", since, half, f"{state.new} of the {state.window} entries were new"))
    return bounds


def _ceilings(state: State, last: float, since: float, overflow: float) -> list[Bound]:
    bounds = [limits.ceiling("max", last, state.policy.max_interval, "the longest interval allowed")]
    if overflow < math.inf:
        said = f"{state.window} entries are shown; later, more than that may have come (chance {limits.LOSS:g})"
        bounds.append(limits.ceiling("overflow", since, overflow, said))
    return bounds


def _floors(state: State, last: float, usual: float) -> list[Bound]:
    bounds = []
    if state.fails:
        said = f"{state.fails} {'failure' if state.fails == 1 else 'failures'} in a row"
        bounds.append(limits.floor("back-off", last, limits.back_off(state, usual), said))
    bounds.append(limits.floor("min", last, state.policy.min_interval, "the shortest interval allowed"))
    if state.retry_at is not None and state.retry_at > last:
        said = "the server named the time (Retry-After)"
        bounds.append(limits.floor("retry-after", last, state.retry_at - last, said))
    return bounds


def snap(state: State, since: float, interval: float) -> float:
    """The interval moved to just after a minute on which the publisher posts, where it keeps to such minutes.

    Between two such minutes the nearer one in the geometric sense is best: the m-th costs price + rate m (m - 1) / 2
    per round. What is posted off these minutes is served by its own, longer interval.
    """
    if not state.lattice or not interval < math.inf:
        return interval
    stray = interval / math.sqrt(max(1e-4, 1.0 - state.lattice_share))
    begin = since - state.lag
    target = begin + interval
    before = after = None
    hour = (target // 3600.0) * 3600.0
    for base in (hour - 3600.0, hour, hour + 3600.0):
        for minute in state.lattice:
            point = base + minute * 60.0
            if point <= target:
                before = point
            elif after is None:
                after = point
    if before is None or after is None:
        return interval
    early, late = before - begin, after - begin
    early_works = early > SAME_ARRIVAL and interval * interval <= early * late
    return min(stray, (early if early_works else late))
