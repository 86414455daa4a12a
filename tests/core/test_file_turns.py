"""In which passes the files of a tree are asked."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.file_turns import Watched, after_read, every_passes


def watch(rate: float, every: float, passes: int, seed: int = 1) -> tuple[Watched, int, float]:
    """What is known of a file of `rate` changes a pass after so many; how often it was asked, and how many passes its
    changes waited on average beyond the one that all wait for."""
    chance, watched, asked, waiting, waited, changes = random.Random(seed), Watched(), 0, [], 0, 0
    for turn in range(passes):
        if turn and chance.random() < rate:
            waiting.append(turn)
        if turn % every_passes(watched, every) == 0:
            asked += 1
            watched = after_read(watched, turn, changed=bool(waiting))
            waited += sum(turn - since for since in waiting)
            changes += len(waiting)
            waiting.clear()
    return watched, asked, waited / max(1, changes)


def test_of_a_file_that_nothing_is_known_of_no_pass_is_left_out() -> None:
    assert every_passes(Watched(), 600.0) == 1
    assert every_passes(Watched(7.0, 0.0, 7), 600.0) == 1


@pytest.mark.parametrize(("every", "most"), [(21_600.0, 4), (7_200.0, 8), (600.0, 8), (86_400.0, 4)])
def test_a_file_that_never_changes_is_asked_in_every_fourth_to_eighth_pass(every: float, most: int) -> None:
    watched, asked, _ = watch(0.0, every, 1000)
    assert every_passes(watched, every) == most
    assert asked < 1000 / most + 40


def test_a_file_that_changes_in_each_pass_is_asked_in_each() -> None:
    watched, asked, _ = watch(1.0, 600.0, 200)
    assert asked == 200
    assert every_passes(watched, 600.0) == 1


def test_a_cold_file_that_turns_hot_is_asked_in_each_pass_after_a_few_changes() -> None:
    watched, turn = Watched(1000.0, 0.0, 0), 0
    reads = 0
    while every_passes(watched, 600.0) > 1:
        turn += every_passes(watched, 600.0)
        watched = after_read(watched, turn, changed=True)
        reads += 1
    assert reads <= 8


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_turns_follow_the_square_root_of_the_rate(rate: float) -> None:
    turns = [every_passes(watch(rate, 600.0, 4000, seed)[0], 600.0) for seed in range(30)]
    assert 0.5 * rate**-0.5 <= sum(turns) / len(turns) <= 1.5 * rate**-0.5


def test_what_the_index_vouched_for_is_no_evidence_of_our_own() -> None:
    watched = after_read(Watched(3.0, 0.0, 3), 50, changed=False)
    assert watched == Watched(4.0, 0.0, 50)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=60),
    st.floats(1.0, 1e7, allow_nan=False),
)
def test_turns_are_powers_of_two_within_bounds_on_any_history(reads: list[tuple[int, bool]], every: float) -> None:
    watched, turn = Watched(), 0
    for gap, changed in reads:
        turn += gap
        watched = after_read(watched, turn, changed=changed)
        turns = every_passes(watched, every)
        assert turns & (turns - 1) == 0
        assert 1 <= turns <= 8
    assert every_passes(after_read(watched, turn + 1, changed=False), every) >= every_passes(watched, every)
