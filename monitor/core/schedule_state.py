"""The values of the poll schedule: settings, what a poll showed, what is remembered, what is decided.

`State` is all that is remembered of one document. Its size does not depend on how long or how often the document was
polled: counts decay, nothing is listed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

SCALES = (1 / 3, 2.0, 10.0, 60.0, 672.0)
"""Hours over which the five counts of arrivals decay: from a burst to a month."""
ODDS = (0.10, 0.25, 0.65)
LAG_START = 30.0


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


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit on the next poll: `at` or later (`floor`), or `at` or earlier (`ceiling`), and why, in words.

    `seconds` is the limit counted from the poll at `since` (POSIX seconds): the last one, or the last that succeeded.
    """

    name: str
    kind: str
    at: datetime
    seconds: float
    text: str
    since: float = 0.0


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
class State:
    """What is remembered of one document. Instants are POSIX seconds, exposures hours, counts decayed.

    Made by `start`, moved on by `observe`; read the figures through `decide`, not here.
    """

    policy: Policy
    seed: int = 0
    polls: int = 0
    fails: int = 0
    first_at: float | None = None
    last_at: float | None = None
    clock: float | None = None
    """Up to when arrivals are accounted for: the last poll that succeeded."""
    mark: float | None = None
    """Newest entry date counted, as published."""
    last_event: float | None = None
    dated: bool = False
    window: int = 0
    """Entries that the document shows when full, as far as known."""
    shown: int = 0
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
    batch: tuple[float, float] = (0.0, 0.0)
    """Entries, and arrivals they came in (entries within a minute are one arrival)."""
    peak: float = 0.0
    """Most arrivals that any two hours brought (decayed count), fading over weeks."""
    dispersion: float = 1.0
    variability: float = 1.0
    """Mean of the square root of the rate over its mean course: below 1 where bursts come and go."""
    hours: tuple[float, ...] = (0.0,) * 24
    hours_seen: tuple[float, ...] = (0.0,) * 24
    days: tuple[float, ...] = (0.0,) * 7
    days_seen: tuple[float, ...] = (0.0,) * 7
    minutes: tuple[float, ...] = (0.0,) * 60
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
    hints: Hints = Hints()
    retry_at: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The state as a dict of JSON values; `from_json` reads it back equal."""
        out = {name: getattr(self, name) for name in _NAMES}
        policy, hints = self.policy, self.hints
        out["policy"] = {
            "min_interval": policy.min_interval,
            "max_interval": policy.max_interval,
            "price": policy.price,
        }
        out["hints"] = {
            "max_age": hints.max_age,
            "ttl": hints.ttl,
            "update_period": hints.update_period,
            "skip_hours": sorted(hints.skip_hours),
            "skip_days": sorted(hints.skip_days),
            "hub": hints.hub,
        }
        return {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        """Reads what `to_json` gave. Unknown keys are left out, missing ones take their defaults.

        Raises KeyError or TypeError where `data` is no state.
        """
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in _KNOWN
        }
        hints = dict(data.get("hints", {}))
        hints["skip_hours"] = frozenset(hints.get("skip_hours", ()))
        hints["skip_days"] = frozenset(hints.get("skip_days", ()))
        known["hints"] = Hints(**hints)
        known["policy"] = Policy(**data["policy"])
        return cls(**known)


_NAMES = tuple(item.name for item in fields(State))
_KNOWN = frozenset(_NAMES)


def start(policy: Policy, seed: int = 0) -> State:
    """The state of a document never polled. `seed` (any integer, say a row id) spreads retries of many documents."""
    return State(policy=policy, seed=seed)


def with_policy(state: State, policy: Policy) -> State:
    """The same knowledge under other settings, as after a reload of the configuration or a new price."""
    return replace(state, policy=policy)


def dumps(state: State) -> str:
    """The state as JSON text, about 2 KB."""
    return json.dumps(state.to_json(), separators=(",", ":"))


def loads(text: str) -> State:
    """The state from the text that `dumps` gave. Raises ValueError, KeyError or TypeError where it is none."""
    return State.from_json(json.loads(text))


def instant(seconds: float) -> datetime:
    """POSIX seconds as an aware datetime, clamped to what datetime can hold."""
    return datetime.fromtimestamp(min(max(seconds, -6e10), 2.5e11), UTC)
