"""Sources of one site tell of one another: news in one raises the rate of the others, by what each pair has shown.

A pair is ordered: news in A, and what the next poll of B then found. Of that the chance is learnt that B has news
beyond what its own rate lets expect, and how long it takes to follow. Pure: `now` and all instants are POSIX seconds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

FOLLOW = 7200.0
"""News in B later than this after A's is its own."""
PRIOR_CHANCE, PRIOR_TRIALS = 0.3, 2.0
"""What is believed of a pair that never was tried: enough to try it, little enough to let go after a few misses."""
KEPT = 0.95
"""What each trial leaves of those before: a pair remembers some twenty."""
LEAST_LIFT = 0.05
"""With less the pair has shown that it is none."""
LAG_START = 15.0
LAG_STEP = 0.3
LAG_TRIED = 0.9
"""A poll that found the news shortens the next wait to this share of what it was, to find out how soon is too soon."""
NEWS_KEPT = 8
"""News of so many siblings is held for one source."""
LEAST_GAIN = 0.1
"""A poll is brought forward by this share of its interval, or left where it is."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What news in one source has shown of another; decayed, constant in size.

    `trials` polls of the second came within `FOLLOW` of news in the first, `hits` of them found news, where `chance` of
    them would have done so by the second's own rate. `lag` is in seconds, from the first to the second.
    """

    trials: float = 0.0
    hits: float = 0.0
    chance: float = 0.0
    lag: float = LAG_START

    @property
    def lift(self) -> float:
        """The probability that news in the first means news in the second that its own rate does not explain."""
        lift = self.hits - self.chance + PRIOR_CHANCE * PRIOR_TRIALS
        return max(0.0, min(1.0, lift / (self.trials + PRIOR_TRIALS)))


@dataclass(frozen=True, slots=True)
class News:
    """News in source `of`, found at `at`; `missed_at` is the last poll since that did not find it here."""

    of: int
    at: float
    missed_at: float | None = None


@dataclass(frozen=True, slots=True)
class Stirred:
    """What a source is to look for: news of its siblings since its last poll, and which of them brought it forward."""

    news: tuple[News, ...] = ()
    woken_by: int | None = None

    def to_text(self) -> str | None:
        """As JSON, None where there is nothing to look for."""
        if not self.news:
            return None
        return json.dumps([self.woken_by, [[one.of, one.at, one.missed_at] for one in self.news]])

    @classmethod
    def from_text(cls, text: str | None) -> Stirred:
        """Reads what `to_text` gave."""
        if not text:
            return cls()
        woken_by, news = json.loads(text)
        return cls(tuple(News(*one) for one in news), woken_by)


def stir(before: Stirred, of: int, at: float, *, woken: bool) -> Stirred:
    """Notes news of a sibling; `woken` tells that it brings the next poll forward."""
    news = [one for one in before.news if one.of != of and at - one.at <= FOLLOW][-(NEWS_KEPT - 1) :]
    return Stirred((*news, News(of, at)), of if woken else before.woken_by)


def judge(stirred: Stirred, pairs: dict[int, Pair], *, at: float, found: bool, own: float) -> tuple[Stirred, set[int]]:
    """What a poll at `at` says of the siblings it was to look for: changes `pairs`, by sibling, in place.

    `found` tells whether the poll had news, `own` how probable that was by the source's own rate. Returns what is still
    to be looked for (news that this poll missed may only be late) and the siblings whose pair changed.
    """
    left: list[News] = []
    changed: set[int] = set()
    for one in stirred.news:
        passed = at - one.at
        if not 0.0 <= passed <= FOLLOW:
            continue
        pair = pairs.get(one.of, Pair())
        if one.missed_at is None:
            pair = replace(
                pair,
                trials=pair.trials * KEPT + 1.0,
                hits=pair.hits * KEPT + found,
                chance=pair.chance * KEPT + max(0.0, min(1.0, own)),
            )
            if found and passed <= 1.5 * pair.lag + LAG_START:
                pair = replace(pair, lag=max(LAG_START, LAG_TRIED * pair.lag))
        elif found:  # it followed, later than looked for
            between = (one.missed_at + at) / 2.0 - one.at
            pair = replace(pair, lag=min(FOLLOW, max(LAG_START, pair.lag + LAG_STEP * (between - pair.lag))))
        if one.missed_at is None or found:
            pairs[one.of] = pair
            changed.add(one.of)
        if not found:
            left.append(replace(one, missed_at=at))
    return Stirred(tuple(left)), changed


def wake(
    pair: Pair, *, now: float, last: float, due: float, floor: float, price: float, own: float = 0.0
) -> float | None:
    """When to poll a source after news in its sibling at `now`; None to leave it at `due`.

    The poll at `due` is made early rather than added: of it, the share of the interval not waited out is spent. So with
    `saved` seconds between the two instants it gains lift * saved entry-seconds and costs price * saved / interval.
    `floor` is the instant before which the server, its hints, the policy or failures allow no poll; `price` that of one
    poll, in entry-seconds; `own` the probability that the source has news by then all by itself, which counts for
    nothing here.
    """
    interval = due - last
    at = max(now + pair.lag, floor)
    saved = due - at
    if not (math.isfinite(at) and interval > 0.0 and saved > LEAST_GAIN * interval):
        return None
    if pair.lift < LEAST_LIFT:
        return None
    gain = pair.lift * (1.0 - max(0.0, min(1.0, own))) * saved
    return at if gain > price * saved / interval else None
