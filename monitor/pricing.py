"""The price of a poll: one for all feeds that share an aim, renewed as their rates move.

CONTRACT `poll.target_delay` is a mean over the entries of a population, `poll.requests_per_day` a budget for one; both
are met by one price for all its feeds (`schedule.price_for`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from monitor import schedule
from monitor.config import Poll, Site
from monitor.runtime import Runtime
from monitor.store import sources as source_store
from monitor.store.database import Write

RENEW = 900.0
"""Seconds between two renewals: rates move over hours."""

FIRST_RENEW = 30.0
"""Seconds after the start until the first: by then most feeds were read once, and their rates are known."""

USUAL_RATE = 4.0 / 86400.0
"""Entries a second of a usual feed, for the price before anything is known."""

PIECE = 200
"""States read at a time: some 20 ms of work."""

SAMPLE = 2000
"""At most so many documents speak for the population."""

FALLEN = 0.95
"""A price that fell less moves no poll that was decided already."""

Aim = tuple[float | None, float | None]


def aim_of(poll: Poll) -> Aim:
    """What feeds with these settings are polled for: (target delay in seconds, requests a day), one of them None."""
    return (poll.target_delay, poll.requests_per_day)


def first_price(aim: Aim) -> float:
    """The price before any rate is known: a usual feed is then polled every two target delays, sqrt(2 price / rate)."""
    delay, _budget = aim
    return 2.0 * delay * delay * USUAL_RATE if delay is not None else schedule.Policy().price


def policy_of(run: Runtime, site: Site, url: str) -> schedule.Policy:
    """The schedule's bounds and price for a source."""
    poll = site.source_settings(url).poll
    aim = aim_of(poll)
    return schedule.Policy(min_interval=poll.min, max_interval=poll.max, price=run.prices.get(aim) or first_price(aim))


async def renew_prices(run: Runtime) -> None:
    """Solve the price of each aim for the feeds that share it, learn what they have in common, and bring forward the
    polls that a lower price wants sooner. Polls that a higher one wants later are put off when next decided anyway.

    Works in pieces: neither are all states in memory at once, nor does any other work wait for long.
    """
    now = datetime.fromtimestamp(run.clock(), UTC)
    demands: dict[Aim, list[schedule.Demand]] = {}
    sample: list[schedule.State] = []
    number, step = 0, 1
    async for rows in _schedules(run):
        for row, poll in rows:
            state = schedule.loads(row.schedule)
            asked = schedule.demand(schedule.with_policy(state, policy_of(run, run.sites[row.site], row.url)), now)
            if asked is not None:
                demands.setdefault(aim_of(poll), []).append(asked)
            if number % step == 0:
                sample.append(state)
                if len(sample) > SAMPLE:  # every second one is enough from here on
                    sample, step = sample[::2], step * 2
            number += 1
    run.population = schedule.population(sample)
    fallen = set()
    for aim, group in demands.items():
        before = run.prices.get(aim) or first_price(aim)
        delay, budget = aim
        run.prices[aim] = await asyncio.to_thread(
            schedule.price_for, group, now, target_delay=delay, requests_per_day=budget
        )
        if run.prices[aim] < FALLEN * before or aim not in run.aims:
            fallen.add(aim)
    run.aims = set(demands)
    if fallen:
        await _bring_forward(run, fallen, now)


async def _bring_forward(run: Runtime, aims: set[Aim], now: datetime) -> None:
    async for rows in _schedules(run):
        sooner: list[Write] = []
        for row, poll in rows:
            if aim_of(poll) not in aims or row.state == "gone":
                continue
            policy = policy_of(run, run.sites[row.site], row.url)
            decision = schedule.decide(schedule.with_policy(schedule.loads(row.schedule), policy), now)
            at = decision.at.timestamp()
            if at < row.next_at - policy.min_interval:
                values = {"source_id": row.id, "next_at": at, "reason": decision.text}
                sooner.append(Write(source_store.SOURCE_SOONER, values))
        if sooner:
            await run.db.write(*sooner)


async def _schedules(run: Runtime) -> AsyncIterator[list[tuple[source_store.ScheduleRow, Poll]]]:
    """The watched feeds that were ever polled, with their settings, some at a time."""
    after = 0
    while True:
        start = after
        rows = await run.db.run(lambda c, start=start: source_store.schedules(c, start, PIECE))  # type: ignore[misc]
        if not rows:
            return
        after = rows[-1].id
        watched = [row for row in rows if row.site in run.sites]
        yield [(row, run.sites[row.site].source_settings(row.url).poll) for row in watched]
