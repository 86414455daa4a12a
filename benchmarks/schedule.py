"""Compares poll schedules at equal numbers of polls: mean delay and lost entries.

Every policy is tuned by its one knob to the same mean number of polls a feed and day. A population of feeds of known
intensity (`schedule_feeds` says which) comes first, so that the square-root rule can be given the truth; then captured
feeds and recorded publication times, where no truth is known. 28 days, of which the first seven count for nothing.

    python benchmarks/schedule.py [--parts costs population series traces] [--sigmas 1.0 1.5] [--budgets 12 48]
"""

from __future__ import annotations

import argparse
import bisect
import math
import random
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from schedule_feeds import BIN, DAY, DAYS, KINDS, LONGEST, SHORTEST, Feed, make, read_series, read_trace

from monitor import schedule

TRUTH, WEEKLY = "true intensity, square root", "weekly count (miniflux)"


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


class Policy:
    """A schedule being run on one feed: told of each poll, it says when the next is due."""

    def __init__(self, feed: Feed, knob: float) -> None:
        raise NotImplementedError

    def renew(self, population: schedule.Population) -> None:
        """Takes what all feeds of the run have in common, once a day."""

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


class Sketch(Policy):
    """Decayed rate, hour profile, square root, overflow guard: the thirty lines that anyone would write first."""

    def __init__(self, feed: Feed, knob: float) -> None:
        self.feed, self.need = feed, math.sqrt(2.0 * knob)
        self.capacity = (math.sqrt(feed.window + 1) - 1.55) ** 2
        self.count, self.exposure, self.last = 0.5, 0.5 / 4.0, math.nan
        self.hours = [2.0] * 24

    def next(self, at: float, low: int, high: int) -> float:
        if math.isnan(self.last):
            low = max(0, high - self.feed.window)
            self.last = (self.feed.times[low] if low < high else at) - 1.0
        passed = (at - self.last) / DAY
        kept = math.exp(-passed / 7.0)
        self.count, self.exposure = self.count * kept + high - low, self.exposure * kept + 7.0 * (1.0 - kept)
        self.last = at
        for when in self.feed.times[low:high]:
            self.hours[int(when / 3600.0) % 24] += 1.0
        rate, mean = self.count / self.exposure / DAY, sum(self.hours) / 24.0
        reached = came = 0.0
        when = at
        while reached < self.need and came < self.capacity and when < at + LONGEST:
            now = rate * self.hours[int(when / 3600.0) % 24] / mean
            reached, came, when = reached + math.sqrt(now) * 300.0, came + 1.5 * now * 300.0, when + 300.0
        return max(when, at + SHORTEST)


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
        self.feed, self.population = feed, schedule.USUAL
        self.state = schedule.start(schedule.Policy(SHORTEST, LONGEST, knob))

    def renew(self, population: schedule.Population) -> None:
        self.population = population

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
        self.state = schedule.observe(self.state, poll, self.population)
        return schedule.decide(self.state, now).at.timestamp()


class Undated(Ours):
    dated = False


POLICIES: tuple[tuple[str, type[Policy], float, float], ...] = (
    ("fixed interval", Fixed, DAY, -1.0),
    ("weekly count (miniflux)", Weekly, 4.0, -1.0),
    ("halve and grow", Halve, 6.0, -0.7),
    ("sketch", Sketch, 3.3e5, -2.0),
    ("ours", Ours, 3.3e5, -2.0),
    ("ours, entries without dates", Undated, 3.3e5, -2.0),
    (TRUTH, Truth, 3.3e5, -2.0),
)
"""Name, policy, and the knob for 1 poll a day with the power of the polls a day that it goes by: a first guess."""


class Course:
    """One feed being polled under one policy."""

    def __init__(self, policy: Policy, feed: Feed, number: int) -> None:
        self.policy, self.feed = policy, feed
        self.counted = feed.begin + feed.warm_up * DAY
        self.at = feed.begin + (number * 0.618 % 1.0) * 3600.0
        self.known = max(0, bisect.bisect_right(feed.times, self.at) - feed.window)
        self.first = True
        self.result = Result(feed_days=feed.days - feed.warm_up)

    def run(self, until: float) -> None:
        """Polls as the policy asks, up to an instant."""
        times, result, policy, window = self.feed.times, self.result, self.policy, self.feed.window
        at, known, counted = self.at, self.known, self.counted
        while at < until:
            high = bisect.bisect_right(times, at, known)
            low = max(known, high - window)
            if at >= counted:
                result.polls += 1
                if not self.first:
                    result.lost += sum(1 for when in times[known:low] if when >= counted)
                    for when in times[low:high]:
                        if when >= counted:
                            result.seen += 1
                            result.delay += at - when
            self.first = False
            at = max(policy.next(at, low, high), at + 1.0)
            known = high
        self.at, self.known = at, known


