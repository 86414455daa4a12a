"""HTTP as a watcher of documents needs it: a reply in, what to remember and when to return out (pure).

Each rule stands under its section of RFC 9110 (semantics) or RFC 9111 (caching).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal, TypeGuard

LONGEST_FRESHNESS = 7 * 86400.0
LONGEST_RETRY = 86400.0
"""A server that asks to wait longer than a day is asked again after a day."""

LONGEST_VALIDATOR = 2048
"""Servers take some 8,000 bytes of header fields in all; real validators have a few dozen."""

ACCEPT_FEED = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"

_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

Verdict = Literal["modified", "unchanged", "gone", "throttled", "refused", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave to recognise a document by, verbatim. They belong to the URL that gave them."""

    url: str
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """One step of a chain: the status, and where it led."""

    status: int
    url: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there was no usable answer.

    `kind` is one of dns, refused, unreachable, tls, timeout, reset, too_large, blocked, redirects, protocol, downgrade,
    robots (set by who asks robots.txt first); `message` is one clear sentence.
    """

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request, redirects followed. `status` is None where there was no answer.

    `headers` have lower-case names, repeats of lists joined by a comma, of others the first (RFC
    9110, 5.3); `body` is content-decoded; `complete`
    is False where the transfer was cut: the length was not met, or the coding's trailer lacks or is wrong. `seconds`
    is the time of the exchanges, redirects included, waits for a turn not; `wire_bytes` the size of the body as sent.
    `sent` are the validators that went out with the last request of the chain.
    """

    url: str
    final_url: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    complete: bool = False
    redirects: tuple[Redirect, ...] = ()
    failure: Failure | None = None
    seconds: float = 0.0
    wire_bytes: int = 0
    sent: Validators | None = None


@dataclass(frozen=True, slots=True)
class Freshness:
    """When a server wants us back: `max_age` seconds of freshness, None if it says nothing; `retry_at` if it asks."""

    max_age: float | None = None
    retry_at: datetime | None = None


def conditional_headers(validators: Validators | None, url: str) -> dict[str, str]:
    """The header fields of a conditional request (RFC 9110, 13.1.2 and 13.1.3).

    Validators go back byte for byte, both if both were given, and only to the URL that gave them. One that no request
    can carry (control characters, over `LONGEST_VALIDATOR`) does not go at all: it would fail every request to come.
    """
    if validators is None or validators.url != url:
        return {}
    headers = {}
    if _sendable(validators.etag):
        headers["If-None-Match"] = validators.etag
    if _sendable(validators.last_modified):
        headers["If-Modified-Since"] = validators.last_modified
    return headers


def distrusted(previous: Validators | None, reply: Reply) -> list[str]:
    """The validators that a server gave again for a document that is another now: names as in `Validators`.

    They are frozen, and a 304 that rests on them hides what is new (RFC 9110, 8.8.1 forbids it; web.dev 4382).
    """
    if previous is None or reply.status != 200 or previous.url != (reply.final_url or reply.url):
        return []
    now = {"etag": reply.headers.get("etag"), "last_modified": reply.headers.get("last-modified")}
    return [name for name, value in now.items() if value and value == getattr(previous, name)]


def _sendable(validator: str | None) -> TypeGuard[str]:
    return validator is not None and 0 < len(validator) <= LONGEST_VALIDATOR and not _CONTROLS.search(validator)


def renew(previous: Validators | None, reply: Reply) -> Validators | None:
    """The validators to remember after a successful, complete read, or a 304.

    Every 200 replaces both; a 304 renews those it restates and keeps the others (RFC 9111, 4.3.4); a body that was
    cut and any other answer leave them as they were. None: there are none, and the next request is unconditional.
    """
    if reply.status != 304 and not (reply.status in (200, 226) and reply.complete):
        return previous
    etag = reply.headers.get("etag")
    last_modified = reply.headers.get("last-modified")
    if reply.status == 304 and previous is not None:
        etag = etag or previous.etag
        last_modified = last_modified or previous.last_modified
    if not etag and not last_modified:
        return None
    return Validators(reply.final_url or reply.url, etag, last_modified)


