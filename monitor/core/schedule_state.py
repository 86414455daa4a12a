"""The values of the poll schedule: settings, what a poll showed, what is remembered, what is decided.

`State` is all that is remembered of one document. Its size does not depend on how long or how often the document was
polled: counts decay, nothing is listed. What only news changes is a part by itself, `Learnt`, with its text kept: most
polls find nothing, and then it is neither written nor, for the greater part, even read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

from monitor.core.schedule_population import USUAL, Population

SCALES = (1 / 3, 2.0, 10.0, 60.0, 672.0)
"""Hours over which the five counts of arrivals decay: from a burst to a month."""
ODDS = (0.10, 0.25, 0.65)
LAG_START = 30.0
TALLIES = (24, 24, 7, 7, 60)
"""Sizes of the five counts of a tally: arrivals and hours watched by hour, the same by weekday, arrivals by minute."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user wants. `min_interval` and `max_interval` in seconds; `price` in entry-seconds of delay per poll.

    At a price of 600 a poll is made where it spares the waiting entries 600 seconds in sum: ten entries a minute
    each, or one entry ten minutes. `price_for` finds the price that meets a delay or a budget.

    Raises ValueError for intervals or a price that are not positive and finite, or for a minimum over the maximum.
    """

    min_interval: float = 60.0
    max_interval: float = 86400.0
    price: float = 600.0

    def __post_init__(self) -> None:
        values = (self.min_interval, self.max_interval, self.price)
        if not all(math.isfinite(value) and value > 0 for value in values):
            raise ValueError("min_interval, max_interval and price must be positive and finite")
        if self.min_interval > self.max_interval:
            raise ValueError(f"min_interval {self.min_interval:g} is over max_interval {self.max_interval:g}")


@dataclass(frozen=True, slots=True)
class Hints:
    """What the server and the document say of when to come back. Durations in seconds, None where not said.

    `max_age` is freshness by Cache-Control or Expires (RFC 9111, section 4.2); `ttl`, `skip_hours` (UTC, 0 to 23) and
    `skip_days` (Monday 0) are RSS 2.0; `update_period` is `sy:updatePeriod` over `sy:updateFrequency`; `retry_at` is
    Retry-After (RFC 9110, section 10.2.3) as an instant; `hub` tells that a WebSub hub is named.
    """

    max_age: float | None = None
    ttl: float | None = None
    update_period: float | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    retry_at: datetime | None = None
    hub: bool = False


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll showed. `entries` are the dates (aware) of all entries shown that have one, in any order.

    `new` counts the entries unknown before, `size` those shown (the window). `modified` is False for a 304 or an
    unchanged body. A `failed` poll showed nothing. `hints` None leaves the hints of the last poll in force, except
    Retry-After, which holds for one poll.
    """

    at: datetime
    entries: Sequence[datetime] = ()
    new: int = 0
    size: int = 0
    modified: bool = True
    failed: bool = False
    hints: Hints | None = None


class Bound(NamedTuple):
    """One limit on the next poll: `at` or later (`floor`), or `at` or earlier (`ceiling`), and why, in words; or a fact
    that limits nothing (`note`).

    `seconds` is the limit counted from the poll at `since` (POSIX seconds): the last one, or the last that succeeded.
    """

    name: str
    kind: str
    seconds: float
    text: str
    since: float = 0.0

    @property
    def at(self) -> datetime:
        """The limit as an instant."""
        return instant(self.since + self.seconds)


@dataclass(frozen=True, slots=True)
class Decision:
    """When to poll next, and why.

    `at` is never before `now`. `reason` is the name of what decided (``economy`` or the name of a bound), `text` the
    same in words. `interval` is in seconds since the last poll, `rate` in entries a day as expected for the coming
    hour, `mean_rate` over the week. `expected` is the number of entries expected to wait at `at`, `delay` the mean
    seconds that they will have waited, `risk` the probability that the window overflows before `at`.
    """

    at: datetime
    reason: str
    bounds: tuple[Bound, ...]
    text: str
    interval: float
    rate: float
    mean_rate: float
    expected: float
    delay: float
    risk: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is known of a document that only news, or the end of a day, changes. Instants are POSIX seconds."""

    mark: float | None = None
    """Newest entry date counted, as published."""
    last_event: float | None = None
    dated: bool = False
    window: int = 0
    """Entries that the document shows when full, as far as known."""
    shown: int = 0
    batch: tuple[float, float] = (0.0, 0.0)
    """Entries, and arrivals they came in (entries within a minute are one arrival)."""
    peak: float = 0.0
    """Most arrivals that any two hours brought (decayed count), fading over weeks."""
    dispersion: float = 1.0
    tally: str = ""
    """The counts of `TALLIES`, decayed, in thousandths; "" before the first. Text, as most polls need none of it."""
    seen_to: float = 0.0
    """Up to when the hours watched are in the tally."""
    folded_at: float = 0.0
    fresh: float = 0.0
    hour_profile: tuple[float, ...] = (1.0,) * 24
    day_profile: tuple[float, ...] = (1.0,) * 7
    evenness: float = 1.0
    """Mean of the square root of the profile."""
    quiet: int = 0
    """Hour (UTC, -11 to 12) at which the publisher's day begins: `hour_profile[0]` is this hour."""
    lattice: tuple[int, ...] = ()
    lattice_share: float = 0.0
    lag: float = LAG_START
    """Seconds after its date that an entry on the lattice shows."""
    skew: tuple[float, float, int] = (0.0, 0.0, 0)
    """Bounds, in seconds, of a constant error of the dates, and the polls in a row that agree on them."""
    ttl: float | None = None
    update_period: float | None = None
    skip_hours: tuple[int, ...] = ()
    skip_days: tuple[int, ...] = ()
    hub: bool = False
    text: str = field(default="", init=False, compare=False, repr=False)

    def tallies(self) -> list[list[float]]:
        """The counts of the tally, one list for each of `TALLIES`."""
        if not self.tally:
            return [[0.0] * size for size in TALLIES]
        numbers = [int(number) / 1000.0 for number in self.tally.split()]
        found, start = [], 0
        for size in TALLIES:
            found.append(numbers[start : start + size])
            start += size
        return found


