"""A source's health: failing after some failures in a row, recovered, moved, gone (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from monitor.core.reconcile import Draft, found_in, when

FAILING_AFTER = 3
"""Failures in a row before anyone is told: a hiccup is no news (changedetection.io 1678)."""

MOVED_AFTER = 3
"""Polls in a row with a permanent redirect to one place before it counts as a move (miniflux 1387)."""

Result = Literal["modified", "unchanged", "partial", "failed", "gone", "throttled", "offline"]


@dataclass(frozen=True, slots=True)
class Health:
    """What is remembered of a source's health. Instants in seconds since the epoch."""

    state: str
    failures: int = 0
    failing_since_at: float | None = None
    moves: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one poll ended. ``offline``: the monitor's own network was down, which says nothing of the source.

    `error` is one sentence for people; `moved_to` where a permanent redirect led."""

    result: Result
    status: int | None = None
    error: str | None = None
    moved_to: str | None = None


def after_poll(
    health: Health, outcome: Outcome, *, site: str, kind: str, url: str, now: float
) -> tuple[Health, list[Draft]]:
    """The health after a poll, and the `source.*` events it gives rise to.

    A partial read (a tree with a file that failed) counts towards failing: what is behind it is not being watched.
    Throttling (429, 503 with Retry-After) is the server's good right and no failure until it lasts.
    """
    base = {"site": site, "url": url, "found_in": found_in(kind, url)}
    events: list[Draft] = []
    if outcome.result == "gone":
        if health.state != "gone":
            events.append(Draft("source.gone", url, base | {"status": outcome.status, "error": outcome.error}))
        return replace(health, state="gone", failures=health.failures + 1), events
    if outcome.result in ("failed", "partial", "throttled"):
        failures = health.failures + 1
        since = health.failing_since_at if health.failing_since_at is not None else now
        state = health.state
        if failures >= FAILING_AFTER and state != "failing":
            state = "failing"
            events.append(
                Draft(
                    "source.failing",
                    url,
                    base
                    | {"status": outcome.status, "error": outcome.error, "since": when(since), "failures": failures},
                )
            )
        return Health(state, failures, since, health.moves), events
    if health.state in ("failing", "gone"):
        events.append(
            Draft(
                "source.recovered",
                url,
                base | {"status": outcome.status, "error": None, "since": when(health.failing_since_at)},
            )
        )
    moves = health.moves + 1 if outcome.moved_to else 0
    if moves == MOVED_AFTER:
        events.append(Draft("source.moved", url, base | {"to": outcome.moved_to}))
    return Health("ok", 0, None, moves), events