def run(policy: type[Policy], feeds: list[Feed], knob: float) -> dict[str, Result]:
    """All feeds under one policy: results by kind of feed. The population is learnt anew each day, as by the engine."""
    courses = [Course(policy(feed, knob), feed, number) for number, feed in enumerate(feeds)]
    days = math.ceil(max(feed.days for feed in feeds)) if issubclass(policy, Ours) else 1
    for day in range(1, days + 1):
        for course in courses:
            feed = course.feed
            course.run(feed.end if day == days else min(feed.end, feed.begin + day * DAY))
        if day < days:
            common = schedule.population([one.policy.state for one in courses if isinstance(one.policy, Ours)])
            for course in courses:
                course.policy.renew(common)
    results: dict[str, Result] = {}
    for course in courses:
        results.setdefault(course.feed.kind, Result())
        results[course.feed.kind] += course.result
    return results


def total(results: dict[str, Result]) -> Result:
    everything = Result()
    for result in results.values():
        everything += result
    return everything


def tune(policy: type[Policy], feeds: list[Feed], budget: float, one: float, power: float) -> dict[str, Result]:
    """Finds the knob at which the feeds are polled `budget` times a day each, within 0.5 %, and runs with it.

    Starts from the power law given and goes on by secants in logarithms.
    """
    guess = math.log(one) + power * math.log(budget)
    best: dict[str, Result] = {}
    gap = math.inf
    points: list[tuple[float, float]] = []
    for _ in range(10):
        results = run(policy, feeds, math.exp(guess))
        everything = total(results)
        polls = math.log(max(everything.polls, 1) / everything.feed_days / budget)
        if abs(polls) < gap:
            best, gap = results, abs(polls)
        if gap < 0.005:
            break
        points.append((guess, polls))
        slope = 1.0 / power
        if len(points) > 1:
            (x0, y0), (x1, y1) = sorted(points, key=lambda point: abs(point[1]))[:2]
            if x0 != x1 and 4.0 * slope < (y1 - y0) / (x1 - x0) < 0.1 * slope:
                slope = (y1 - y0) / (x1 - x0)
        x, y = min(points, key=lambda point: abs(point[1]))
        guess = x - y / slope
        if any(abs(guess - x) < 1e-6 for x, _ in points):
            guess += 0.01
    return best


def table(feeds: list[Feed], budgets: list[float], names: list[str], kinds: bool) -> None:
    """Prints a table for each budget, and below it the aims that are met and those that are not."""
    for budget in budgets:
        print(f"\n{len(feeds)} feeds, {budget:g} polls a feed and day")
        print(f"{'policy':30} {'polls':>6} {'delay, min':>10} {'lost %':>7} {'to truth':>8} {'to weekly':>9}")
        rows = [(name, tune(policy, feeds, budget, *law)) for name, policy, *law in POLICIES if name in names]
        delays = {name: delay_of(total(results)) for name, results in rows}
        for name, results in rows:
            cells = [f"{delays[name] / delays[one]:.3f}" if one in delays else "-" for one in (TRUTH, WEEKLY)]
            everything = total(results)
            print(
                f"{name:30} {everything.polls / everything.feed_days:6.2f} {delays[name] / 60:10.2f}"
                f" {lost_of(everything):7.3f} {cells[0]:>8} {cells[1]:>9}",
                flush=True,
            )
        if kinds:
            print_kinds(rows)
        print_aims(dict(rows))


def delay_of(result: Result) -> float:
    return result.delay / max(1, result.seen)


def lost_of(result: Result) -> float:
    return 100.0 * result.lost / max(1, result.lost + result.seen)


def print_kinds(rows: list[tuple[str, dict[str, Result]]]) -> None:
    kinds = sorted({kind for _, results in rows for kind in results})
    print("polls a day, delay in minutes and entries lost by kind of feed")
    print(f"{'':28} " + " ".join(f"{kind[:18]:>19}" for kind in kinds))
    for name, results in rows:
        cells = [
            f"{one.polls / one.feed_days:5.1f} {delay_of(one) / 60:6.1f} {lost_of(one):5.2f}%"
            for one in (results[kind] for kind in kinds)
        ]
        print(f"{name:28} " + " ".join(f"{cell:>19}" for cell in cells))


def print_aims(rows: dict[str, dict[str, Result]]) -> None:
    """The aims: within 1.10 of the truth, at most 0.55 of the weekly count, lost within 0.02 points of the truth, and
    ahead of the truth on half-hour publishers, whose lattice it does not know."""
    if "ours" not in rows:
        return
    ours = total(rows["ours"])
    if TRUTH in rows:
        truth = total(rows[TRUTH])
        aim("delay to truth", delay_of(ours) / delay_of(truth), 1.10)
        aim("lost % over truth", lost_of(ours) - lost_of(truth), 0.02)
        if "half-hour" in rows[TRUTH]:
            pair = delay_of(rows["ours"]["half-hour"]), delay_of(rows[TRUTH]["half-hour"])
            aim("half-hour publishers, delay to truth", pair[0] / pair[1], 1.0)
    if WEEKLY in rows:
        aim("delay to weekly count", delay_of(ours) / delay_of(total(rows[WEEKLY])), 0.55)
    if "sketch" in rows:
        aim("delay to sketch", delay_of(ours) / delay_of(total(rows["sketch"])), 1.0)


