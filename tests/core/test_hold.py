"""When people are told: quiet hours, digests, rate limits, in real zones."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.hold import Manner, at_once, opens_at, remembered

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Manner(quiet=((22 * 60, 7 * 60),), zone=BERLIN)


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2026-12-01T21:59", "2026-12-01T21:59"),
        ("2026-12-01T22:00", "2026-12-02T07:00"),
        ("2026-12-02T03:00", "2026-12-02T07:00"),
        ("2026-12-02T07:00", "2026-12-02T07:00"),
        ("2026-03-28T23:00", "2026-03-29T07:00"),  # the night in which clocks go forward
        ("2026-10-24T23:00", "2026-10-25T07:00"),  # and back
        ("2026-12-31T23:30", "2027-01-01T07:00"),
    ],
)
def test_quiet_hours_end_when_they_say_by_the_local_clock(now: str, opens: str) -> None:
    assert opens_at(NIGHT, at(now), (), at(now)) == at(opens)


def test_quiet_hours_that_adjoin_are_one() -> None:
    manner = replace(NIGHT, quiet=((20 * 60, 24 * 60), (0, 6 * 60), (6 * 60, 9 * 60)))
    assert opens_at(manner, 0.0, (), at("2026-12-01T20:30")) == at("2026-12-02T09:00")


def test_hours_that_leave_no_time_still_come_to_an_end() -> None:
    manner = replace(NIGHT, quiet=((0, 12 * 60), (12 * 60, 24 * 60)))
    assert opens_at(manner, 0.0, (), at("2026-12-01T10:00")) > at("2026-12-01T10:00")


def test_a_digest_is_due_at_the_end_of_the_span_in_which_the_oldest_event_came() -> None:
    manner = Manner(every=900.0)
    assert opens_at(manner, 1000.0, (), 1001.0) == 1800.0
    assert opens_at(manner, 1000.0, (), 1800.0) == 1800.0
    assert opens_at(manner, 1000.0, (), 5000.0) == 5000.0, "late, say after a restart, is at once"
    assert opens_at(replace(NIGHT, every=900.0), at("2026-12-01T21:50"), (), at("2026-12-01T21:50")) == at(
        "2026-12-02T07:00"
    )
    assert at_once(manner, 40, (), 1800.0) == 40


def test_a_limit_lets_the_last_message_sum_up_what_is_above_it() -> None:
    manner = Manner(limit=(3, 60.0), surge=None)
    assert at_once(manner, 3, (), 100.0) == 1
    assert at_once(manner, 4, (), 100.0) == 4
    assert at_once(manner, 2, (90.0, 95.0), 100.0) == 2
    assert opens_at(manner, 0.0, (90.0, 95.0), 100.0) == 100.0
    assert opens_at(manner, 0.0, (90.0, 95.0, 99.0), 100.0) == 150.0
    assert remembered(manner, (30.0, 90.0, 95.0, 99.0), 100.0) == [95.0, 99.0, 100.0]


def test_a_surge_is_one_message() -> None:
    assert at_once(Manner(surge=10), 10, (), 0.0) == 1
    assert at_once(Manner(surge=10), 11, (), 0.0) == 11
    assert at_once(Manner(surge=None), 5000, (), 0.0) == 1


@given(
    st.integers(1, 5), st.floats(1.0, 100.0), st.lists(st.floats(0.01, 50.0), max_size=60), st.sampled_from([None, 3])
)
def test_no_span_has_more_messages_than_the_limit_and_every_event_is_told(
    most: int, span: float, gaps: list[float], surge: int | None
) -> None:
    manner = Manner(limit=(most, span), surge=surge)
    sent: list[float] = []
    log: list[float] = []
    now, waiting, told, oldest = 0.0, 0, 0, 0.0

    def work() -> None:
        nonlocal waiting, told, sent
        while waiting and opens_at(manner, oldest, sent, now) <= now:
            some = at_once(manner, waiting, sent, now)
            waiting, told = waiting - some, told + some
            sent = remembered(manner, sent, now)
            log.append(now)

    for gap in gaps:
        now += gap
        waiting += 1
        work()
    while waiting:
        now = max(now, opens_at(manner, oldest, sent, now))
        work()
    assert told == len(gaps)
    for place in range(len(log) - most):
        assert log[place + most] - log[place] >= span * 0.999999
