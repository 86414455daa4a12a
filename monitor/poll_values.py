"""What a poll writes of its source and its document, beside what was reconciled."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from monitor import schedule
from monitor.config import Site
from monitor.core.file_turns import Watched, after_read
from monitor.core.health import Outcome, after_poll
from monitor.core.http import Reply, Validators, freshness
from monitor.core.reconcile import Draft, found_in
from monitor.core.simulate import NewsPoll
from monitor.model import Feed
from monitor.pricing import policy_of
from monitor.runtime import Runtime
from monitor.store import sources as source_store
from monitor.store.sources import DocumentRow, SourceRow

FULL_READ = 7 * 86400.0
"""An unconditional read this often proves that the server's validators are not frozen (web.dev 4382)."""

GONE_RECHECK = 7 * 86400.0


def baseline(
    run: Runtime, connection: Connection, source: SourceRow, pages: int, files: int, seconds: float, now: float
) -> list[Draft]:
    """The `source.baseline` event, and the marks that the source and its site have one."""
    source_store.set_source(connection, source.id, baseline_at=now)
    row = run.rows[source.site]
    if row.watching_since_at is None:
        source_store.set_site(connection, row.id, watching_since_at=now)
        run.rows[source.site] = replace(row, watching_since_at=now)
    return [
        Draft(
            "source.baseline",
            source.url,
            {
                "site": source.site,
                "url": source.url,
                "found_in": found_in(source.kind, source.url),
                "pages": pages,
                "files": files,
                "seconds": round(seconds, 3),
            },
        )
    ]


def news_poll(poll: schedule.Poll, since: float | None, polls: int, *, first: bool) -> NewsPoll:
    """What is kept of a poll that brought news, for `monitor simulate`. All that a first one shows counts as new."""
    at, new = poll.at.timestamp(), poll.size if first else poll.new
    begin = -math.inf if first or since is None else since
    dates = sorted((when for entry in poll.entries if begin < (when := entry.timestamp()) <= at), reverse=True)
    return NewsPoll(at, None if first else since, polls, new, poll.size, tuple(at - when for when in dates[:new]))


def source_values(
    run: Runtime, site: Site, source: SourceRow, outcome: Outcome, poll: schedule.Poll, reply: Reply, now: float
) -> tuple[dict[str, Any], list[Draft]]:
    """What a poll of a feed writes of its source: health, schedule, the next poll and why; and the events of it."""
    health, drafts = after_poll(
        source.health(),
        outcome,
        site=source.site,
        kind=source.kind,
        url=source.url,
        now=now,
    )
    policy = policy_of(run, site, source.url)
    known = schedule.loads(source.schedule) if source.schedule else schedule.start(policy, source.id, run.population)
    state = schedule.observe(schedule.with_policy(known, policy), poll, run.population)
    decision = schedule.decide(state, utc(now))
    retry_at = freshness(reply, utc(now)).retry_at
    next_at, reason = decision.at.timestamp(), decision.text
    if health.state == "gone":
        next_at, reason = now + GONE_RECHECK, "the feed answered 410 Gone; looked at again once a week"
    return {
        "source_id": source.id,
        "state": health.state,
        "failures": health.failures,
        "failing_since_at": health.failing_since_at,
        "moves": health.moves,
        "moved_to": health.moved_to,
        "next_at": next_at,
        "reason": reason,
        "retry_at": retry_at.timestamp() if retry_at else None,
        "last_at": now,
        "last_result": outcome.result,
        "last_error": outcome.error if outcome.result not in ("modified", "unchanged") else None,
        "last_status": outcome.status,
        "schedule": schedule.dumps(state),
    }, drafts


def hints_of(reply: Reply, feed: Feed | None, now: float) -> schedule.Hints:
    """What the server and the document say about when to come back."""
    fresh = freshness(reply, utc(now))
    return schedule.Hints(
        max_age=fresh.max_age,
        ttl=feed.ttl if feed else None,
        update_period=feed.update_period if feed else None,
        skip_hours=feed.skip_hours if feed else frozenset(),
        skip_days=feed.skip_days if feed else frozenset(),
        retry_at=fresh.retry_at,
        hub=bool(feed and feed.hub),
    )


def confirmation(
    document: DocumentRow, kept: Validators | None, reply: Reply, now: float, turn: int | None = None
) -> dict[str, Any]:
    """What a read that found a document unchanged writes of it: both validators are renewed (commafeed 1746).

    `turn` is the pass over the tree that read it.
    """
    known = Watched(document.watched, document.changes, document.turn)
    watched = after_read(known, turn, changed=False) if turn is not None else known
    return {
        "document_id": document.id,
        "validators_url": kept.url if kept else None,
        "etag": kept.etag if kept else None,
        "last_modified": kept.last_modified if kept else None,
        "read_at": now,
        "complete_at": now,
        "full_at": document.full_at if reply.status == 304 else now,
        "error": document.error,
        "watched": watched.passes,
        "turn": watched.turn,
        "read_lastmod": document.index_lastmod,
    }


def utc(seconds: float) -> datetime:
    """An instant of the clock as an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)