def aim(name: str, value: float, most: float) -> None:
    print(f"  {name}: {value:.3f}, aim {most:.2f}: {'met' if value <= most else 'NOT MET'}")


def costs() -> None:
    """Prints what one unchanged poll costs, and the price of a hundred thousand feeds."""
    random_ = random.Random(1)
    feeds = [make(KINDS[number % len(KINDS)], random_, 1.0) for number in range(24)]
    states = []
    for number, feed in enumerate(feeds):
        policy = Ours(feed, 2000.0)
        Course(policy, feed, number).run(feed.begin + 10 * DAY)
        states.append(policy.state)
    texts = [schedule.dumps(state) for state in states]
    hints = schedule.Hints(max_age=60.0)
    best = [math.inf] * 4
    for _ in range(200):
        marks = [time.perf_counter()]
        loaded = [schedule.loads(text) for text in texts]
        marks.append(time.perf_counter())
        after = [
            schedule.observe(one, schedule.Poll(schedule_instant(one), modified=False, hints=hints)) for one in loaded
        ]
        marks.append(time.perf_counter())
        for one in after:
            schedule.decide(one, schedule_instant(one))
        marks.append(time.perf_counter())
        for one in after:
            schedule.dumps(one)
        marks.append(time.perf_counter())
        best = [min(old, end - begin) for old, begin, end in zip(best, marks, marks[1:], strict=False)]
    each = [value / len(states) * 1e6 for value in best]
    print(
        "\nmicroseconds a call, unchanged poll: "
        + ", ".join(
            f"{name} {value:.0f}" for name, value in zip(("loads", "observe", "decide", "dumps"), each, strict=True)
        )
        + f", together {sum(each):.0f}; state {max(map(len, texts))} bytes"
    )
    many = [replace(states[number % len(states)], variability=random_.uniform(0.5, 1.5)) for number in range(100_000)]
    now = schedule_instant(states[0])
    begin = time.perf_counter()
    price = schedule.price_for(many, now, target_delay=600.0)
    solved = time.perf_counter() - begin
    print(
        f"price_for of {len(many)} feeds: {solved:.2f} s, price {price:.0f},"
        f" aim 1 s: {'met' if solved < 1 else 'NOT MET'}"
    )


def schedule_instant(state: schedule.State) -> datetime:
    """Half an hour after the last poll."""
    return datetime.fromtimestamp((state.last_at or 0.0) + 1800.0, UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--feeds", type=int, default=156)
    parser.add_argument("--budgets", type=float, nargs="+", default=[12.0, 48.0])
    parser.add_argument("--sigmas", type=float, nargs="+", default=[1.0], help="spread of the rates, log-normal")
    parser.add_argument("--harsh", action="store_true", help="deeper nights, more of the entries in bursts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policies", nargs="+", default=[name for name, *_ in POLICIES])
    parser.add_argument("--corpus", type=Path, default=None, help="a directory with traces/ and series/")
    parser.add_argument("--kinds", action="store_true", help="also by kind of feed")
    parser.add_argument("--parts", nargs="+", default=["costs", "population", "series", "traces"])
    options = parser.parse_args()
    if "costs" in options.parts:
        costs()
    for sigma in options.sigmas if "population" in options.parts else ():
        print(f"\nsimulated population, rates log-normal around 4 a day, sigma {sigma:g}")
        random_ = random.Random(options.seed)
        feeds = [
            make(KINDS[number % len(KINDS)], random_, sigma, harsh=options.harsh) for number in range(options.feeds)
        ]
        table(feeds, options.budgets, options.policies, options.kinds)
    corpus = options.corpus or Path(__file__).resolve().parents[2] / "shared" / "corpus"
    names = [name for name in options.policies if name != TRUTH]
    if "series" in options.parts and corpus.is_dir():
        captured = [feed for path in sorted((corpus / "series").glob("feed-*")) if (feed := read_series(path))]
        print(f"\ncaptured feeds, last {DAYS} days or what there is of them")
        table(captured, options.budgets, names, options.kinds)
    if "traces" in options.parts and corpus.is_dir():
        recorded = [
            feed
            for path in sorted((corpus / "traces").glob("*.csv*"))
            if "first-seen" not in path.name
            for feed in read_trace(path)
        ]
        print("\nrecorded publication times")
        share = lost_of(total(run(Fixed, recorded, 60.0)))
        print(f"a poll a minute would still lose {share:.3f} %: more entries of one minute than the document shows")
        table(recorded, options.budgets, names, options.kinds)


if __name__ == "__main__":
    main()