def verdict(reply: Reply) -> Verdict:
    """What a reply means for a document that is watched.

    A 304 that nobody asked for tells nothing and is a failure; 429 and 503 ask for patience (RFC 6585, 4; RFC 9110,
    15.6.4); 410 is meant to last, 404 is not (RFC 9110, 15.5.5 and 15.5.11).
    """
    status = reply.status
    if status is None or reply.failure is not None:
        return "failed"
    if status == 200:
        return "modified"
    if status == 226:
        return "modified" if is_delta(reply) else "failed"
    if status == 304:
        return "unchanged" if reply.sent is not None else "failed"
    if status == 410:
        return "gone"
    if status in (429, 503):
        return "throttled"
    if status in (401, 402, 403, 406, 451):
        return "refused"
    return "missing" if status == 404 else "failed"


def is_delta(reply: Reply) -> bool:
    """Whether the body holds the entries that are new or changed alone: the instance manipulation ``feed`` of RFC 3229,
    which was asked for (``A-IM: feed``, section 10.5.3) and is named by the answer (``IM``, section 10.5.2)."""
    names = [name.partition(";")[0].strip().lower() for name in reply.headers.get("im", "").split(",")]
    return reply.status == 226 and reply.sent is not None and reply.sent.etag is not None and names == ["feed"]


def freshness(reply: Reply, now: datetime) -> Freshness:
    """How long the reply is fresh, and when the server asks to be asked again.

    `max-age` goes before `Expires` (RFC 9111, 5.3); the age the reply already had is taken off (4.2.3); `no-cache` and
    `no-store` (5.2.2) leave nothing to go by: None. At most a week is believed. Retry-After is seconds or a date
    (RFC 9110, 10.2.3), believed up to a day.
    """
    return Freshness(_lifetime(reply, now), _retry_at(reply, now))


def _lifetime(reply: Reply, now: datetime) -> float | None:
    control = reply.headers.get("cache-control", "").lower()
    # With a list of fields, no-cache is about those fields alone (RFC 9111, 5.2.2.4).
    if re.search(r"\bno-(cache|store)\b(?!\s*=)", control):
        return None
    found = re.search(r"\bmax-age\s*=\s*\"?([0-9]{1,10})", control)
    lifetime: float | None = None
    if found:
        lifetime = float(found[1])
    elif expires := _date(reply.headers.get("expires")):
        lifetime = (expires - _served(reply, now)).total_seconds()
    if lifetime is None:
        return None
    lifetime -= _seconds(reply.headers.get("age", "").split(",")[0]) or 0.0
    return min(max(0.0, lifetime), LONGEST_FRESHNESS)


def _retry_at(reply: Reply, now: datetime) -> datetime | None:
    text = reply.headers.get("retry-after", "")
    if not text or (reply.status is not None and reply.status < 300):
        return None
    wait = _seconds(text)
    if wait is None and (date := _date(text)):
        # A date by the server's clock: what matters is how far ahead it lies of the server's own Date.
        wait = (date - _served(reply, now)).total_seconds()
    return None if wait is None else now + timedelta(seconds=min(max(0.0, wait), LONGEST_RETRY))


def _served(reply: Reply, now: datetime) -> datetime:
    """When the reply was made by the server's clock; ours where it does not say (RFC 9110, 6.6.1)."""
    return _date(reply.headers.get("date")) or now


def _seconds(text: str) -> float | None:
    """`delay-seconds` or `delta-seconds` (RFC 9110, 10.2.3; RFC 9111, 1.2.2): ASCII digits, and no others."""
    text = text.strip()
    return float(text) if text.isascii() and text.isdigit() else None


def _date(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        parsed = parsedate_to_datetime(text)
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def permanent_target(reply: Reply) -> str | None:
    """Where a chain of permanent redirects alone leads (RFC 9110, 15.4.2 and 15.4.9); None if there is none."""
    if not reply.redirects or any(step.status not in (301, 308) for step in reply.redirects):
        return None
    return reply.redirects[-1].url if verdict(reply) in ("modified", "unchanged") else None


_PHRASES = {
    401: "wants a login",
    403: "refuses us",
    404: "not found",
    406: "refuses what we accept",
    410: "gone for good",
    429: "asks us to slow down",
    451: "withheld for legal reasons",
    500: "server error",
    502: "bad gateway",
    503: "unavailable for now",
    504: "gateway timeout",
}


def describe(reply: Reply) -> str:
    """One sentence for status and logs."""
    if reply.failure is not None:
        return reply.failure.message
    if reply.status is None:
        return "no answer"
    if reply.status == 304 and reply.sent is None:
        return "HTTP 304 to a request that was not conditional"
    if reply.status == 226 and not is_delta(reply):
        return "HTTP 226 (a part of the document) that was not asked for"
    phrase = _PHRASES.get(reply.status)
    return f"HTTP {reply.status}" + (f" ({phrase})" if phrase else "")
