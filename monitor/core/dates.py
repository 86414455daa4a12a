"""Dates as sites write them: one value at a time, its precision kept, never an exception, never an invented field.

Sources: W3C note "Date and Time Formats" (W3C-DTF), RFC 3339, RFC 5322 section 3.3 with its obsolete zones, ISO 8601.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz
from functools import lru_cache

from dateutil import parser as dateutil_parser

from monitor.model import Date, Precision

MAX_TEXT = 100
"""Characters; no date is longer, and no longer text is looked at."""

_DAY = timedelta(days=1)
_MAX_OFFSET = timedelta(hours=14)  # the farthest zone in use, UTC+14 (Kiribati)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_HOURS = (
    "Z=0 UT=0 UTC=0 GMT=0 WET=0 WEST=1 BST=1 CET=1 MET=1 CEST=2 MEST=2 EET=2 SAST=2 EEST=3 MSK=3 PKT=5 WIB=7 HKT=8 "
    "SGT=8 AWST=8 JST=9 KST=9 ACST=9.5 AEST=10 ACDT=10.5 AEDT=11 NZST=12 NZDT=13 NDT=-2.5 ADT=-3 NST=-3.5 AST=-4 "
    "EDT=-4 EST=-5 CDT=-5 CST=-6 MDT=-6 MST=-7 PDT=-7 PST=-8 AKDT=-8 AKST=-9 HST=-10"
)
# Names with more than one meaning (IST, ECT, PT, ...) are left out: an unknown zone is safer than a wrong one.
NAMED_ZONES: dict[str, timedelta] = {
    name: timedelta(hours=float(hours)) for name, hours in (pair.split("=") for pair in _HOURS.split())
}
"""Offsets from UTC of the zone names that are understood."""

# What a well-kept site writes; everything else may take longer.
_FAST = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?P<seconds>:\d\d(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_ISO = re.compile(
    r"(?P<year>\d{4})(?:(?P<sep>[-/.])(?P<month>\d{1,2})(?P=sep)(?P<day>\d{1,2})|(?P<month2>\d\d)(?P<day2>\d\d))"
    r"(?:(?:\s*[Tt_]\s*|\s+|(?<=\d{8})(?=\d))(?P<hour>\d{1,2})"
    r"(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?(?!\d))?\s*(?P<rest>.*)",
    re.ASCII | re.DOTALL,
)
_MONTH_ONLY = re.compile(r"(\d{4})(?:[-/](\d{1,2}))?", re.ASCII)
_ORDINAL = re.compile(r"(\d{4})-(\d{3})", re.ASCII)
_NUMERIC = re.compile(r"\b(\d{1,2})([-/. ])(\d{1,2})\2(\d{2}|\d{4})\b(?:,?\s+(\S.*))?", re.ASCII)
_SENTINEL = re.compile(  # as .NET, MySQL and PHP write "none", the last two also within RFC 5322
    r"^-\d{1,6}-\d|^0{4}(?:\b|-|\d{4}\b)|^0001-01-01|\s(?:-0001|-1|000[01])\s", re.ASCII
)
_WEEK = re.compile(r"\d{4}-?W\d\d(?:-?\d)?", re.ASCII)
_W3C = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?)?)?", re.ASCII)
_ZONE = re.compile(r"(?:(?:UTC|GMT)\s*)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?", re.ASCII | re.I)
_TAIL_ZONE = re.compile(
    r"(?:\s*(?P<number>(?:\b(?:UTC|GMT)\s*[+-]\d{1,2}(?::?\d\d)?|[+-]\d{1,2}:?\d\d))|\s+(?P<name>[A-Za-z]{1,5}))$",
    re.ASCII,
)
_UNIX_YEAR = re.compile(r"\s([A-Z]{3,5})\s(\d{4})$", re.ASCII)  # date(1): Mon May  6 10:11:12 EDT 2024
_COMMENT = re.compile(r"\s*\([^()]*\)$")
_MONTH_NAME = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.I)
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)", re.ASCII)
_HALF_DAY = re.compile(r"\d\s*[ap]\.?m\b", re.ASCII | re.I)  # email.utils reads 10 PM as 10
_CLOCK = re.compile(r"\d:\d\d(:\d\d)?|\d\s*(?:am|pm)\b", re.ASCII | re.I)


def parse_date(text: str, *, now: datetime | None = None) -> Date:
    """What `text` says of a date: instant, precision, whether a zone was given, and what is wrong with it.

    Never raises and never guesses: a field that is not in the text is not taken from today. A date-only text (year,
    month or day precision) stands for the start of that period at 00:00 UTC, also where it carries an offset.
    `zone` is False for every text that names no zone, date-only ones included, and where the zone is not understood:
    such an instant may be up to 14 hours off.

    `problem` where there is no instant: ``not-a-date``, ``sentinel`` (year 0 or 1, negative years, 1970-01-01),
    ``out-of-range`` (30 February), ``ambiguous`` (day or month first cannot be told). Where there is one: ``offset``
    (a zone that is none: the clock time is read as UTC), ``leap-second`` (``:60`` read as ``:59``), ``time`` (no such
    time of day: only the day is kept), and with `now` given ``future`` for more than a day after it.
    `text` of the result is stripped of surrounding white space and cut to `MAX_TEXT` characters.
    """
    text = text.strip()
    if len(text) > MAX_TEXT:
        return Date(text[:MAX_TEXT], None, None, False, "not-a-date")
    date = _parse(text)
    if now is not None and date.instant is not None and date.instant - now > _DAY:
        return replace(date, problem="future")
    return date


def is_w3c(text: str) -> bool:
    """Whether `text` has one of the six forms of W3C-DTF, the one that sitemaps.org asks of `lastmod`."""
    return _W3C.fullmatch(text) is not None and parse_date(text).instant is not None


def _parse(text: str) -> Date:
    form = _FAST.fullmatch(text)
    if form is None:
        return _parse_odd(text)
    seconds, zone = form.groups()
    try:
        instant = datetime.fromisoformat(text)
        if zone is None:
            precision: Precision = "day" if len(text) == 10 else "second" if seconds else "minute"
            return _checked(text, instant.replace(tzinfo=UTC), precision, False)
        if zone == "Z" or zone[1:] <= "14:00":
            return _checked(text, instant.astimezone(UTC), "second" if seconds else "minute", True)
    except (ValueError, OverflowError):
        pass  # T24:00, :60, 30 February
    return _parse_odd(text)


@lru_cache(maxsize=4096)  # the slow ways, where a file repeats one text; the fast way costs no more than a cache
def _parse_odd(text: str) -> Date:
    try:
        return _parse_iso(text) or _parse_numeric(text) or _parse_words(text) or _invalid(text, "not-a-date")
    except (ValueError, OverflowError):
        return _invalid(text, "out-of-range")


def _invalid(text: str, problem: str) -> Date:
    return Date(text, None, None, False, problem)


def _checked(text: str, instant: datetime, precision: Precision, zone: bool, problem: str | None = None) -> Date:
    """The date, unless it is a value that software writes when it has none."""
    year = instant.year
    if year < 1000:
        return _invalid(text, "sentinel" if year <= 1 else "out-of-range")
    if year <= 1970 and abs(instant - _EPOCH) <= _DAY:
        return _invalid(text, "sentinel")
    return Date(text, instant, precision, zone, problem)


def _parse_iso(text: str) -> Date | None:
    """Year first, in every spelling of ISO 8601 and its neighbours; None for other texts."""
    if _SENTINEL.search(text):
        return _invalid(text, "sentinel")
    if form := _ISO.fullmatch(text):
        month, day = int(form["month"] or form["month2"]), int(form["day"] or form["day2"])
        return _with_time(text, datetime(int(form["year"]), month, day, tzinfo=UTC), form)
    if form := _MONTH_ONLY.fullmatch(text):
        first = datetime(int(form[1]), int(form[2] or 1), 1, tzinfo=UTC)
        return _checked(text, first, "month" if form[2] else "year", False)
    if form := _ORDINAL.fullmatch(text):
        numbered = datetime(int(form[1]), 1, 1, tzinfo=UTC) + _DAY * (int(form[2]) - 1)
        return _checked(text, numbered, "day", False) if numbered.year == int(form[1]) else None
    if _WEEK.fullmatch(text):
        return _checked(text, datetime.fromisoformat(text).replace(tzinfo=UTC), "day", False)
    return None


def _with_time(text: str, day: datetime, form: re.Match[str]) -> Date | None:
    """`day` at the time and zone that `form` (a match of `_ISO`) found after it."""
    offset = _offset(form["rest"])
    if form["hour"] is None:
        if offset is None and form["rest"]:
            return None
        return _checked(text, day, "day", offset is not None)
    problem = "offset" if offset is None and form["rest"] else None
    hour, minute, second = int(form["hour"]), int(form["minute"] or 0), int(form["second"] or 0)
    if second == 60:
        second, problem = 59, problem or "leap-second"
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
        return _checked(text, day, "day", False, "time")
    clock = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=_microseconds(form["fraction"]))
    precision: Precision = "minute" if form["second"] is None else "second"
    return _checked(text, day + clock - (offset or timedelta()), precision, offset is not None, problem)


def _microseconds(fraction: str | None) -> int:
    return int(fraction[:6].ljust(6, "0")) if fraction else 0


def _offset(zone: str) -> timedelta | None:
    """Offset from UTC of a zone as written (``Z``, ``+02:00``, ``EST``), None where it is none."""
    named = NAMED_ZONES.get(zone.upper())
    if named is not None:
        return named
    form = _ZONE.fullmatch(zone)
    if form is None or int(form["minutes"] or 0) > 59:
        return None
    offset = timedelta(hours=int(form["hours"]), minutes=int(form["minutes"] or 0))
    if offset > _MAX_OFFSET:
        return None
    return -offset if form["sign"] == "-" else offset


def _parse_numeric(text: str) -> Date | None:
    """Numbers with the year last. Which is day and which month is told only by a number above 12."""
    form = _NUMERIC.search(text)
    if form is None or _MONTH_NAME.search(text):
        return None
    first, second = int(form[1]), int(form[3])
    if len(form[4]) == 2 or (first != second and first <= 12 and second <= 12) or form.start() > 0:
        return _invalid(text, "ambiguous")
    month, day = (first, second) if first <= 12 else (second, first)
    same_day = f"{form[4]}-{month:02}-{day:02}"
    parsed = _parse_iso(f"{same_day} {form[5]}" if form[5] else same_day)
    return replace(parsed, text=text) if parsed is not None else None


def _parse_words(text: str) -> Date | None:
    """RFC 5322, ctime and prose: a text with the name of a month. English only; other languages are not a date."""
    if not _MONTH_NAME.search(text):
        return None
    body, offset, bad_zone = _split_zone(_UNIX_YEAR.sub(r" \2 \1", _COMMENT.sub("", text)))
    moment = (None if _HALF_DAY.search(body) else _email_date(body)) or _prose_date(body)
    if moment is None:
        return None
    clock = _CLOCK.search(body)
    precision: Precision = "day" if clock is None else "second" if clock[1] else "minute"
    if precision == "day":
        return _checked(text, moment, "day", False)
    return _checked(
        text, moment - (offset or timedelta()), precision, offset is not None, "offset" if bad_zone else None
    )


def _split_zone(text: str) -> tuple[str, timedelta | None, bool]:
    """The text without the zone at its end, the zone's offset, and whether there was one that is not understood."""
    tail = _TAIL_ZONE.search(text)
    if tail is None or not _CLOCK.search(text):
        return text, None, False
    name = tail["name"]
    if name and (name.upper() in ("AM", "PM") or _MONTH_NAME.match(name)):
        return text, None, False
    offset = _offset((name or tail["number"]).strip())
    return text[: tail.start()], offset, offset is None


def _email_date(text: str) -> datetime | None:
    fields = parsedate_tz(f"{text} +0000") if text else None
    if fields is None:
        return None
    year, month, day, hour, minute, second = fields[:6]
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _prose_date(text: str) -> datetime | None:
    """What dateutil reads, provided that year, month and day are all in the text."""
    if not _YEAR.search(text):  # dateutil takes the century of a two-digit year from the clock
        return None
    moments = []
    for default in (datetime(2000, 1, 1, tzinfo=UTC), datetime(2004, 2, 2, tzinfo=UTC)):
        try:
            moment = dateutil_parser.parse(text, default=default, ignoretz=True)
        except (ValueError, OverflowError, TypeError, IndexError, AttributeError, ArithmeticError):
            return None
        moments.append(moment.replace(tzinfo=UTC))
    return moments[0] if moments[0] == moments[1] else None
