"""Limits on the next poll: the window, the server's hints, failures.

Every function here gives seconds or instants; which limit wins over which is decided in `schedule.decide`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection
from functools import lru_cache

from monitor.core.schedule_state import Bound, State

LOSS = 1e-3
HINT_LIMIT = 6 * 3600.0
"""No hint of freshness keeps us away longer: a ttl of a week would blind us."""
PERIOD_DEFAULT, PERIOD_DEFAULT_LIMIT = 3600.0, 900.0
RETRY_LIMIT = 86400.0
SKIP_LIMIT = 86400.0
WINDOW_LIMIT = 5000


@lru_cache(maxsize=8192)
def overflow_capacity(window: int, loss: float) -> float:
    """The largest mean m with P(Poisson(m) > window) <= loss, in entries.

    Exact, by bisection of the sum of the probabilities; within 1e-4 of itself. Windows over 5,000 count as 5,000.
    """
    window = min(max(window, 0), WINDOW_LIMIT)
    low, high = 0.0, float(window + 1)
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        if overflow_risk(middle, window) <= loss:
            low = middle
        else:
            high = middle
        if high < 1e-9:
            break
    return low


def overflow_risk(mean: float, window: float) -> float:
    """P(Poisson(mean) > window): the chance that more entries arrive than the document shows."""
    if mean <= 0:
        return 0.0
    top = math.floor(window) + 1
    if mean >= top:
        return 1.0 if mean > 4 * top + 40 else 1.0 - _below(mean, top)
    term = math.exp(top * math.log(mean) - mean - math.lgamma(top + 1))
    total, count = term, top
    while term > 1e-12 * total and count < top + 2000:
        count += 1
        term *= mean / count
        total += term
    return min(1.0, total)


def _below(mean: float, top: int) -> float:
    logs = -mean
    total = 0.0
    for count in range(top):
        total += math.exp(logs)
        logs += math.log(mean) - math.log(count + 1)
    return min(1.0, total)


def overflow_horizon(rate: float, window: int, loss: float = LOSS) -> float:
    """Longest poll interval that keeps the chance of losing an entry below `loss`.

    A feed shows its latest `window` entries; entries arriving at `rate` per second overflow it when more than
    `window` arrive between two polls. Solves P(Poisson(rate * t) > window) <= loss for t.

    Returns seconds; `inf` for a rate of zero. Source: RFC 4287 has no window, it is observed; bound: exact tail.
    """
    return overflow_capacity(window, loss) / rate if rate > 0 else math.inf


def jitter(state: State) -> float:
    """A fraction in [0, 1) that differs by document and by failure, and is the same for the same state."""
    return zlib.crc32(f"{state.seed}:{state.fails}:{state.polls}".encode()) / 2**32


def back_off(state: State, usual: float) -> float:
    """Seconds to wait after `state.fails` failures in a row: a quarter of the usual interval, doubled each time.

    Up to a quarter is added by `jitter`; never over `max_interval`.
    """
    policy = state.policy
    first = max(policy.min_interval, min(usual, policy.max_interval) / 4.0)
    grown = first * 2.0 ** min(state.fails - 1, 40) * (1.0 + 0.25 * jitter(state))
    return min(policy.max_interval, grown)


def hint_floors(state: State, since: float, gap: float) -> list[Bound]:
    """Floors from the hints in force, counted from the last poll at `since`; `gap` is the mean seconds between news.

    An update period tells how often the document changes: where it changes more often, the hint is refuted. The
    period of an hour is what most publishing systems put into every feed, and is worth a quarter of an hour.
    """
    found = []
    for name, value in (("max-age", state.max_age), ("ttl", state.learnt.ttl)):
        if value and value > 0:
            said = f"the {'server' if name == 'max-age' else 'feed'} asks for {span(value)} between polls ({name})"
            if value > HINT_LIMIT:
                said += f", of which {span(HINT_LIMIT)} are believed"
            found.append(floor(name, since, min(value, HINT_LIMIT), said))
    period = state.learnt.update_period
    if period and period > 0:
        allowed, said = min(period, HINT_LIMIT), f"the feed says that it is updated every {span(period)} (sy)"
        if period == PERIOD_DEFAULT:
            allowed, said = PERIOD_DEFAULT_LIMIT, said + ", which most publishing systems say of every feed"
        if gap < allowed:
            allowed, said = gap, said + f", but news comes every {span(gap)}"
        found.append(floor("sy", since, allowed, said))
    return found


def skip_to(skip_hours: Collection[int], skip_days: Collection[int], at: float) -> float:
    """The first instant from `at` on that is in no skipped hour or day (UTC); `at` where that is over a day away."""
    if not skip_hours and not skip_days:
        return at
    moment = at
    while moment - at <= SKIP_LIMIT:
        hour = int(moment / 3600.0 % 24.0) % 24
        day = int((moment / 86400.0 + 3.0) % 7.0) % 7
        if hour not in skip_hours and day not in skip_days:
            return moment
        moment = (moment // 3600.0 + 1.0) * 3600.0
    return at


def floor(name: str, since: float, seconds: float, text: str) -> Bound:
    """A limit that the next poll is not to come before."""
    return Bound(name, "floor", seconds, text, since)


def ceiling(name: str, since: float, seconds: float, text: str) -> Bound:
    """A limit that the next poll is not to come after."""
    return Bound(name, "ceiling", seconds, text, since)


def span(seconds: float) -> str:
    """A duration as people say it: ``40 s``, ``12 min``, ``3.5 h``, ``2 d``."""
    for unit, size, upto in (("s", 1.0, 100.0), ("min", 60.0, 6000.0), ("h", 3600.0, 172800.0)):
        if seconds < upto:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400.0:.3g} d" if seconds < 1e9 else "no end"
