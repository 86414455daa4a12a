"""Replays of a feed's history under other settings: what its polls would have cost, and how late it would have been
told of its entries (pure).

Of a feed's past it is known, for each poll that brought news, when it was, when the one before it was, and how old the
new entries said they were. So each entry came between two polls; its own date, where it lies there, says when.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from monitor import schedule

WARM_UP = 7 * 86400.0
"""Seconds for which a replay only learns, as a feed's schedule did when it began; at most a quarter of the history."""

SHORTEST = 86400.0
"""A history shorter than a day says nothing of the next."""


@dataclass(frozen=True, slots=True)
class NewsPoll:
    """A poll that brought news. Instants in POSIX seconds.

    `since` is the read before it, None at the feed's first one; `polls` how many polls the feed had had by then,
    `new` the entries that were unknown, `size` those shown, `ages` the seconds since the dates of the new ones, of
    those that have a date between the two reads.
    """

    at: float
    since: float | None
    polls: int
    new: int
    size: int
    ages: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """A feed's past: when its entries came, sorted, how many it shows, and how it was polled."""

    arrivals: tuple[float, ...]
    window: int
    dated: bool
    begin: float
    end: float
    polls: tuple[NewsPoll, ...]

    @property
    def counted(self) -> float:
        """From when on polls and entries count."""
        return self.begin + min(WARM_UP, (self.end - self.begin) / 4)


@dataclass(frozen=True, slots=True)
class Replay:
    """What a feed's polls came to over `days`: polls, entries seen, their summed delay in seconds, entries lost to the
    window (None: not known), the greatest chance of a loss that was taken (None: not known)."""

    days: float
    polls: float
    seen: int
    delay: float
    lost: int | None
    risk: float | None


def course_of(polls: Sequence[NewsPoll], end: float) -> Course | None:
    """A feed's past from its polls with news, in their order; None where it is too short to say anything."""
    if not polls or end - polls[0].at < SHORTEST:
        return None
    arrivals: list[float] = []
    dated = 0
    for poll in polls:
        dates = [poll.at - age for age in poll.ages[: poll.new]]
        dated += len(dates)
        arrivals += dates
        if poll.since is not None:
            others = poll.new - len(dates)
            span = poll.at - poll.since
            arrivals += [poll.since + (number + 0.5) / others * span for number in range(others)]
    window = max(poll.size for poll in polls)
    return Course(tuple(sorted(arrivals)), max(1, window), 2 * dated >= len(arrivals), polls[0].at, end, tuple(polls))


def as_it_was(course: Course, polls: int) -> Replay:
    """What the polls that were made came to; `polls` is how many the feed has had by the end of the course."""
    since = course.counted
    before = [poll for poll in course.polls if poll.at < since]
    counted = course.polls[len(before) :]
    seen, delay = 0, 0.0
    for poll in counted:
        begin = poll.since if poll.since is not None else poll.at
        others = poll.new - len(poll.ages)
        seen += poll.new
        delay += sum(poll.ages[: poll.new]) + max(0, others) * (poll.at - begin) / 2
    # Between two polls with news the others are taken as evenly spread.
    first, last = before[-1] if before else course.polls[0], counted[0] if counted else None
    later_at, later_polls = (last.at, last.polls) if last is not None else (course.end, polls)
    span = later_at - first.at
    at_start = first.polls + (later_polls - first.polls) * ((since - first.at) / span if span > 0 else 0.0)
    return Replay((course.end - since) / 86400.0, max(0.0, polls - at_start), seen, delay, None, None)


def replay(
    course: Course, policy: schedule.Policy, hints: schedule.Hints | None, population: schedule.Population
) -> Replay:
    """Poll the course anew, as `policy` wants it, with the same hints of the server all along."""
    arrivals, window, counted = course.arrivals, course.window, course.counted
    dates = [datetime.fromtimestamp(when, UTC) for when in arrivals] if course.dated else []
    state = schedule.start(policy, population=population)
    at, known, first = course.begin, 0, True
    polls, seen, lost, delay, risk = 0, 0, 0, 0.0, 0.0
    while at < course.end:
        high = bisect.bisect_right(arrivals, at, known)
        low = max(known, high - window)
        if at >= counted:
            polls += 1
            if not first:
                lost += sum(1 for when in arrivals[known:low] if when >= counted)
                fresh = [when for when in arrivals[low:high] if when >= counted]
                seen += len(fresh)
                delay += sum(at - when for when in fresh)
        shown = max(0, high - window)
        now = datetime.fromtimestamp(at, UTC)
        state = schedule.observe(
            state,
            schedule.Poll(
                at=now,
                entries=dates[shown:high],
                new=high - low,
                size=min(high, window),
                modified=first or high > low,
                hints=hints,
            ),
            population,
        )
        decision = schedule.decide(state, now)
        if at >= counted:
            risk = max(risk, decision.risk)
        at, known, first = max(decision.at.timestamp(), at + 1.0), high, False
    return Replay((course.end - counted) / 86400.0, polls, seen, delay, lost, risk)
