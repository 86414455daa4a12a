"""Whose turn it is, by a clock that moves only when everyone waits."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

import pytest

from monitor.turns import Turns


class _Skip(selectors.DefaultSelector):
    """A selector that does not wait: the time it would have waited is counted as passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everyone waits, for nothing"
        self.passed += timeout
        return super().select(0)


def run(work: Coroutine[Any, Any, Any]) -> None:
    skip = _Skip()

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return skip.passed

    with asyncio.Runner(loop_factory=lambda: Loop(skip)) as runner:
        runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_places_at_a_host_are_given_in_the_order_of_asking() -> None:
    async def go() -> None:
        turns, order = Turns(10), []

        async def visit(number: int) -> None:
            await turns.take("h", 1, 0)
            order.append(number)
            await asyncio.sleep(1)
            turns.leave("h")
            if number == 0:  # comes again at the moment its place is free, with others waiting
                await visit(9)

        await asyncio.gather(*(visit(n) for n in range(4)))
        assert order == [0, 1, 2, 3, 9]
        assert len(turns) == 0

    run(go())


@pytest.mark.parametrize(("limits", "most"), [([1, 3, 3, 3], 3), ([3, 3, 3, 1, 3], 3), ([2] * 6, 2)])
def test_each_request_holds_its_own_limit(limits: list[int], most: int) -> None:
    """Two sites on one host may have different limits, and a limit may change while some wait."""

    async def go() -> None:
        turns, active, seen = Turns(10), 0, []

        async def visit(limit: int) -> None:
            nonlocal active
            await turns.take("h", limit, 0)
            active += 1
            seen.append((active, limit))
            await asyncio.sleep(1)
            active -= 1
            turns.leave("h")

        await asyncio.gather(*(visit(limit) for limit in limits))
        assert len(seen) == len(limits)
        assert all(count <= limit for count, limit in seen)
        assert max(count for count, _ in seen) == most

    run(go())


def test_newcomers_with_a_higher_limit_do_not_starve_who_waits() -> None:
    async def go() -> None:
        turns, order = Turns(10), []

        async def visit(name: str, limit: int) -> None:
            await turns.take("h", limit, 0)
            order.append(name)
            await asyncio.sleep(1)
            turns.leave("h")

        await asyncio.gather(visit("first", 1), visit("patient", 1), *(visit("newcomer", 3) for _ in range(6)))
        assert order[:2] == ["first", "patient"]

    run(go())


def test_who_waits_for_a_slow_host_takes_no_place_of_all() -> None:
    async def go() -> None:
        turns = Turns(2)

        async def visit(name: str, seconds: float) -> float:
            await turns.take(name, 1, 0)
            await asyncio.sleep(seconds)
            turns.leave(name)
            return now()

        slow = [asyncio.create_task(visit("slow", 100)) for _ in range(5)]
        quick = await asyncio.gather(*(visit(f"quick{n}", 1) for n in range(5)))
        assert max(quick) == 5
        await asyncio.gather(*slow)

    run(go())


def test_starts_at_a_host_are_apart_even_where_all_places_were_taken() -> None:
    async def go() -> None:
        turns, starts = Turns(1), []

        async def visit(name: str, delay: float, seconds: float) -> None:
            await turns.take(name, 4, delay)
            if name == "h":
                starts.append(now())
            await asyncio.sleep(seconds)
            turns.leave(name)

        await asyncio.gather(visit("other", 0, 50), *(visit("h", 10, 1) for _ in range(4)))
        assert starts == [50, 60, 70, 80]
        await visit("h", 0, 0)  # who asks for no delay waits for that of the last one
        assert starts[-1] == 90

    run(go())


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("gone", [[0], [1], [2, 3], [0, 1, 2, 3, 4]])
def test_who_gives_up_leaves_no_hole(delay: float, gone: list[int]) -> None:
    async def go() -> None:
        turns = Turns(2)

        async def visit() -> None:
            await turns.take("h", 1, delay)
            try:
                await asyncio.sleep(1)
            finally:
                turns.leave("h")

        for after in range(4):  # event loop turns, to stop them in every state
            tasks = [asyncio.create_task(visit()) for _ in range(5)]
            for _ in range(after):
                await asyncio.sleep(0)
            for number in gone:
                tasks[number].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert [n for n, one in enumerate(done) if isinstance(one, asyncio.CancelledError)] == gone
        # A place handed over at the very moment its taker gives up goes on to the next.
        await turns.take("h", 1, delay)
        first, second = asyncio.create_task(visit()), asyncio.create_task(visit())
        await asyncio.sleep(0)
        turns.leave("h")
        first.cancel()
        await second
        await asyncio.gather(*(turns.take(f"x{n}", 1, 0) for n in range(2)))  # both places of all are there

    run(go())


def test_hosts_that_rest_are_forgotten() -> None:
    async def go() -> None:
        turns = Turns(10)
        for number in range(5000):
            await turns.take(f"h{number}", 1, 1)
            turns.leave(f"h{number}")
            await asyncio.sleep(0.1)
        assert len(turns) <= 1024

    run(go())
