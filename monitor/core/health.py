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
    """What is remembered of a source's health. Instants in seconds since the epoch.

    `moved_to` is where its address redirected for good in the last `moves` polls; from `MOVED_AFTER` on it has moved.
    """

    state: str
    failures: int = 0
    failing_since_at: float | None = None
    moves: int = 0
    moved_to: str | None = None

    def address(self, url: str) -> str:
        """Where the source known by `url` is to be asked: there, or where it has moved to.

        An address that failed takes turns with the other: what moved may be back, and an old address may die before
        its redirect has lasted.
        """
        if self.moved_to is None:
            return url
        return self.moved_to if (self.moves >= MOVED_AFTER) != (self.failures % 2 == 1) else url


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
        return replace(health, state=state, failures=failures, failing_since_at=since), events
    if health.state in ("failing", "gone"):
        events.append(
            Draft(
                "source.recovered",
                url,
                base | {"status": outcome.status, "error": None, "since": when(health.failing_since_at)},
            )
        )
    moves, moved_to = _moved(health, outcome, url)
    if health.moves < MOVED_AFTER <= moves:
        events.append(Draft("source.moved", url, base | {"to": moved_to}))
    return Health("ok", 0, None, moves, moved_to), events


def _moved(health: Health, outcome: Outcome, url: str) -> tuple[int, str | None]:
    """How often in a row the source has redirected to one place for good, up to `MOVED_AFTER`, and to which.

    From http to https of the same address once is enough: it is the same place.
    """
    asked, to = health.address(url), outcome.moved_to
    if to is not None and to != asked:
        if url.startswith("http://") and to == f"https{url[4:]}":
            return MOVED_AFTER, to
        return min(health.moves + 1, MOVED_AFTER) if to == health.moved_to else 1, to
    if asked == health.moved_to:
        return min(health.moves + 1, MOVED_AFTER), asked
    return 0, None
