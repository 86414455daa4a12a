"""What news in one source says of another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.siblings import FOLLOW, LAG_START, News, Pair, Stirred, judge, stir, wake

NOW = 1_000_000.0


def tried(outcomes: list[bool], *, own: float = 0.0, passed: float = 60.0) -> Pair:
    """A pair after polls that came `passed` seconds after news in the first source."""
    pairs: dict[int, Pair] = {}
    for number, found in enumerate(outcomes):
        at = NOW + 10_000.0 * number
        judge(stir(Stirred(), 1, at, woken=True), pairs, at=at + passed, found=found, own=own)
    return pairs[1]


def test_a_pair_never_tried_is_tried_where_little_is_at_stake() -> None:
    half_day = {"now": NOW, "last": NOW - 600.0, "due": NOW + 42_600.0, "floor": NOW}
    assert wake(Pair(), **half_day, price=600.0) == NOW + LAG_START
    assert wake(Pair(), **half_day, price=50_000.0) is None


def test_a_pair_that_follows_is_worth_a_dearer_poll_and_one_that_does_not_none() -> None:
    case = {"now": NOW, "last": NOW - 600.0, "due": NOW + 3_000.0, "floor": NOW, "price": 2_000.0}
    assert wake(tried([True] * 8), **case) is not None
    assert wake(Pair(), **case) is None
    assert wake(tried([False] * 8), **(case | {"price": 400.0})) is None
    assert wake(tried([False] * 20), **(case | {"price": 1.0})) is None


def test_news_that_the_own_rate_explains_is_no_credit() -> None:
    assert tried([True] * 10, own=0.95).lift < 0.15
    assert tried([True] * 10, own=0.05).lift > 0.8


def test_a_pair_forgets_what_was_true_long_ago() -> None:
    assert tried([True] * 30 + [False] * 30).lift < 0.25
    assert tried([False] * 30 + [True] * 30).lift > 0.7
    assert tried([True] * 1000).trials <= 20.0


def test_the_wait_grows_to_the_time_that_news_takes_to_follow_and_shrinks_again() -> None:
    pairs: dict[int, Pair] = {}
    for number in range(40):  # it always shows after ten minutes
        at = NOW + 10_000.0 * number
        stirred = stir(Stirred(), 1, at, woken=True)
        polled = at + pairs.get(1, Pair()).lag
        while stirred.news:
            stirred, _ = judge(stirred, pairs, at=polled, found=polled >= at + 600.0, own=0.0)
            polled += 300.0
    assert 300.0 <= pairs[1].lag <= 1000.0
    for number in range(60):  # now at once
        at = NOW + 1e6 + 10_000.0 * number
        judge(stir(Stirred(), 1, at, woken=True), pairs, at=at + pairs[1].lag, found=True, own=0.0)
    assert pairs[1].lag < 60.0


def test_a_poll_long_after_says_nothing() -> None:
    pairs: dict[int, Pair] = {}
    left, changed = judge(stir(Stirred(), 1, NOW, woken=False), pairs, at=NOW + FOLLOW + 1.0, found=True, own=0.0)
    assert (left, changed, pairs) == (Stirred(), set(), {})


def test_news_that_is_missed_is_looked_for_once_more_and_counts_as_one_trial() -> None:
    pairs: dict[int, Pair] = {}
    left, _ = judge(stir(Stirred(), 1, NOW, woken=True), pairs, at=NOW + 60.0, found=False, own=0.0)
    assert left == Stirred((News(1, NOW, NOW + 60.0),))
    left, changed = judge(left, pairs, at=NOW + 600.0, found=True, own=0.0)
    assert (left, changed) == (Stirred(), {1})
    assert (pairs[1].trials, pairs[1].hits) == (1.0, 0.0)
    assert pairs[1].lag > LAG_START


def test_what_is_looked_for_survives_its_text_and_is_bounded() -> None:
    stirred = Stirred()
    for of in range(100):
        stirred = stir(stirred, of, NOW + of, woken=of % 3 == 0)
    assert len(stirred.news) == 8
    assert stirred.woken_by == 99
    assert Stirred.from_text(stirred.to_text()) == stirred
    assert Stirred().to_text() is None
    assert Stirred.from_text(None) == Stirred()


spans = st.floats(0.0, 1e6)
pairs_made = st.builds(tried, st.lists(st.booleans(), min_size=1, max_size=30), own=st.floats(0.0, 1.0))


@given(pairs_made, spans, spans, st.floats(-1e5, 1e6), st.floats(1e-3, 1e9), st.floats(0.0, 1.0))
def test_never_before_a_floor_never_later_than_due(
    pair: Pair, ago: float, ahead: float, floor: float, price: float, own: float
) -> None:
    assert 0.0 <= pair.lift <= 1.0
    at = wake(pair, now=NOW, last=NOW - ago, due=NOW + ahead, floor=NOW + floor, price=price, own=own)
    if at is not None:
        assert NOW + floor <= at < NOW + ahead
        assert at >= NOW
        cheaper = wake(pair, now=NOW, last=NOW - ago, due=NOW + ahead, floor=NOW + floor, price=price / 2.0, own=own)
        assert cheaper == pytest.approx(at)
