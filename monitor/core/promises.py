"""Coverage promises: a page that matches a pattern is listed by a kind of source within a time (pure).

CONTRACT `expect`. A promise is judged only by reads made after it fell due: a source that was not read since, or whose
read failed, breaks none. Where the site has no source of the promised kind, the page is not in one: that needs no read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from monitor.core.reconcile import Draft, KnownPage, found_in, when

State = Literal["open", "kept", "broken", "mended", "expired"]

WATCHED = 7 * 86400.0
"""A broken promise is looked after for a week; what is listed later than that is another story."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise about one page. `kind` is that of the source, `due_at` in seconds since the epoch."""

    page_id: int
    rule: str
    kind: str
    due_at: float
    state: State = "open"
    broken_at: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The sources of the promised kind: how many there are, and the oldest of their last good reads.

    `stamp` differs as soon as one of them was read again.
    """

    sources: int
    read_at: float | None
    stamp: int = 0


NO_SOURCE = Reading(0, None)


def judge(promise: Promise, listed: bool, reading: Reading, now: float) -> State:
    """The state of a promise at `now`; `listed`: a source of its kind has listed the page, or does."""
    if promise.state == "open":
        if listed:
            return "kept"
        if now - promise.due_at > WATCHED:
            return "expired"  # its sources were never read again
        if now < promise.due_at:
            return "open"
        read = not reading.sources or (reading.read_at is not None and reading.read_at >= promise.due_at)
        return "broken" if read else "open"
    if promise.state == "broken":
        if listed:
            return "mended"
        if promise.broken_at is not None and now - promise.broken_at > WATCHED:
            return "expired"
    return promise.state


def told(
    promise: Promise, state: State, page: KnownPage, seen_in: Sequence[str], site: str, now: float
) -> Draft | None:
    """The event of a promise that went over to `state`, if it makes one."""
    base: dict[str, Any] = {
        "site": site,
        "url": page.url,
        "found_in": found_in(seen_in[0] if seen_in else "feed", ""),
        "reason": "expected",
        "missing_from": [promise.kind],
        "title": page.title,
        "expect": promise.rule,
    }
    if state == "broken" and promise.state == "open":
        more = {"last_seen": None, "first_seen": when(page.first_at), "seen_in": list(seen_in), "page": None}
        return Draft("url.missing", page.url, base | more)
    if state == "mended" and promise.state == "broken":
        since = promise.broken_at if promise.broken_at is not None else now
        return Draft("url.returned", page.url, base | {"missing_seconds": round(now - since, 3)})
    return None
