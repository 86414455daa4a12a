"""Compares poll schedules at equal numbers of polls: mean delay and lost entries.

Every policy is tuned by its one knob to the same mean number of polls a feed and day. A population of feeds of known
intensity comes first, so that the square-root rule can be given the truth; then recorded publication times, where no
truth is known.

    python benchmarks/schedule.py [--feeds 156] [--budgets 12 48] [--traces DIRECTORY] [--kinds]
"""

from __future__ import annotations

import argparse
import bisect
import csv
import gzip
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from monitor import schedule

DAY = 86400.0
START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()  # a Monday
HISTORY, DAYS, WARM_UP = 35, 28, 7
BIN = 900.0
KINDS = ("steady", "diurnal", "bursts", "half-hour", "regime", "dormant")
SHORTEST, LONGEST = 60.0, DAY


@dataclass
class Feed:
    """One simulated or recorded feed: when entries came, how many it shows, and its true intensity by quarter hour."""

    kind: str
    times: list[float]
    window: int
    begin: float = START
    days: int = DAYS
    intensity: list[float] = field(default_factory=list)
    dates: list[datetime] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dates = [datetime.fromtimestamp(at, UTC) for at in self.times]
        self.root = [0.0, *itertools.accumulate(math.sqrt(rate) * BIN for rate in self.intensity)]
        self.mass = [0.0, *itertools.accumulate(rate * BIN for rate in self.intensity)]

    @property
    def end(self) -> float:
        return self.begin + self.days * DAY


@dataclass
class Result:
    """Polls, entries seen, entry-seconds of delay and entries lost, after the warm-up."""

    polls: int = 0
    seen: int = 0
    delay: float = 0.0
    lost: int = 0
    feed_days: float = 0.0

    def __iadd__(self, other: Result) -> Result:
        self.polls += other.polls
        self.seen += other.seen
        self.delay += other.delay
        self.lost += other.lost
        self.feed_days += other.feed_days
        return self


