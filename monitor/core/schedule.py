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
from datetime import datetime

from monitor.core import schedule_bounds as limits
from monitor.core.schedule_fold import SAME_ARRIVAL, observe
from monitor.core.schedule_plan import plan
from monitor.core.schedule_state import Bound, Decision, State, instant

__all__ = ["decide", "observe"]

UNKNOWN_INTERVAL = 1200.0
DAY = 86400.0


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
    choice.apply(limits.hint_floors(state, last, 1.0 / ahead.mean if ahead.mean > 0 else math.inf))
    skipped = limits.skip_to(state.learnt.skip_hours, state.learnt.skip_days, choice.due)
    if skipped > choice.due:
        choice.apply([limits.floor("skip", last, skipped - last, "the feed names hours or days without news")])
    choice.apply(_ceilings(state, last, since, ahead.overflow))
    choice.apply(_floors(state, last, min(ahead.economy, state.policy.max_interval)))
    if state.learnt.hub:
        choice.bounds.append(
            Bound("websub", "note", 0.0, "the feed names a WebSub hub, which could push its news", last)
        )
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
        risk=limits.overflow_risk(expected / state.learnt.dispersion, state.learnt.window / state.learnt.dispersion)
        if state.learnt.window
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
    window = state.learnt.window
    if not state.learnt.dated and sum(state.explained) < 3.0 and state.first_at is not None:
        unknown = max(UNKNOWN_INTERVAL, (since - state.first_at) / 4.0)
        bounds.append(limits.ceiling("unknown", since, unknown, "its rate is not known yet"))
    if window and state.new * 2 >= window and state.elapsed > 0:
        half = state.elapsed * window / (2.0 * state.new)
        bounds.append(limits.ceiling("burst", since, half, f"{state.new} of the {window} entries were new"))
    return bounds


def _ceilings(state: State, last: float, since: float, overflow: float) -> list[Bound]:
    bounds = [limits.ceiling("max", last, state.policy.max_interval, "the longest interval allowed")]
    if overflow < math.inf:
        said = f"{state.learnt.window} entries are shown; later, more than that may have come (chance {limits.LOSS:g})"
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
    if not state.learnt.lattice or not interval < math.inf:
        return interval
    stray = interval / math.sqrt(max(1e-4, 1.0 - state.learnt.lattice_share))
    begin = since - state.learnt.lag
    target = begin + interval
    before = after = None
    hour = (target // 3600.0) * 3600.0
    for base in (hour - 3600.0, hour, hour + 3600.0):
        for minute in state.learnt.lattice:
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
