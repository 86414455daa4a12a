"""The price of a poll that meets a mean delay or a number of polls for a whole population.

With polls at the density sqrt(r(t) / (2 price)), a document whose rate has the mean root R = mean of sqrt(r(t)) is
polled R / sqrt(2 price) times a second, and its entries wait R sqrt(price / 2) entry-seconds a second: both need but
one number a document, besides the limits on its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from monitor.core.schedule_bounds import HINT_LIMIT
from monitor.core.schedule_plan import UPPER, burst_horizon, capacity_of, entries_per_arrival
from monitor.core.schedule_rate import month_rate
from monitor.core.schedule_state import Policy, State

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a population costs and gets at a price: polls a day, entries a day, mean delay of an entry in seconds."""

    price: float
    polls: float
    entries: float
    delay: float


class Demand(NamedTuple):
    """What the price needs to know of one document: the mean root of its rate (per second), its shortest and longest
    interval (seconds), its rate (entries a second)."""

    root: float
    shortest: float
    longest: float
    rate: float


def price_for(
    states: Iterable[State | Demand],
    now: datetime,
    *,
    target_delay: float | None = None,
    requests_per_day: float | None = None,
) -> float:
    """The price at which this population has `target_delay` seconds of mean delay, or spends `requests_per_day`.

    Exactly one of the two is given, and positive. Where the limits on the intervals keep a target out of reach, the
    price is the one that comes nearest: the lowest that still gains delay, or the highest that still spares polls.
    An empty population has the default price. `demand` of a state may stand for it, where all would not fit in memory.
    Raises ValueError for neither or both, or a number that is not positive.
    """
    given = target_delay if requests_per_day is None else requests_per_day
    if (target_delay is None) == (requests_per_day is None) or given is None or not 0 < given < math.inf:
        raise ValueError("give either target_delay or requests_per_day, as a positive number")
    groups = _groups(states, now)
    if not groups:
        return Policy().price
    low = math.log(min((shortest * root) ** 2 / 2 for _, root, shortest, _, _ in groups))
    high = math.log(max((longest * root) ** 2 / 2 for _, root, _, longest, _ in groups))
    for _ in range(60):
        middle = (low + high) / 2.0
        polls, entries, waited = _sums(groups, math.exp(middle))
        too_dear = polls * DAY < given if requests_per_day is not None else waited > given * entries
        low, high = (low, middle) if too_dear else (middle, high)
    return math.exp((low + high) / 2.0)


def outlook(states: Iterable[State | Demand], now: datetime, price: float) -> Outlook:
    """What the population would cost and get at another price."""
    polls, entries, waited = _sums(_groups(states, now), price)
    return Outlook(price, polls * DAY, entries * DAY, waited / entries if entries > 0 else 0.0)


def demand(state: State, now: datetime) -> Demand | None:
    """What a document asks for; None where the server bars it by Retry-After beyond `now`: it costs nothing."""
    if state.retry_at is not None and state.retry_at > now.timestamp():
        return None
    learnt, policy = state.learnt, state.policy
    rate = month_rate(state.counts, state.exposures, state.prior) * entries_per_arrival(state) / 3600.0
    longest = policy.max_interval
    if learnt.window:
        longest = min(longest, capacity_of(state) / (rate * UPPER), burst_horizon(state))
    shortest = max(policy.min_interval, min(HINT_LIMIT, max(state.max_age or 0.0, learnt.ttl or 0.0)))
    return Demand(state.variability * learnt.evenness * math.sqrt(rate), shortest, max(longest, shortest), rate)


def _groups(states: Iterable[State | Demand], now: datetime) -> list[tuple[float, float, float, float, float]]:
    """Documents of like rate and limits, together: (number, mean root, shortest, longest interval, sum of rates)."""
    found: dict[tuple[int, int, float], list[float]] = {}
    for state in states:
        one = demand(state, now) if isinstance(state, State) else state
        if one is None:
            continue
        root, shortest, longest, rate = one
        key = (round(64 * math.log(root)), round(16 * math.log(longest)), shortest)
        group = found.get(key)
        if group is None:
            found[key] = [1.0, root, longest, rate]
        else:
            group[0] += 1.0
            group[1] += root
            group[2] += longest
            group[3] += rate
    return [(n, root / n, key[2], longest / n, rate) for key, (n, root, longest, rate) in found.items()]


def _sums(groups: list[tuple[float, float, float, float, float]], price: float) -> tuple[float, float, float]:
    """Polls and entries a second, and entry-seconds of waiting a second, at a price."""
    polls = entries = waited = 0.0
    scale = math.sqrt(2.0 * price)
    for number, root, shortest, longest, rate in groups:
        interval = min(max(scale / root, shortest), longest)
        polls += number / interval
        entries += rate
        waited += number * root * root * interval / 2.0
    return polls, entries, waited
