"""Whether a date has the form that a format prescribes, and whether it lies in the future, for certain (pure)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate

from monitor.core.dates import is_w3c, parse_date

SKEW = timedelta(hours=1)
"""By how much a clock may be fast before its dates count as of the future."""

ZONE = timedelta(hours=14)
"""The farthest zone in use, UTC+14: by so much a date without a zone may be ahead of UTC."""

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# RFC 822 section 5.1 with four-digit years, as RSS 2.0 has it.
_RFC_822 = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)\s*,\s*)?\d{1,2}\s+(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\s+"
    r"(?:\d{4}|\d\d)\s+\d\d:\d\d(?::\d\d)?\s+(?:ut|gmt|[ecmp][sd]t|[a-ik-z]|[+-]\d{4})",
    re.I | re.ASCII,
)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def in_future(instant: datetime, now: datetime, *, zone: bool) -> bool:
    """Whether an instant lies after `now` for certain; `zone` says that its text gave a zone and a time of day."""
    return instant - now > (SKEW if zone else ZONE)


def fits_w3c(text: str) -> bool:
    """Whether `text` is a date of the W3C's note "Date and Time Formats", and such a time exists."""
    return is_w3c(text) and _exists(text)


def fits_rfc3339(text: str) -> bool:
    """Whether `text` is a `date-time` of RFC 3339 section 5.6, in capitals (RFC 4287, 3.3), and such a time exists."""
    return _RFC_3339.fullmatch(text) is not None and _exists(text)


def _exists(text: str) -> bool:
    return parse_date(text).problem in (None, "leap-second")


def fits_rfc822(text: str) -> bool:
    """Whether `text` is a date of RFC 822 section 5.1; its day of the week may be wrong."""
    return _RFC_822.fullmatch(text) is not None


def wrong_weekday(text: str) -> bool:
    """Whether a date of RFC 822 names a day of the week on which it does not fall."""
    if "," not in text or not fits_rfc822(text):
        return False
    fields = parsedate(text)
    try:
        weekday = datetime(*fields[:3], tzinfo=UTC).weekday() if fields is not None else 0
    except ValueError:
        return False
    return _WEEKDAYS[weekday] != text[:3].lower()
