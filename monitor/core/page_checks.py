"""The page itself as a witness: what a read of it says about a suspected change or absence (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from monitor.core.page import PageFacts
from monitor.core.reconcile import SAME_EDIT, Changes, Check, Draft, KnownPage, Rules, at, when
from monitor.core.url import page_key

Witness = Literal["confirmed", "denied", "silent"]


@dataclass(frozen=True, slots=True)
class PageMemory:
    """What was learnt from earlier reads of a page."""

    etag: str | None = None
    last_modified: str | None = None
    validators_url: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class PageReading:
    """One read of a page. `status` is None where there was no answer (or no leave to ask: `error` says why).

    `again`: that was no answer about the page (429, 5xx, none at all), and another try may bring one. `permanent`: it
    was redirected for good (RFC 9110, 15.4.2 and 15.4.9) and in no other way.
    """

    status: int | None
    final_url: str | None = None
    facts: PageFacts | None = None
    error: str | None = None
    again: bool = False
    permanent: bool = False


FIRST_WAIT, MORE_WAITS = 600.0, (1800.0, 7200.0, 21600.0)
"""Seconds after which a page that gave no answer is asked again, after the first such try and the next ones."""

THROTTLED_WAIT = 3600.0
"""Seconds for which a host that asks for patience, and does not say how long, is left alone."""

LONGEST_DOUBT = 86400.0
"""After so many seconds without an answer the listings' word has to do."""


def ask_again(tries: int, put_off_at: float | None, now: float, *, patience: float | None = None) -> float | None:
    """When to ask a page again after its `tries`-th asking in a row that got no answer; None: no more.

    `put_off_at` is when it was first put off, `patience` the seconds for which its host asks to be left alone.
    """
    waits = (FIRST_WAIT, *MORE_WAITS)
    if tries > len(waits) or (put_off_at is not None and now - put_off_at >= LONGEST_DOUBT):
        return None
    return now + max(patience or 0.0, waits[max(tries, 1) - 1])


def matters(check: Check, rules: Rules) -> bool:
    """Whether the page's own answer is waited for. A plausible lastmod is told without it, and told in time."""
    return check.why == "missing" or bool(check.detail.get("weak")) or rules.verify == "always"


NOT_ASKED = PageReading(None, error="the page was not asked")


def judge_changed(
    check: Check, page: KnownPage, memory: PageMemory, reading: PageReading, rules: Rules, now: datetime
) -> tuple[Changes, Witness]:
    """Whether a page whose lastmod or `updated` advanced has really changed.

    A fingerprint that differs proves it (evidence `page`), one that does not disproves it; without one the page's own
    dates speak. Where nothing speaks, a plausible lastmod is believed (evidence `lastmod`), a weak hint is not.
    Returns the changes, and what the page said of the listing's claim.
    """
    detail, changes = check.detail, Changes()
    modified_at = detail.get("modified_at")
    if page.changed_at is not None and modified_at is not None and modified_at <= page.changed_at + SAME_EDIT:
        return changes, "silent"  # an entry's edit has told it meanwhile
    witness = _witness(detail, memory, reading)
    evidence = "page" if witness == "confirmed" else "lastmod"
    if witness == "denied" or (witness == "silent" and (detail.get("weak") or rules.verify == "always")):
        return changes, witness
    fields = list(detail["fields"]) + (["content"] if _content_differs(memory, reading) else [])
    changes.pages[page.id] = replace(page, changed_at=now.timestamp(), changed=evidence)
    changes.events.append(
        Draft(
            "url.changed",
            page.url,
            {
                "site": rules.site,
                "url": page.url,
                "observed_url": detail["url"],
                "found_in": detail["found_in"],
                "changed": fields,
                "before": detail["before"],
                "after": detail["after"],
                "evidence": evidence,
            },
        )
    )
    return changes, witness


def _content_differs(memory: PageMemory, reading: PageReading) -> bool:
    facts = reading.facts
    return facts is not None and memory.fingerprint is not None and facts.fingerprint != memory.fingerprint


