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

RENEW = 900.0
"""Seconds between two renewals: rates move over hours."""

Aim = tuple[float | None, float | None]


def aim_of(poll: Poll) -> Aim:
    """What feeds with these settings are polled for: (target delay in seconds, requests a day), one of them None."""
    return (poll.target_delay, poll.requests_per_day)


def policy_of(run: Runtime, site: Site, url: str) -> schedule.Policy:
    """The schedule's bounds and price for a source."""
    poll = site.source_settings(url).poll
    price = run.prices.get(aim_of(poll), schedule.Policy().price)
    return schedule.Policy(min_interval=poll.min, max_interval=poll.max, price=price)


async def renew_prices(run: Runtime) -> None:
    """Solve the price of each aim for the feeds that share it."""
    rows = await run.db.run(source_store.schedules)
    states: dict[Aim, list[schedule.State]] = {}
    for site_name, url, text in rows:
        site = run.sites.get(site_name)
        if site is not None:
            states.setdefault(aim_of(site.source_settings(url).poll), []).append(schedule.loads(text))
    now = datetime.fromtimestamp(run.clock(), UTC)
    for (delay, budget), group in states.items():
        run.prices[delay, budget] = schedule.price_for(group, now, target_delay=delay, requests_per_day=budget)
