"""What the documents of a monitor have in common, and what it is worth for one that is hardly known."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from monitor import schedule
from monitor.schedule import USUAL, Policy, Poll, Population, State

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday


def read(dates: list[datetime], now: datetime, population: Population = USUAL) -> State:
    """A document after one read that shows these dates."""
    poll = Poll(at=now, entries=dates, new=len(dates), size=max(10, len(dates)))
    return schedule.observe(schedule.start(Policy(), 0, population), poll, population)


def newspapers(count: int, per_day: float) -> list[State]:
    """Documents that publish within nine hours of the day, each in a time zone of its own."""
    random_ = random.Random(7)
    states = []
    for _ in range(count):
        begin = random_.randrange(24)
        dates = sorted(
            START + timedelta(days=day, hours=begin + 9 * random_.random())
            for day in range(-28, 0)
            for _ in range(round(per_day))
        )
        states.append(read([at for at in dates if at <= START], START))
    return states


def test_no_documents_are_like_the_usual_ones() -> None:
    assert schedule.population([]) == USUAL
    assert schedule.population([schedule.start(Policy())]) == USUAL


def test_rates_are_learnt_and_few_documents_weigh_little() -> None:
    many, few = (schedule.population(newspapers(count, 12)) for count in (80, 2))
    assert many.rate * 24 == pytest.approx(12, rel=0.25)
    assert USUAL.rate < few.rate < many.rate
    assert many.size == 80


def test_rates_that_differ_much_weigh_little_in_the_rate_of_one() -> None:
    alike = schedule.population(newspapers(60, 6))
    mixed = schedule.population(newspapers(30, 1) + newspapers(30, 40))
    assert mixed.weight < alike.weight


def test_common_hours_are_learnt_across_time_zones() -> None:
    common = schedule.population(newspapers(40, 6))
    assert max(common.hours) > 3 * min(common.hours)
    assert sum(common.hours) == pytest.approx(24, abs=0.1)
    assert common.hours.index(min(common.hours)) <= 3  # each publisher's own quiet hour comes first


def test_a_document_hardly_known_takes_the_hours_of_the_others() -> None:
    common = schedule.population(newspapers(60, 6))
    dates = [START - timedelta(days=day, hours=-9 - day % 7) for day in range(1, 13)]  # from 9 to 15 UTC
    lone, one_of_many = read(dates, START), read(dates, START, common)
    apart, near = (
        sum(abs(own - theirs) for own, theirs in zip(state.learnt.hour_profile, common.hours, strict=True))
        for state in (lone, one_of_many)
    )
    assert near < apart


def test_a_document_without_news_takes_the_rate_of_the_others() -> None:
    busy = Population(rate=2.0, weight=1.0, size=100)
    assert schedule.decide(read([], START, busy), START).mean_rate == pytest.approx(48, rel=0.1)
    assert schedule.decide(read([], START), START).mean_rate == pytest.approx(4, rel=0.1)


def test_what_is_common_survives_json_and_has_one_size() -> None:
    small, large = schedule.population(newspapers(3, 3)), schedule.population(newspapers(60, 3))
    for common in (small, large):
        assert Population.from_json(json.loads(json.dumps(common.to_json()))) == common
    assert len(json.dumps(large.to_json())) < 400
