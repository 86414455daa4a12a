"""News in one source of a site brings the polls of its others forward, by what each pair has shown."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from sqlalchemy import Connection

from monitor import schedule
from monitor.config import Site
from monitor.core.siblings import Stirred, judge, stir, wake
from monitor.pricing import policy_of
from monitor.runtime import Runtime
from monitor.store import siblings as store
from monitor.store.sources import SourceRow

SIBLINGS = 50
"""So many sources of a site are told of news at once."""


def wake_siblings(run: Runtime, connection: Connection, source: SourceRow, now: float) -> None:
    """Tell the other sources of the site that `source` brought a page that was new to it, found at `now`.

    To be called in the transaction that commits the news. A source that is due soon anyway, that fails, or that its
    server or its hints bar, stays where it is.
    """
    site = run.sites.get(source.site)
    if site is None:
        return  # it left the configuration while the source was read
    for other, files, pair in store.siblings(connection, source.site_id, source.id, SIBLINGS):
        at = None
        if other.last_at is not None:
            floor, own = _limits(run, site, other, now, now + pair.lag)
            price = policy_of(run, site, other.url).price * max(1, files)
            at = wake(pair, now=now, last=other.last_at, due=other.next_at, floor=floor, price=price, own=own)
        noted = stir(Stirred.from_text(other.stirred), source.id, now, woken=at is not None)
        store.stir(connection, other.id, noted, at, f"news in {source.url}")


def settle_siblings(run: Runtime, connection: Connection, source: SourceRow, now: float, *, found: bool) -> None:
    """Learn from a poll of `source` at `now` what the news of its siblings was worth; `found` whether it had news."""
    stirred, site = Stirred.from_text(source.stirred), run.sites.get(source.site)
    if not stirred.news or site is None:
        return
    _floor, own = _limits(run, site, source, now, now)
    pairs = store.pairs(connection, [one.of for one in stirred.news], source.id)
    left, changed = judge(stirred, pairs, at=now, found=found, own=own)
    meanwhile = [one for one in store.stirred(connection, source.id).news if one not in stirred.news]
    left = Stirred((*left.news, *meanwhile))
    woken = stirred.woken_by is not None
    store.settle(connection, source.id, left, {of: pairs[of] for of in changed}, woken=woken, found=found)


def _limits(run: Runtime, site: Site, source: SourceRow, now: float, at: float) -> tuple[float, float]:
    """The instant before which `source` may not be polled, and how probable it has news at `at` by its own rate."""
    last = source.last_at or now
    policy = policy_of(run, site, source.url)
    floor = max(last + policy.min_interval, source.retry_at or 0.0)
    if not source.schedule:
        return floor, 0.0
    state = schedule.loads(source.schedule)
    decision = schedule.decide(state, datetime.fromtimestamp(now, UTC))
    floor = max([floor, *(bound.since + bound.seconds for bound in decision.bounds if bound.kind == "floor")])
    due = decision.at.timestamp()
    share = min(1.0, max(0.0, at - last) / max(due - last, 1.0))
    return floor, 1.0 - math.exp(-decision.expected * share)