def _witness(detail: dict[str, Any], memory: PageMemory, reading: PageReading) -> Witness:
    if reading.status == 304:
        return "denied"
    facts = reading.facts
    if reading.status != 200 or facts is None:
        return "silent"
    if memory.fingerprint is not None:
        return "confirmed" if facts.fingerprint != memory.fingerprint else "denied"
    page_says, before_at, after_at = at(facts.modified), detail.get("before_at"), detail.get("modified_at")
    if page_says is None or after_at is None:
        return "silent"
    if abs(page_says - after_at) <= 3600:
        return "confirmed"
    if before_at is not None and page_says < before_at - 86400:
        return "denied"
    return "silent"


def leads_elsewhere(reading: PageReading, url: str) -> bool:
    """Whether the page at `url` answered with a redirect to another page."""
    return not reading.again and reading.final_url is not None and not same_place(reading.final_url, url)


def walls(readings: Iterable[tuple[str, PageReading]], home: str) -> frozenset[str]:
    """Where several of the pages asked, (url, reading) each, are redirected to, and the home page.

    That is a consent or login page, or a place for whatever is not found: it says nothing of the one page.
    """
    targets = Counter(target_of(reading) for url, reading in readings if leads_elsewhere(reading, url))
    return frozenset(target for target, count in targets.items() if count > 1) | {_bare(home).partition("?")[0]}


def target_of(reading: PageReading) -> str:
    """Where a page was redirected to, less the query: a login page is told there where to go back to."""
    return _bare(reading.final_url or "").partition("?")[0]


def _proves(reading: PageReading, nowhere: Collection[str]) -> bool:
    """Whether a redirect proves that a page that is listed still has moved: for good, to a living page of its own."""
    target = target_of(reading)
    return reading.permanent and reading.status == 200 and "/" in target and target not in nowhere


def judge_missing(
    check: Check,
    page: KnownPage,
    reading: PageReading,
    listed: Collection[str],
    rules: Rules,
    now: datetime,
    nowhere: Collection[str] = (),
) -> Changes:
    """The verdict on a page that a listing has dropped; `listed` are the kinds of documents that list it now.

    The page's own answer goes before the listing's: 404 or 410 is `dead`, another page's address `redirected`. Where
    something lists it still, or the feed has not proven that it drops no living entry (`proof_needed`), only a dead
    page is missing, or one redirected for good to a page of its own (none of the `walls` in `nowhere`); one that is
    back in the kind of listing that dropped it is not.
    """
    changes, detail = Changes(), check.detail
    if page.missing_at is not None or set(detail["missing_from"]) & set(listed):
        return changes
    reason = detail["reason"]
    noindex = reading.facts.noindex if reading.facts is not None else None
    elsewhere, unproven = leads_elsewhere(reading, page.url), bool(detail.get("proof_needed") or listed)
    if reading.status in (404, 410):
        reason = "dead"
    elif elsewhere and (not unproven or _proves(reading, nowhere)):
        reason = "redirected"
    elif unproven and (elsewhere or not noindex):
        return changes
    changes.pages[page.id] = replace(page, missing_at=now.timestamp(), missing_reason=reason)
    data: dict[str, Any] = {
        "site": rules.site,
        "url": page.url,
        "found_in": detail["found_in"],
        "reason": reason,
        "missing_from": detail["missing_from"],
        "last_seen": detail["last_seen"],
        "page": {"status": reading.status, "final_url": reading.final_url, "noindex": noindex, "error": reading.error},
        "listing": {"reason": detail["reason"], "reads": detail["reads"]},
        "first_seen": when(page.first_at),
        "title": page.title,
    }
    changes.events.append(Draft("url.missing", page.url, data))
    return changes


def same_place(one: str, other: str) -> bool:
    """Whether two addresses differ by no more than scheme, `www.`, a trailing slash or trackers."""
    return _bare(one) == _bare(other)


def _bare(url: str) -> str:
    key = page_key(url)
    rest = key.split("://", 1)[-1].removeprefix("www.")
    path, query, tail = rest.partition("?")
    return path.rstrip("/") + query + tail