def poisson(random_: random.Random, mean: float) -> int:
    """A Poisson variate (inversion; means here are small)."""
    if mean > 30:
        return max(0, round(random_.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, random_.random()
    while product > limit:
        count += 1
        product *= random_.random()
    return count


def make(kind: str, random_: random.Random) -> Feed:
    """One feed of a kind, with a history that its window may still show at the first poll."""
    rate = 4.0 * math.exp(random_.gauss(0.0, 1.5)) / DAY
    window = random_.choice((10, 15, 20, 25, 30, 50, 100))
    bins = int((HISTORY + DAYS) * DAY / BIN)
    begin = START - HISTORY * DAY
    course = [1.0] * bins
    if kind in ("diurnal", "half-hour", "regime"):
        zone, night, weekend = random_.randrange(24), random_.uniform(0.02, 0.3), random_.uniform(0.2, 1.0)
        for index in range(bins):
            local = (begin + index * BIN) / 3600.0 + zone
            hour, day = local % 24.0, int((local / 24.0 + 3) % 7)
            day_light = math.exp(-(((hour - 9.5) / 2.5) ** 2) / 2) + math.exp(-(((hour - 15.0) / 3.5) ** 2) / 2)
            course[index] = (night + day_light) * (weekend if day >= 5 else 1.0)
    if kind == "regime":
        turn = int((HISTORY + random_.uniform(WARM_UP + 1, DAYS - 3)) * DAY / BIN)
        factor = random_.choice((0.2, 5.0))
        course = [value * (factor if index >= turn else 1.0) for index, value in enumerate(course)]
    if kind == "dormant":
        rate = 0.04 / DAY
        if random_.random() < 0.5:
            wake = int((HISTORY + random_.uniform(WARM_UP, DAYS - 5)) * DAY / BIN)
            for index in range(wake, min(bins, wake + int(4 * DAY / BIN))):
                course[index] = random_.uniform(50.0, 150.0)
    else:
        mean = sum(course) / bins
        course = [value / mean for value in course]
    if kind == "bursts":
        course = [0.4] * bins
        size = random_.uniform(2.0, 6.0)
        expected = 0.6 * rate * BIN / size
        for index in range(bins):
            if random_.random() < expected:
                length = random_.randrange(4, 13)
                for inside in range(index, min(bins, index + length)):
                    course[inside] += size / (length * BIN) / rate
    intensity = [rate * value for value in course]
    times: list[float] = []
    for index, value in enumerate(intensity):
        at = begin + index * BIN
        if kind == "half-hour":
            if index % 2 == 0:
                number = poisson(random_, BIN * (value + intensity[min(index + 1, bins - 1)]))
                times.extend(at + random_.uniform(0.0, 20.0) for _ in range(number))
        else:
            times.extend(at + random_.random() * BIN for _ in range(poisson(random_, value * BIN)))
    times.sort()
    first = int(HISTORY * DAY / BIN)
    return Feed(kind, times, window, intensity=intensity[first:])


class Policy:
    """A schedule being run on one feed: told of each poll, it says when the next is due."""

    def __init__(self, feed: Feed, knob: float) -> None:
        raise NotImplementedError

    def next(self, at: float, low: int, high: int) -> float:
        """The next poll, after one at `at` that found the entries `low` to `high` of the feed new."""
        raise NotImplementedError


class Fixed(Policy):
    def __init__(self, feed: Feed, knob: float) -> None:
        self.interval = knob

    def next(self, at: float, low: int, high: int) -> float:
        return at + self.interval


class Weekly(Policy):
    """miniflux, entry_frequency: a week over the entries of the last week, times a factor, within bounds."""

    def __init__(self, feed: Feed, knob: float) -> None:
        self.feed, self.knob = feed, knob

    def next(self, at: float, low: int, high: int) -> float:
        count = high - bisect.bisect_left(self.feed.times, at - 7 * DAY, 0, high)
        interval = 7 * DAY / count * self.knob if count else LONGEST
        return at + min(max(interval, SHORTEST), LONGEST)


class Halve(Policy):
    """Half the interval after a poll with news, longer by the knob after one without."""

    def __init__(self, feed: Feed, knob: float) -> None:
        self.interval, self.grow = 3600.0, 1.0 + knob

    def next(self, at: float, low: int, high: int) -> float:
        self.interval = min(max(self.interval * (0.5 if high > low else self.grow), SHORTEST), LONGEST)
        return at + self.interval


class Truth(Policy):
    """The square-root rule over the true intensity, with the overflow bound of the window."""

    def __init__(self, feed: Feed, knob: float) -> None:
        self.feed, self.need = feed, math.sqrt(2.0 * knob)
        self.capacity = schedule.overflow_horizon(1.0, feed.window, 1e-3)

    def next(self, at: float, low: int, high: int) -> float:
        feed = self.feed
        economy = self._when(feed.root, at, self.need)
        return min(economy, self._when(feed.mass, at, self.capacity), at + LONGEST)

    def _when(self, sums: list[float], at: float, need: float) -> float:
        place = (at - self.feed.begin) / BIN
        index = min(int(place), len(sums) - 2)
        target = sums[index] + (sums[index + 1] - sums[index]) * (place - index) + need
        after = bisect.bisect_left(sums, target)
        if after >= len(sums):
            return self.feed.end + 1
        share = (target - sums[after - 1]) / (sums[after] - sums[after - 1])
        return max(self.feed.begin + (after - 1 + share) * BIN, at + 1.0)


class Ours(Policy):
    dated = True

    def __init__(self, feed: Feed, knob: float) -> None:
        self.feed = feed
        self.state = schedule.start(schedule.Policy(SHORTEST, LONGEST, knob))

    def next(self, at: float, low: int, high: int) -> float:
        shown = self.feed.dates[max(0, high - self.feed.window) : high]
        now = datetime.fromtimestamp(at, UTC)
        poll = schedule.Poll(
            at=now,
            entries=shown if self.dated else (),
            new=min(high - low, len(shown)),
            size=len(shown),
            modified=high > low,
        )
        self.state = schedule.observe(self.state, poll)
        return schedule.decide(self.state, now).at.timestamp()


class Undated(Ours):
    dated = False


POLICIES: tuple[tuple[str, type[Policy], float, float], ...] = (
    ("fixed interval", Fixed, SHORTEST, LONGEST),
    ("weekly count (miniflux)", Weekly, 1e-3, 50.0),
    ("halve and grow", Halve, 1e-4, 20.0),
    ("ours", Ours, 1e-1, 1e7),
    ("ours, entries without dates", Undated, 1e-1, 1e7),
    ("true intensity, square root", Truth, 1e-1, 1e7),
)


def run(policy: type[Policy], feeds: list[Feed], knob: float) -> dict[str, Result]:
    """All feeds under one policy: results by kind of feed."""
    results: dict[str, Result] = {}
    for number, feed in enumerate(feeds):
        results.setdefault(feed.kind, Result())
        results[feed.kind] += run_one(policy(feed, knob), feed, number)
    return results


def run_one(policy: Policy, feed: Feed, number: int) -> Result:
    times, counted = feed.times, feed.begin + WARM_UP * DAY
    result = Result(feed_days=feed.days - WARM_UP)
    at = feed.begin + (number * 0.618 % 1.0) * 3600.0
    known = max(0, bisect.bisect_right(times, at) - feed.window)
    first = True
    while at < feed.end:
        high = bisect.bisect_right(times, at, known)
        low = max(known, high - feed.window)
        if at >= counted:
            result.polls += 1
            if not first:
                result.lost += sum(1 for when in times[known:low] if when >= counted)
                for when in times[low:high]:
                    if when >= counted:
                        result.seen += 1
                        result.delay += at - when
        first = False
        at = max(policy.next(at, low, high), at + 1.0)
        known = high
    return result


def total(results: dict[str, Result]) -> Result:
    everything = Result()
    for result in results.values():
        everything += result
    return everything


def tune(policy: type[Policy], feeds: list[Feed], budget: float, low: float, high: float) -> dict[str, Result]:
    """Finds the knob at which the feeds are polled `budget` times a day each, within 0.3 %, and runs with it."""
    lower, upper = math.log(low), math.log(high)
    guess = (lower + upper) / 2.0
    best: dict[str, Result] = {}
    gap = math.inf
    points: list[tuple[float, float]] = []
    for _ in range(14):
        results = run(policy, feeds, math.exp(guess))
        everything = total(results)
        polls = math.log(max(everything.polls, 1) / everything.feed_days / budget)
        if abs(polls) < gap:
            best, gap = results, abs(polls)
        if gap < 0.003:
            break
        points.append((guess, polls))
        lower, upper = (guess, upper) if polls > 0 else (lower, guess)
        guess = (lower + upper) / 2.0
        if len(points) > 1:
            (x0, y0), (x1, y1) = sorted(points, key=lambda point: abs(point[1]))[:2]
            if y0 != y1:
                secant = x0 - y0 * (x1 - x0) / (y1 - y0)
                if lower < secant < upper:
                    guess = secant
    return best


def table(feeds: list[Feed], budgets: list[float], names: list[str], kinds: bool) -> None:
    for budget in budgets:
        print(f"\n{len(feeds)} feeds, {budget:g} polls a feed and day")
        print(f"{'policy':30} {'polls':>6} {'delay, min':>10} {'lost %':>7} {'to truth':>8} {'to weekly':>9}")
        rows = []
        for name, policy, low, high in POLICIES:
            if name not in names:
                continue
            rows.append((name, tune(policy, feeds, budget, low, high)))
        delays = {name: total(results).delay / max(1, total(results).seen) for name, results in rows}
        for name, results in rows:
            everything = total(results)
            lost = 100.0 * everything.lost / max(1, everything.lost + everything.seen)
            cells = [
                f"{delays[name] / delays[other]:.3f}" if other in delays else "-"
                for other in ("true intensity, square root", "weekly count (miniflux)")
            ]
            print(
                f"{name:30} {everything.polls / everything.feed_days:6.2f} {delays[name] / 60:10.2f} {lost:7.3f}"
                f" {cells[0]:>8} {cells[1]:>9}"
            )
        if kinds:
            names_of_kinds = sorted({kind for _, results in rows for kind in results})
            print(f"{'':30} " + " ".join(f"{kind[:14]:>22}" for kind in names_of_kinds))
            for name, results in rows:
                cells = [
                    f"{one.polls / one.feed_days:7.1f} {one.delay / max(1, one.seen) / 60:6.1f}m"
                    f" {100 * one.lost / max(1, one.seen):5.2f}%"
                    for one in (results[kind] for kind in names_of_kinds)
                ]
                print(f"{name:30} " + " ".join(f"{cell:>22}" for cell in cells))


def read_trace(path: Path) -> Iterator[Feed]:
    """The sources of one trace, `source,published_utc,url_hash`: the last 28 days of each, its history before."""
    opener = gzip.open if path.suffix == ".gz" else open
    times: dict[str, set[tuple[float, str]]] = {}
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.fromisoformat(row["published_utc"].replace("Z", "+00:00")).timestamp()
            times.setdefault(row["source"], set()).add((at, row["url_hash"]))
    random_ = random.Random(path.name)
    for source in sorted(times):
        all_times = sorted(at for at, _ in times[source])
        begin = max(all_times[0] + DAY, all_times[-1] - DAYS * DAY)
        if all_times[-1] - begin >= (DAYS - 1) * DAY and len(all_times) - bisect.bisect(all_times, begin) >= 20:
            yield Feed(path.name.split(".")[0], all_times, random_.choice((20, 25, 50)), begin, DAYS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--feeds", type=int, default=156)
    parser.add_argument("--budgets", type=float, nargs="+", default=[12.0, 48.0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policies", nargs="+", default=[name for name, *_ in POLICIES])
    parser.add_argument("--traces", type=Path, default=None, help="a directory of publication times as csv or csv.gz")
    parser.add_argument("--kinds", action="store_true", help="also by kind of feed")
    options = parser.parse_args()
    random_ = random.Random(options.seed)
    if options.feeds:
        feeds = [make(KINDS[number % len(KINDS)], random_) for number in range(options.feeds)]
        table(feeds, options.budgets, options.policies, options.kinds)
    if options.traces:
        recorded = [
            feed
            for path in sorted(options.traces.glob("*.csv*"))
            if "first-seen" not in path.name
            for feed in read_trace(path)
        ]
        names = [name for name in options.policies if not name.startswith("true")]
        print("\nrecorded publication times")
        least = total(run(Fixed, recorded, 60.0))
        share = 100.0 * least.lost / max(1, least.lost + least.seen)
        print(f"a poll a minute would still lose {share:.3f} %: more entries of one minute than the document shows")
        table(recorded, options.budgets, names, options.kinds)


if __name__ == "__main__":
    main()
