"""What holds for the poll schedule on any history."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import schedule
from monitor.schedule import Decision, Hints, Policy, Poll, State

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
RISING = ("min", "back-off", "retry-after")

seconds = st.one_of(
    st.floats(1.0, 7200.0),
    st.sampled_from([0.0, 0.001, 60.0, 86400.0, 40 * 86400.0]),
    st.floats(-90000.0, -1.0),
)
ages = st.lists(
    st.one_of(st.floats(-3600.0, 7 * 86400.0), st.sampled_from([0.0, -400 * 86400.0, 3000 * 86400.0, 1800.0])),
    max_size=30,
)
durations = st.one_of(st.none(), st.sampled_from([0.0, 60.0, 3600.0, 604800.0, 1e12]), st.floats(0.0, 1e6))


@st.composite
def hints(draw: st.DrawFn, now: datetime) -> Hints:
    retry = draw(st.one_of(st.none(), st.sampled_from([-60.0, 0.0, 120.0, 7200.0, 30 * 86400.0])))
    return Hints(
        max_age=draw(durations),
        ttl=draw(durations),
        update_period=draw(durations),
        skip_hours=draw(st.frozensets(st.integers(0, 23), max_size=24)),
        skip_days=draw(st.frozensets(st.integers(0, 6), max_size=7)),
        retry_at=None if retry is None else now + timedelta(seconds=retry),
        hub=draw(st.booleans()),
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[State, datetime]:
    """A document after up to twelve polls of any kind, and the time of the last."""
    shortest = draw(st.sampled_from([1.0, 60.0, 900.0]))
    policy = Policy(
        shortest, draw(st.sampled_from([shortest, 3600.0, 86400.0, 7 * 86400.0])), draw(st.floats(0.01, 1e6))
    )
    state, now = schedule.start(policy, seed=draw(st.integers(0, 9))), START
    for _ in range(draw(st.integers(0, 12))):
        now += timedelta(seconds=draw(seconds))
        shown = [now - timedelta(seconds=age) for age in draw(ages)]
        size = len(shown) if draw(st.booleans()) else draw(st.integers(0, 200))
        poll = Poll(
            at=now,
            entries=shown,
            new=draw(st.integers(0, max(size, 1))),
            size=size,
            modified=draw(st.booleans()),
            failed=draw(st.integers(0, 4)) == 0,
            hints=draw(st.one_of(st.none(), hints(now))),
        )
        state = schedule.observe(state, poll)
    return state, now


def limits(decision: Decision, names: tuple[str, ...]) -> list[datetime]:
    return [bound.at for bound in decision.bounds if bound.name in names]


def leaves(value: object) -> int:
    if isinstance(value, dict):
        return sum(leaves(item) for item in value.values())
    return sum(leaves(item) for item in value) if isinstance(value, list) else 1


@given(histories())
@settings(deadline=None)
def test_no_poll_before_a_floor_that_holds(case: tuple[State, datetime]) -> None:
    state, now = case
    decision = schedule.decide(state, now)
    assert decision.at >= now
    for floor in limits(decision, RISING):
        assert decision.at >= floor


@given(histories())
@settings(deadline=None)
def test_no_poll_after_a_ceiling_unless_a_stronger_floor_or_the_present_forces_it(case: tuple[State, datetime]) -> None:
    state, now = case
    decision = schedule.decide(state, now)
    forced = max([now, *limits(decision, RISING)])
    for ceiling in limits(decision, ("max", "overflow")):
        assert decision.at <= max(ceiling, forced)


@given(histories())
@settings(deadline=None)
def test_hints_hold_where_no_ceiling_forbids(case: tuple[State, datetime]) -> None:
    state, now = case
    decision = schedule.decide(state, now)
    strictest = min(limits(decision, ("max", "overflow")), default=now)
    for floor in limits(decision, ("max-age", "ttl", "sy", "skip")):
        assert decision.at >= min(floor, strictest)


@given(histories(), st.floats(0.01, 1e6), st.floats(1.0, 1e3))
@settings(deadline=None)
def test_a_higher_price_never_brings_a_poll_forward(case: tuple[State, datetime], price: float, factor: float) -> None:
    state, now = case
    cheap = schedule.with_policy(state, replace(state.policy, price=price))
    dear = schedule.with_policy(state, replace(state.policy, price=price * factor))
    slack = timedelta(seconds=0.001)
    assert schedule.decide(cheap, now).at <= schedule.decide(dear, now).at + slack


@given(histories())
@settings(deadline=None)
def test_everything_is_finite_and_survives_json(case: tuple[State, datetime]) -> None:
    state, now = case
    text = schedule.dumps(state)
    json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name)))
    assert schedule.loads(text) == state
    decision = schedule.decide(state, now)
    figures = (decision.interval, decision.rate, decision.mean_rate, decision.expected, decision.delay, decision.risk)
    assert all(math.isfinite(figure) and figure >= 0 for figure in figures)
    assert all(math.isfinite(bound.seconds) for bound in decision.bounds)
    assert 0.0 <= decision.risk <= 1.0
    assert schedule.decide(schedule.loads(text), now) == decision


@given(histories(), st.sampled_from([1.0, 600.0, 1e5]))
@settings(deadline=None)
def test_a_price_is_found_for_any_state(case: tuple[State, datetime], target: float) -> None:
    state, now = case
    assert 0 < schedule.price_for([state], now, target_delay=target) < math.inf
    assert 0 < schedule.price_for([state], now, requests_per_day=target) < math.inf


def test_a_year_of_polls_leaves_the_state_as_small_as_a_day() -> None:
    state, now = schedule.start(Policy()), START
    sizes = []
    for hour in range(366 * 24):
        now = START + timedelta(hours=hour)
        dates = [now - timedelta(hours=age, minutes=7 * age % 60) for age in range(20)]
        news = 1 if hour % 3 == 0 else 0
        state = schedule.observe(state, Poll(at=now, entries=dates, new=news, size=20, modified=bool(news)))
        if hour in (24, 366 * 24 - 1):
            sizes.append(leaves(json.loads(schedule.dumps(state))))
            assert len(schedule.dumps(state)) < 4096
    assert sizes[1] - sizes[0] <= 12  # the minutes of a lattice, at most twelve
