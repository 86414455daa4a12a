"""What a feed says of itself: its title, where it lives, its hub, its pages, how often it asks to be read."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, TypedDict

from monitor.core.feed_entry import absolute, detail_text, text_of

_PERIODS = {"hourly": 3600.0, "daily": 86400.0, "weekly": 604800.0, "monthly": 2592000.0, "yearly": 31536000.0}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SKIPS = re.compile(r"<skip(Hours|Days)\b", re.I)
_MAX_SKIPS = 2000  # characters that 24 hours or 7 days may take
_SKIP = re.compile(r"<(?:hour|day)\b[^<>]*>\s*(\w{1,12})\s*</", re.I)


class Channel(TypedDict):
    """The fields of `Feed` that do not come from its entries."""

    title: str | None
    home_url: str | None
    self_url: str | None
    hub: str | None
    next_archive: str | None
    ttl: float | None
    update_period: float | None
    skip_hours: frozenset[int]
    skip_days: frozenset[int]
    language: str | None
    generator: str | None


def read_channel(raw: Any, text: str, url: str) -> Channel:
    """From feedparser's feed-level values and the document's `text` (of `skipHours` feedparser keeps one hour only).

    Sources: RSS 2.0 `ttl`, `skipHours`, `skipDays`; RSS syndication module; WebSub section 4; RFC 5005 sections 3, 4.
    """
    links: dict[str, str] = {}
    for link in dict.get(raw, "links") or ():
        target = absolute(url, text_of(link, "href")) if isinstance(link, dict) else None
        if target is not None:
            links.setdefault(text_of(link, "rel"), target)
    hours, days = _skips(text)
    return Channel(
        title=detail_text(raw, "title"),
        home_url=absolute(url, text_of(raw, "link")),
        self_url=links.get("self"),
        hub=links.get("hub"),
        next_archive=links.get("prev-archive") or links.get("next"),
        ttl=_number(text_of(raw, "ttl"), 60.0),
        update_period=_period(text_of(raw, "sy_updateperiod"), text_of(raw, "sy_updatefrequency")),
        skip_hours=hours,
        skip_days=days,
        language=text_of(raw, "language") or None,
        generator=text_of(raw, "generator")[:200] or None,
    )


def _number(text: str, unit: float) -> float | None:
    found = re.match(r"\d{1,9}(?:\.\d{1,3})?(?!\d)", text, re.A)
    value = float(found[0]) * unit if found else 0.0
    return value or None


def _period(period: str, frequency: str) -> float | None:
    seconds = _PERIODS.get(period.lower())
    return seconds / (_number(frequency, 1.0) or 1.0) if seconds else None


def _skips(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Hours of the day in UTC (24 is midnight, as RSS 0.91 has it) and weekdays, Monday 0."""
    hours, days = set(), set()
    for block in islice(_SKIPS.finditer(text), 4):
        listed = text[block.end() : block.end() + _MAX_SKIPS].lower().split(f"</skip{block[1].lower()}")[0]
        for value in _SKIP.findall(listed):
            if block[1].lower() == "hours" and value.isdecimal() and int(value) <= 24:
                hours.add(int(value) % 24)
            elif block[1].lower() == "days" and value.lower() in _DAYS:
                days.add(_DAYS.index(value.lower()))
    return frozenset(hours), frozenset(days)
