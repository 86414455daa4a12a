from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.dates import MAX_TEXT, is_w3c, parse_date

DAY = "2024-05-06T00:00:00"
CLOCK = "2024-05-06T10:11:12"

# The "right" column of what is found in the wild: text, instant in UTC, precision, zone given, problem.
READ = [
    ("2024", "2024-01-01T00:00:00", "year", False, None),
    ("2024-05", "2024-05-01T00:00:00", "month", False, None),
    ("2024-05-06", DAY, "day", False, None),
    ("20240506", DAY, "day", False, None),
    ("2024-5-6", DAY, "day", False, None),
    ("2024/05/06", DAY, "day", False, None),
    ("2024-05-06Z", DAY, "day", True, None),
    ("2024-05-06+02:00", DAY, "day", True, None),
    ("2024-W19-1", DAY, "day", False, None),
    ("2024W191", DAY, "day", False, None),
    ("2024-127", DAY, "day", False, None),
    ("2024-05-06T10", "2024-05-06T10:00:00", "minute", False, None),
    ("2024-05-06T10:11Z", "2024-05-06T10:11:00", "minute", True, None),
    ("2024-05-06T10:11:12Z", CLOCK, "second", True, None),
    ("2024-05-06t10:11:12z", CLOCK, "second", True, None),
    ("  2024-05-06T10:11:12Z\n", CLOCK, "second", True, None),
    ("2024-05-06T12:11:12+0200", CLOCK, "second", True, None),
    ("2024-05-06T12:11:12+2:00", CLOCK, "second", True, None),
    ("2024-05-06T12:11:12+02", CLOCK, "second", True, None),
    ("2024-05-06T12:11:12 +02:00", CLOCK, "second", True, None),
    ("2024-05-06T10:11:12-00:00", CLOCK, "second", True, None),
    ("2024-05-07T00:11:12+14:00", CLOCK, "second", True, None),
    ("2024-05-06T10:11:12.123456789Z", "2024-05-06T10:11:12.123456", "second", True, None),
    ("2024-05-06T10:11:12,5Z", "2024-05-06T10:11:12.5", "second", True, None),
    ("2024-05-06T10:11:12", CLOCK, "second", False, None),
    ("2024-05-06 10:11:12", CLOCK, "second", False, None),
    ("20240506101112", CLOCK, "second", False, None),
    ("2024-05-06 10:11:12 UTC", CLOCK, "second", True, None),
    ("2024-05-06T05:11:12 EST", CLOCK, "second", True, None),
    ("2024-05-06T24:00:00Z", "2024-05-07T00:00:00", "second", True, None),
    ("2024-12-31T24:00Z", "2025-01-01T00:00:00", "minute", True, None),
    ("2024-05-06T10:11:60Z", "2024-05-06T10:11:59", "second", True, "leap-second"),
    ("13/05/2024", "2024-05-13T00:00:00", "day", False, None),
    ("05/13/2024 10:11", "2024-05-13T10:11:00", "minute", False, None),
    ("06.06.2024", "2024-06-06T00:00:00", "day", False, None),
    ("Mon, 06 May 2024 12:11:12 +0200", CLOCK, "second", True, None),
    ("Mon, 06 May 2024 12:11:12 +0200 (CEST)", CLOCK, "second", True, None),
    ("Mon, 06 May 24 10:11:12 GMT", CLOCK, "second", True, None),
    ("Monday, 06-May-24 10:11:12 GMT", CLOCK, "second", True, None),
    ("06 May 2024 05:11 EST", "2024-05-06T10:11:00", "minute", True, None),
    ("Mon, 06 May 2024 10:11:12", CLOCK, "second", False, None),
    ("Mon, 06 May 2024", DAY, "day", False, None),
    ("May 6, 2024", DAY, "day", False, None),
    ("6-May-2024", DAY, "day", False, None),
    ("May 6, 2024 10:11 PM", "2024-05-06T22:11:00", "minute", False, None),
    ("May 6, 2024 2:11 AM PST", "2024-05-06T10:11:00", "minute", True, None),
    ("Mon May  6 10:11:12 2024", CLOCK, "second", False, None),
    ("Mon May  6 06:11:12 EDT 2024", CLOCK, "second", True, None),
    ("Mon, 06 May 2024 12:11:12 UTC+2", CLOCK, "second", True, None),
    # Zones that are none: the date is kept, the zone is unknown.
    ("2024-05-06T10:11:12+00:00Z", CLOCK, "second", False, "offset"),
    ("2024-05-06T10:11:12ZZ", CLOCK, "second", False, "offset"),
    ("2024-05-06T10:11:12+99:00", CLOCK, "second", False, "offset"),
    ("2024-05-06T10:11:12+14:30", CLOCK, "second", False, "offset"),
    ("2024-05-06T10:11:12-00:14400", CLOCK, "second", False, "offset"),
    ("2024-05-06T10:11:12Z 2024-05-07T10:11:12Z", CLOCK, "second", False, "offset"),
    ("Mon, 06 May 2024 10:11:12 IST", CLOCK, "second", False, "offset"),
    ("2024-05-06T25:11:12Z", DAY, "day", False, "time"),
]

