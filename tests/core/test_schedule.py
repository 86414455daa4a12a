"""The poll schedule on histories of known meaning."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from monitor import schedule
from monitor.core.schedule_bounds import overflow_capacity, overflow_risk, skip_to
from monitor.core.schedule_plan import capacity_of
from monitor.schedule import Hints, Policy, Poll, State

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
HOUR = timedelta(hours=1)


def seconds_to_next(state: State, now: datetime) -> float:
    return (schedule.decide(state, now).at - now).total_seconds()


def first_poll(dates: list[datetime], now: datetime, policy: Policy | None = None, **more: object) -> State:
    poll = Poll(at=now, entries=dates, new=len(dates), size=max(len(dates), 20), **more)  # type: ignore[arg-type]
    return schedule.observe(schedule.start(policy or Policy()), poll)


def follow(
    times: list[datetime],
    begin: datetime,
    end: datetime,
    *,
    policy: Policy | None = None,
    window: int = 20,
    dated: bool = True,
    shift: timedelta = timedelta(0),
) -> tuple[State, list[tuple[datetime, int]]]:
    """Polls as decided from `begin` to `end`; the state, and (time, new entries) of each poll."""
    state, now, known = schedule.start(policy or Policy()), begin, 0
    polls: list[tuple[datetime, int]] = []
    while now < end:
        shown = [at for at in times if at <= now]
        new = min(len(shown) - known, window) if polls else 0
        entries = [at + shift for at in shown[-window:]] if dated else []
        size = min(window, len(shown))
        state = schedule.observe(
            state, Poll(at=now, entries=entries, new=new, size=size, modified=new > 0 or not polls)
        )
        polls.append((now, new))
        known = len(shown)
        now = schedule.decide(state, now).at
    return state, polls


def steady(per_day: float, begin: datetime, days: float, seed: int = 1) -> list[datetime]:
    random_ = random.Random(seed)
    count = round(per_day * days)
    return sorted(begin + timedelta(days=days * random_.random()) for _ in range(count))


# The rate


def test_never_polled_is_due_now() -> None:
    decision = schedule.decide(schedule.start(Policy()), START)
    assert (decision.at, decision.reason) == (START, "first")


@pytest.mark.parametrize("per_day", [1.0, 6.0, 40.0])
def test_dates_of_the_first_document_give_the_rate(per_day: float) -> None:
    dates = [START - timedelta(days=(number + 0.5) / per_day) for number in range(30)]
    decision = schedule.decide(first_poll(dates, START), START)
    assert decision.mean_rate == pytest.approx(per_day, rel=0.2)


def test_without_dates_the_first_interval_is_short_and_then_adapts() -> None:
    state = schedule.observe(schedule.start(Policy(price=1e5)), Poll(at=START, new=20, size=20))
    assert 900 <= seconds_to_next(state, START) <= 1800
    assert schedule.decide(state, START).reason == "unknown"
    state, polls = follow(steady(3, START, 10), START + HOUR, START + timedelta(days=10), dated=False)
    assert schedule.decide(state, polls[-1][0]).mean_rate == pytest.approx(3, rel=0.5)


def test_a_pinned_entry_of_years_ago_does_not_hide_the_rate() -> None:
    dates = [START - timedelta(days=900), *(START - timedelta(hours=3 * number) for number in range(1, 20))]
    assert schedule.decide(first_poll(dates, START), START).mean_rate == pytest.approx(8, rel=0.25)


def test_interval_follows_the_square_root_of_price_and_rate() -> None:
    dates = [START - timedelta(hours=6 * number, minutes=17 * number % 60) for number in range(1, 30)]
    wide = Policy(1, 30 * 86400)
    intervals = [
        seconds_to_next(first_poll(dates, START, replace(wide, price=price)), START) for price in (100.0, 400.0)
    ]
    assert intervals[1] / intervals[0] == pytest.approx(2, rel=0.1)
    assert intervals[0] == pytest.approx((2 * 100 * 86400 / 4) ** 0.5, rel=0.25)


def test_quiet_hours_and_the_time_zone_are_found() -> None:
    random_ = random.Random(4)
    dates = [  # published from 22 to 8 UTC, as by day in East Asia
        START + timedelta(days=day, hours=22 + 10 * random_.random()) for day in range(28) for _ in range(4)
    ]
    state, _ = follow(sorted(dates), START + timedelta(days=2), START + timedelta(days=26), window=100)
    assert 9 <= state.learnt.quiet <= 16 or state.learnt.quiet <= -8
    rates = {}
    for hour in (2, 14):
        now = START + timedelta(days=26, hours=hour)
        rates[hour] = schedule.decide(schedule.observe(state, Poll(at=now, modified=False)), now).rate
    assert rates[2] > 3 * rates[14]


def test_weekends_are_told_from_weekdays() -> None:
    dates = [at for at in steady(12, START, 42) if at.weekday() < 5]
    state, _ = follow(dates, START + timedelta(days=2), START + timedelta(days=40), window=100)
    weekday = sum(state.learnt.day_profile[:5]) / 5
    assert weekday > 2 * sum(state.learnt.day_profile[5:]) / 2


def test_a_change_of_regime_is_noticed_within_hours() -> None:
    calm, turn = steady(2, START, 20), START + timedelta(days=20)
    busy = steady(48, turn, 1)
    before, _ = follow(calm + busy, START + timedelta(days=5), turn)
    after, polls = follow(calm + busy, START + timedelta(days=5), turn + 8 * HOUR)
    assert schedule.decide(before, turn).rate < 5
    assert schedule.decide(after, polls[-1][0]).rate > 12
    early, late = (
        sum(low < at <= high for at, _ in polls) for low, high in ((turn - 8 * HOUR, turn), (turn, turn + 8 * HOUR))
    )
    assert late >= 2 * early


def test_a_dormant_feed_is_visited_rarely_and_woken_quickly() -> None:
    state = first_poll([START - timedelta(days=200 + number) for number in range(10)], START)
    asleep = seconds_to_next(state, START)
    assert asleep > 4 * 3600
    now = START + 12 * HOUR
    news = [now - timedelta(minutes=10 * number + 1) for number in range(3)]
    state = schedule.observe(state, Poll(at=now, entries=news, new=3, size=10))
    assert seconds_to_next(state, now) < asleep / 8


def test_posts_on_the_half_hour_are_polled_just_after() -> None:
    random_ = random.Random(2)
    slots = [START + timedelta(minutes=30 * slot, seconds=5) for slot in range(48 * 21) if random_.random() < 0.25]
    state, polls = follow(slots, START + timedelta(days=3), START + timedelta(days=20), window=50)
    assert state.learnt.lattice == (0, 30)
    late = [at for at, _ in polls if at > START + timedelta(days=7)]
    after = [(at.minute * 60 + at.second) % 1800 for at in late]
    assert sum(5 <= offset <= 120 for offset in after) > 0.9 * len(after)


def test_minutes_spread_evenly_are_no_lattice() -> None:
    state, _ = follow(steady(20, START, 20), START + timedelta(days=3), START + timedelta(days=18))
    assert state.learnt.lattice == ()


# Dates


@pytest.mark.parametrize("hours", [2, -5])
def test_a_constant_error_of_the_dates_is_found_and_corrected(hours: int) -> None:
    times = steady(10, START, 12)
    shift = timedelta(hours=hours)
    state, polls = follow(times, START + timedelta(days=3), START + timedelta(days=12), shift=shift)
    low, high, agreed = state.learnt.skew
    assert agreed >= 3
    assert low - 120 <= -hours * 3600 <= high + 120
    assert schedule.decide(state, polls[-1][0]).mean_rate == pytest.approx(10, rel=0.4)


def test_sane_dates_show_no_error() -> None:
    state, _ = follow(steady(10, START, 12), START + timedelta(days=3), START + timedelta(days=12))
    assert state.learnt.skew[2] == 0


def test_an_import_of_old_entries_counts_as_one_arrival() -> None:
    old = [START - timedelta(days=number + 1) for number in range(20)]
    state = first_poll(old, START)
    now = START + 6 * HOUR
    imported = [START - timedelta(days=300 + number) for number in range(20)]
    after = schedule.observe(state, Poll(at=now, entries=imported, new=20, size=20))
    spread = schedule.observe(state, Poll(at=now, entries=[], new=20, size=20))
    assert schedule.decide(after, now).mean_rate < 2
    assert schedule.decide(spread, now).mean_rate > 2 * schedule.decide(after, now).mean_rate


def test_dates_in_the_future_are_not_believed() -> None:
    now = START + 4 * HOUR
    state = first_poll([START - timedelta(hours=8 * number) for number in range(1, 20)], START)
    calendar = [START + timedelta(days=30 * number) for number in range(1, 20)]
    after = schedule.observe(state, Poll(at=now, entries=calendar, new=1, size=20))
    assert after.learnt.mark is not None
    assert after.learnt.mark <= now.timestamp()
    assert schedule.decide(after, now).mean_rate == pytest.approx(3, rel=0.4)


def test_a_clock_that_was_ahead_does_not_stop_the_count() -> None:
    state = first_poll([START - timedelta(hours=number) for number in range(1, 20)], START + timedelta(days=4000))
    now = START
    for _ in range(48):
        now += HOUR
        state = schedule.observe(state, Poll(at=now, entries=[now - timedelta(minutes=5)], new=1, size=20))
    assert 10 < schedule.decide(state, now).rate < 40


# Safety


@pytest.mark.parametrize("window", [1, 10, 50, 300])
def test_overflow_capacity_meets_the_chance_exactly(window: int) -> None:
    mean = overflow_capacity(window, 1e-3)
    assert overflow_risk(mean, window) == pytest.approx(1e-3, rel=0.01)
    assert schedule.overflow_horizon(mean / 100, window, 1e-3) == pytest.approx(100)


def test_overflow_of_no_rate_is_never() -> None:
    assert schedule.overflow_horizon(0.0, 10, 1e-3) == float("inf")


def test_scattered_numbers_leave_less_room_in_the_window_but_some() -> None:
    even = schedule.start(Policy())
    even = replace(even, learnt=replace(even.learnt, window=30))
    rough = replace(even, learnt=replace(even.learnt, dispersion=3.0))
    assert 0.5 * capacity_of(even) < capacity_of(rough) < 0.8 * capacity_of(even)


def test_the_window_wins_over_economy() -> None:
    dates = [START - timedelta(minutes=15 * number) for number in range(1, 11)]
    poll = Poll(at=START, entries=dates, new=10, size=10)
    state = schedule.observe(schedule.start(Policy(price=1e8)), poll)
    decision = schedule.decide(state, START)
    assert decision.reason == "overflow"
    assert decision.interval <= schedule.overflow_horizon(96 / 86400, 10, 1e-3)
    assert decision.risk <= 1e-3


def test_a_burst_of_half_the_window_brings_the_next_poll_forward() -> None:
    state = first_poll([START - timedelta(hours=6 * number) for number in range(1, 21)], START, Policy(price=1e6))
    now = START + 6 * HOUR
    burst = [now - timedelta(minutes=2 * number) for number in range(1, 13)]
    usual = schedule.observe(state, Poll(at=now, entries=burst[:1], new=1, size=20))
    after = schedule.observe(state, Poll(at=now, entries=burst, new=12, size=20))
    assert seconds_to_next(after, now) < seconds_to_next(usual, now) / 4
    assert seconds_to_next(after, now) <= 6 * 3600 * 20 / 24


# Hints


def with_hints(hints: Hints, policy: Policy | None = None, every: timedelta = HOUR) -> schedule.Decision:
    dates = [START - every * (number + number * 0.37 % 1.0) for number in range(20)]
    poll = Poll(at=START, entries=dates, new=20, size=20, hints=hints)
    return schedule.decide(schedule.observe(schedule.start(policy or Policy(price=10)), poll), START)


@pytest.mark.parametrize("hints", [Hints(max_age=7000.0), Hints(ttl=7000.0)])
def test_freshness_is_a_floor(hints: Hints) -> None:
    decision = with_hints(hints)
    assert decision.interval == pytest.approx(7000)
    assert decision.reason in ("max-age", "ttl")


def test_a_ttl_of_a_week_does_not_blind_us() -> None:
    decision = with_hints(Hints(ttl=7 * 86400.0), every=3 * HOUR)
    assert decision.interval <= 6 * 3600
    assert "believed" in decision.text


def test_the_default_hour_of_publishing_systems_is_worth_a_quarter() -> None:
    assert with_hints(Hints(update_period=3600.0)).interval == pytest.approx(900)


def test_an_update_period_that_the_entries_refute_is_no_floor() -> None:
    decision = with_hints(Hints(update_period=86400.0), every=timedelta(minutes=20))
    assert decision.interval < 3600


def test_the_window_wins_over_the_hints() -> None:
    decision = with_hints(Hints(ttl=6 * 3600.0), every=timedelta(minutes=3))
    assert decision.reason == "overflow"
    assert {"ttl", "overflow"} <= {bound.name for bound in decision.bounds}


def test_retry_after_is_obeyed_even_against_the_window() -> None:
    hints = Hints(retry_at=START + 5 * HOUR)
    assert with_hints(hints, every=timedelta(minutes=3)).at == START + 5 * HOUR


def test_retry_after_is_believed_for_a_day_at_most() -> None:
    assert with_hints(Hints(retry_at=START + timedelta(days=400))).at == START + timedelta(days=1)


def test_retry_after_holds_for_one_poll_only() -> None:
    dates = [START - HOUR * number for number in range(1, 21)]
    state = first_poll(dates, START, hints=Hints(retry_at=START + 5 * HOUR))
    state = schedule.observe(state, Poll(at=START + 5 * HOUR, modified=False, hints=Hints()))
    assert schedule.decide(state, START + 5 * HOUR).reason != "retry-after"


def test_skipped_hours_are_skipped() -> None:
    decision = with_hints(Hints(skip_hours=frozenset(range(6))), every=3 * HOUR)
    assert decision.at == START + 6 * HOUR
    assert decision.reason == "skip"


def test_a_document_that_skips_all_hours_is_polled_all_the_same() -> None:
    assert with_hints(Hints(skip_hours=frozenset(range(24)))).interval < 7200


def test_skipped_days_end_with_the_day() -> None:
    tuesday = START + timedelta(days=1, hours=3)
    end = skip_to((), {1}, tuesday.timestamp())
    assert end == (START + timedelta(days=2)).timestamp()


def test_a_hub_is_noted_and_limits_nothing() -> None:
    with_hub, without = with_hints(Hints(hub=True)), with_hints(Hints())
    assert [bound.kind for bound in with_hub.bounds if bound.name == "websub"] == ["note"]
    assert with_hub.at == without.at


def test_an_unchanged_document_keeps_what_it_said() -> None:
    dates = [START - HOUR * number for number in range(1, 21)]
    state = first_poll(dates, START, Policy(price=10), hints=Hints(ttl=5000.0, max_age=60.0))
    now = START + 2 * HOUR
    state = schedule.observe(state, Poll(at=now, modified=False, hints=Hints(max_age=90.0)))
    assert (state.learnt.ttl, state.max_age) == (5000.0, 90.0)


# Failures and settings


def test_failures_double_the_wait_up_to_the_longest() -> None:
    state, now = first_poll([START - HOUR * number for number in range(1, 21)], START), START + HOUR
    waits = []
    for _ in range(12):
        state = schedule.observe(state, Poll(at=now, failed=True))
        waits.append(seconds_to_next(state, now))
        now += timedelta(seconds=waits[-1])
    assert waits[0] < 3600
    assert all(later > 1.5 * earlier for earlier, later in itertools.pairwise(waits) if later < 80000)
    assert waits[-1] == 86400
    assert schedule.decide(state, now).reason == "back-off"


def test_back_off_differs_by_seed_and_not_by_call() -> None:
    failed = Poll(at=START, failed=True)
    times = {schedule.decide(schedule.observe(schedule.start(Policy(), seed), failed), START).at for seed in range(20)}
    again = {schedule.decide(schedule.observe(schedule.start(Policy(), seed), failed), START).at for seed in range(20)}
    assert len(times) > 15
    assert times == again


def test_success_ends_the_back_off() -> None:
    state = schedule.observe(schedule.start(Policy()), Poll(at=START, failed=True))
    state = schedule.observe(state, Poll(at=START + HOUR, new=5, size=20))
    assert "back-off" not in {bound.name for bound in schedule.decide(state, START + HOUR).bounds}


def test_a_new_policy_is_applied_to_what_is_known() -> None:
    state = first_poll([START - HOUR * number for number in range(1, 21)], START)
    bounded = schedule.with_policy(state, Policy(7200, 7300, 1))
    assert 7200 <= seconds_to_next(bounded, START) <= 7300
    assert schedule.decide(bounded, START).mean_rate == schedule.decide(state, START).mean_rate


@pytest.mark.parametrize("values", [(0, 10, 1), (10, 5, 1), (1, 10, 0), (1, float("inf"), 1), (1, 10, float("nan"))])
def test_impossible_policies_are_refused(values: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"interval|price"):
        Policy(*values)


# The price


def population(size: int = 60) -> list[State]:
    random_ = random.Random(5)
    states = []
    for _ in range(size):
        gap = timedelta(hours=24 / (4 * random_.lognormvariate(0, 1)))
        states.append(first_poll([START - gap * (number + 0.5) for number in range(20)], START))
    return states


@pytest.mark.parametrize("budget", [500.0, 3000.0, 20000.0])
def test_the_price_meets_a_budget(budget: float) -> None:
    states = population()
    price = schedule.price_for(states, START, requests_per_day=budget)
    assert schedule.outlook(states, START, price).polls == pytest.approx(budget, rel=0.01)


@pytest.mark.parametrize("delay", [120.0, 600.0, 3600.0])
def test_the_price_meets_a_delay(delay: float) -> None:
    states = population()
    price = schedule.price_for(states, START, target_delay=delay)
    assert schedule.outlook(states, START, price).delay == pytest.approx(delay, rel=0.01)


def test_the_outlook_is_what_the_decisions_add_up_to() -> None:
    states = [schedule.with_policy(state, Policy(price=200.0)) for state in population()]
    polls = sum(86400 / schedule.decide(state, START).interval for state in states)
    assert polls == pytest.approx(schedule.outlook(states, START, 200.0).polls, rel=0.25)


def test_a_target_out_of_reach_gives_the_nearest_price() -> None:
    states = population(5)
    soonest = schedule.price_for(states, START, target_delay=0.001)
    assert schedule.outlook(states, START, soonest).delay == pytest.approx(30, rel=0.3)
    rarest = schedule.price_for(states, START, requests_per_day=0.001)
    assert schedule.outlook(states, START, rarest).polls < 60


def test_documents_that_the_server_bars_cost_nothing() -> None:
    states = population(10)
    barred = [replace(state, retry_at=START.timestamp() + 3600) for state in states]
    polls = schedule.outlook(states + barred, START, 600.0).polls
    assert polls == pytest.approx(schedule.outlook(states, START, 600.0).polls)


@pytest.mark.parametrize("aim", [{}, {"target_delay": 1.0, "requests_per_day": 1.0}, {"target_delay": 0.0}])
def test_one_aim_is_needed(aim: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="either"):
        schedule.price_for([], START, **aim)


def test_a_publisher_known_for_bursts_is_not_left_alone_for_longer_than_one_takes() -> None:
    now = START + timedelta(days=3)
    burst = [START + timedelta(minutes=6 * number) for number in range(12)]
    lone = [START + timedelta(hours=6 * number) for number in range(12)]
    wide = Policy(price=1e7)
    bursty, calm = first_poll(burst, now, wide), first_poll(lone, now, wide)
    bursty, calm = (replace(state, learnt=replace(state.learnt, window=12)) for state in (bursty, calm))
    assert schedule.decide(bursty, now).reason == "overflow"
    assert seconds_to_next(bursty, now) < 2.5 * 3600
    assert seconds_to_next(calm, now) > 2 * seconds_to_next(bursty, now)


def test_a_short_list_that_grows_is_not_taken_for_a_full_window() -> None:
    state = schedule.observe(schedule.start(Policy()), Poll(at=START, new=2, size=2))
    assert state.learnt.window == 10
    grown = schedule.observe(state, Poll(at=START + HOUR, new=1, size=3))
    assert grown.learnt.window == 10
    full = schedule.observe(grown, Poll(at=START + 2 * HOUR, new=1, size=3))
    assert full.learnt.window == 3


def test_polls_wait_for_entries_that_show_minutes_after_their_date() -> None:
    random_ = random.Random(3)
    shown = [START + timedelta(minutes=30 * slot + 4) for slot in range(48 * 21) if random_.random() < 0.3]
    shift = timedelta(minutes=-4)
    policy = Policy(price=300)
    state, polls = follow(shown, START + timedelta(days=3), START + timedelta(days=20), policy=policy, shift=shift)
    assert state.learnt.lattice == (0, 30)
    assert 240 <= state.learnt.lag <= 330
    late = [at for at, _ in polls if at > START + timedelta(days=10)]
    assert sum(240 <= (at.minute % 30) * 60 + at.second <= 400 for at in late) > 0.8 * len(late)