def write_tally(tallies: Sequence[Sequence[float]]) -> str:
    """The counts as `Learnt.tally` holds them."""
    return " ".join([str(int(count * 1000.0 + 0.5)) for counts in tallies for count in counts])


@dataclass(frozen=True, slots=True)
class State:
    """What is remembered of one document. Instants are POSIX seconds, exposures hours, counts decayed.

    Made by `start`, moved on by `observe`; read the figures through `decide`, not here.
    """

    policy: Policy
    seed: int = 0
    polls: int = 0
    found: int = 0
    """Polls that found news, the first not counted."""
    fails: int = 0
    first_at: float | None = None
    last_at: float | None = None
    clock: float | None = None
    """Up to when arrivals are accounted for: the last poll that succeeded."""
    new: int = 0
    elapsed: float = 0.0
    """Seconds between the last two polls that succeeded, and `new` the arrivals between them."""
    counts: tuple[float, ...] = (0.0,) * 5
    exposures: tuple[float, ...] = (0.0,) * 5
    explained: tuple[float, ...] = (0.0,) * 3
    expected: tuple[float, ...] = (0.0,) * 3
    """Arrivals that the last minutes, the last hours and the level explain, and those they announced."""
    odds: tuple[float, ...] = ODDS
    """How far the level follows the last hours, the last days, the last month; they sum to one."""
    variability: float = 1.0
    """Mean of the square root of the rate over its mean course: below 1 where bursts come and go."""
    prior: tuple[float, float] = (USUAL.rate, USUAL.weight)
    """The population's mean rate, in arrivals an hour, and how many arrivals it counts for."""
    max_age: float | None = None
    retry_at: float | None = None
    learnt: Learnt = Learnt()


_LEARNT = tuple(name for name in Learnt.__dataclass_fields__ if name != "text")
_learnt_values = attrgetter(*_LEARNT)
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
FORM = 1
"""The form of the text that `dumps` writes."""


def start(policy: Policy, seed: int = 0, population: Population = USUAL) -> State:
    """The state of a document never polled. `seed` (any integer, say a row id) spreads retries of many documents."""
    prior = (population.rate, population.weight)
    return State(policy=policy, seed=seed, prior=prior, learnt=Learnt(day_profile=population.days))


def with_policy(state: State, policy: Policy) -> State:
    """The same knowledge under other settings, as after a reload of the configuration or a new price."""
    return state if policy == state.policy else replace(state, policy=policy)


def dumps(state: State) -> str:
    """The state as JSON text, about 1.5 KB: one array, what every poll changes first, what news changes last."""
    policy, learnt = state.policy, state.learnt
    head = _encode(
        (
            FORM,
            policy.min_interval,
            policy.max_interval,
            policy.price,
            state.seed,
            state.polls,
            state.found,
            state.fails,
            state.first_at,
            state.last_at,
            state.clock,
            state.new,
            state.elapsed,
            state.counts,
            state.exposures,
            state.explained,
            state.expected,
            state.odds,
            state.variability,
            state.prior,
            state.max_age,
            state.retry_at,
        )
    )
    return f"{head[:-1]},\n{learnt.text or _encode(_learnt_values(learnt))}]"


def loads(text: str) -> State:
    """The state from the text that `dumps` gave. Raises ValueError, KeyError or TypeError where it is none."""
    data = json.loads(text)
    if not isinstance(data, list) or len(data) != 23 or data[0] != FORM:
        raise ValueError("not the state of a schedule")
    shortest, longest, price, seed, polls, found, fails, first_at, last_at, clock, new, elapsed = data[1:13]
    counts, exposures, explained, expected, odds, variability, prior, max_age, retry_at, known = data[13:]
    values: list[Any] = [tuple(value) if type(value) is list else value for value in known]
    learnt = Learnt(*values)
    object.__setattr__(learnt, "text", text[text.index("\n") + 1 : -1])
    return State(
        Policy(shortest, longest, price),
        seed,
        polls,
        found,
        fails,
        first_at,
        last_at,
        clock,
        new,
        elapsed,
        tuple(counts),
        tuple(exposures),
        tuple(explained),
        tuple(expected),
        tuple(odds),
        variability,
        (prior[0], prior[1]),
        max_age,
        retry_at,
        learnt,
    )


def instant(seconds: float) -> datetime:
    """POSIX seconds as an aware datetime, clamped to what datetime can hold."""
    return datetime.fromtimestamp(min(max(seconds, -6e10), 2.5e11), UTC)