INVALID = [
    ("", "not-a-date"),
    ("now", "not-a-date"),
    ("10:11:12", "not-a-date"),
    ("6 May", "not-a-date"),
    ("May 2024", "not-a-date"),
    ("6. Mai 2024", "not-a-date"),
    ("lundi 6 mai 2024", "not-a-date"),
    ("2024-05-06-a-headline", "not-a-date"),
    ("31 Apr 2024", "not-a-date"),
    ("٢٠٢٤-٠٥-٠٦", "not-a-date"),
    ("x" * 5000, "not-a-date"),
    ("2024-02-30", "out-of-range"),
    ("2024-13-01", "out-of-range"),
    ("9999-12-31T23:59:59-05:00", "out-of-range"),
    ("0124-05-06", "out-of-range"),
    ("06/05/2024", "ambiguous"),
    ("06.05.2024", "ambiguous"),
    ("06/05/24", "ambiguous"),
    ("Mon, 06/05/2024 10:11", "ambiguous"),
    ("0000-00-00", "sentinel"),
    ("0000-00-00 00:00:00", "sentinel"),
    ("0001-01-01", "sentinel"),
    ("0001-01-01T00:00:00+05:00", "sentinel"),
    ("-0001-11-30T00:00:00+00:00", "sentinel"),
    ("-001-11-29 19:00 -05:00", "sentinel"),
    ("Mon, 01 Jan 0001 00:00:00 GMT", "sentinel"),
    ("Wed, 30 Nov -0001 00:00:00 +0000", "sentinel"),
    ("1970-01-01", "sentinel"),
    ("1970-01-01T01:00:00+01:00", "sentinel"),
    ("1969-12-31T19:00:00-05:00", "sentinel"),
    ("Thu, 01 Jan 1970 00:00:00 GMT", "sentinel"),
]


@pytest.mark.parametrize(("text", "instant", "precision", "zone", "problem"), READ)
def test_reads_what_is_found_in_the_wild(
    text: str, instant: str, precision: str, zone: bool, problem: str | None
) -> None:
    date = parse_date(text)
    assert date.instant == datetime.fromisoformat(instant).replace(tzinfo=UTC)
    assert (date.precision, date.zone, date.problem) == (precision, zone, problem)
    assert date.text == text.strip()


@pytest.mark.parametrize(("text", "problem"), INVALID)
def test_says_why_a_text_is_no_date(text: str, problem: str) -> None:
    date = parse_date(text)
    assert (date.instant, date.precision, date.problem) == (None, None, problem)
    assert len(date.text) <= MAX_TEXT


def test_flags_the_future_only_against_a_given_now() -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    assert parse_date("2024-05-02T00:00:00Z", now=now).problem is None
    late = parse_date("2024-05-02T00:00:01Z", now=now)
    assert (late.problem, late.instant) == ("future", now + timedelta(days=1, seconds=1))
    assert parse_date("2024-05-02T00:00:01Z").problem is None


@pytest.mark.parametrize("text", ["2024", "2024-05", "2024-05-06", "2024-05-06T10:11Z", "2024-05-06T10:11:12.5+02:00"])
def test_knows_the_forms_of_w3c(text: str) -> None:
    assert is_w3c(text)


@pytest.mark.parametrize(
    "text",
    ["2024-05-06T10:11:12", "2024-05-06 10:11Z", "20240506", "6 May 2024", "2024-05-06T10:11+0200", "2024-02-30"],
)
def test_knows_what_is_not_w3c(text: str) -> None:
    assert not is_w3c(text)


@given(st.text(max_size=60) | st.from_regex(r"[-0-9T:Z+./, a-zA-Z]{0,40}", fullmatch=True))
def test_never_raises_and_never_returns_half_a_date(text: str) -> None:
    date = parse_date(text, now=datetime(2024, 5, 6, tzinfo=UTC))
    assert (date.instant is None) == (date.precision is None)
    assert date.instant is None or date.instant.utcoffset() == timedelta(0)
    assert date.instant is not None or date.problem is not None


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60), st.sampled_from("T "))
def test_reads_every_instant_that_isoformat_writes(naive: datetime, minutes: int, separator: str) -> None:
    written = naive.replace(tzinfo=UTC) + timedelta(minutes=minutes)
    sign, offset = ("-" if minutes < 0 else "+"), abs(minutes)
    zone = f"{sign}{offset // 60:02}:{offset % 60:02}"
    date = parse_date(f"{written.replace(tzinfo=None).isoformat(separator)}{zone}")
    assert (date.instant, date.zone, date.problem) == (naive.replace(tzinfo=UTC), True, None)
