"""The price of a poll: one for all feeds that share an aim, renewed as their rates move.

CONTRACT `poll.target_delay` is a mean over the entries of a population, `poll.requests_per_day` a budget for one; both
are met by one price for all its feeds (`schedule.price_for`).
"""

from __future__ import annotations

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
    """Solve the price of each aim for the feeds that share it, and bring forward the polls that it wants sooner.

    Polls that it wants later are put off when they are next decided anyway.
    """
    rows = await run.db.run(source_store.schedules)
    states: dict[Aim, list[tuple[source_store.ScheduleRow, schedule.State]]] = {}
    for row in rows:
        site = run.sites.get(row.site)
        if site is not None:
            aim = aim_of(site.source_settings(row.url).poll)
            states.setdefault(aim, []).append((row, schedule.loads(row.schedule)))
    now = datetime.fromtimestamp(run.clock(), UTC)
    sooner: list[Write] = []
    for (delay, budget), group in states.items():
        run.prices[delay, budget] = schedule.price_for(
            [state for _row, state in group], now, target_delay=delay, requests_per_day=budget
        )
        for row, state in group:
            policy = policy_of(run, run.sites[row.site], row.url)
            decision = schedule.decide(schedule.with_policy(state, policy), now)
            at = decision.at.timestamp()
            if row.state != "gone" and at < row.next_at - policy.min_interval:
                values = {"source_id": row.id, "next_at": at, "reason": decision.text}
                sooner.append(Write(source_store.SOURCE_SOONER, values))
    await run.db.write(*sooner)
