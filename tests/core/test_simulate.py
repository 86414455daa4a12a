"""Replays of a feed's history: polls, delay and losses against arithmetic done by hand."""

from __future__ import annotations

import math

import pytest

from monitor import schedule
from monitor.core.simulate import NewsPoll, as_it_was, course_of, replay

DAY = 86400.0
HOUR = 3600.0


def hourly(days: int, *, window: int = 20, dated: bool = True) -> list[NewsPoll]:
    """A feed polled every hour, with one new entry half an hour old at each poll."""
    first = NewsPoll(0.0, None, 1, window, window, tuple(HOUR / 2 + n * HOUR for n in range(window)) if dated else ())
    ages = (HOUR / 2,) if dated else ()
    return [first] + [NewsPoll(n * HOUR, (n - 1) * HOUR, n + 1, 1, window, ages) for n in range(1, days * 24 + 1)]


@pytest.mark.parametrize("dated", [True, False])
def test_what_was_is_told_as_it_was(dated: bool) -> None:
    course = course_of(hourly(28, dated=dated), 28 * DAY)
    assert course is not None
    told = as_it_was(course, 28 * 24 + 1)
    assert told.days == pytest.approx(21.0)  # a quarter, a week at most, is for learning
    assert told.polls == pytest.approx(21 * 24, abs=2)
    assert told.seen == pytest.approx(21 * 24, abs=1)
    assert told.delay / told.seen == pytest.approx(HOUR / 2)
    assert told.lost is None


def test_a_history_of_less_than_a_day_says_nothing() -> None:
    assert course_of([], DAY) is None
    assert course_of(hourly(1)[:5], DAY - 1.0) is None


def policy(price: float, **bounds: float) -> schedule.Policy:
    return schedule.Policy(min_interval=bounds.get("least", 60.0), max_interval=bounds.get("most", DAY), price=price)


def test_a_dearer_poll_is_made_less_often_and_news_is_later() -> None:
    course = course_of(hourly(28), 28 * DAY)
    assert course is not None
    told = [replay(course, policy(price), None, schedule.population([])) for price in (600.0, 7200.0, 86400.0)]
    assert [one.seen for one in told] == sorted((one.seen for one in told), reverse=True)
    assert told[0].polls > 1.5 * told[1].polls > 2.0 * told[2].polls
    delays = [one.delay / one.seen for one in told]
    assert delays[0] < delays[1] < delays[2]


def test_polls_further_apart_than_the_window_is_long_lose_entries() -> None:
    course = course_of(hourly(28, window=2), 28 * DAY)
    assert course is not None
    rare = replay(course, policy(600.0, least=6 * HOUR, most=6 * HOUR), None, schedule.population([]))
    assert rare.polls == pytest.approx(21 * 4, abs=1)
    assert rare.lost is not None
    # Of six entries between two polls two are still shown.
    assert rare.lost / (rare.lost + rare.seen) == pytest.approx(4 / 6, abs=0.02)
    often = replay(course, policy(600.0, least=HOUR, most=HOUR), None, schedule.population([]))
    assert often.lost == 0
    assert math.isfinite(often.delay)
