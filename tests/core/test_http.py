"""HTTP's rules, each under its section."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.http import (
    Failure,
    Redirect,
    Reply,
    Validators,
    conditional_headers,
    describe,
    freshness,
    permanent_target,
    renew,
    verdict,
)

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
URL = "https://www.example.com/feed.xml"


def reply(status: int | None = 200, **headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(URL, URL, status, names, complete=True)


@pytest.mark.parametrize("etag", ['"a"', 'W/"a"', "unquoted", '"a-gzip"', '""', '"ä,b"'])
def test_validators_go_back_byte_for_byte(etag: str) -> None:
    """RFC 9110, 13.1.2 and 13.1.3."""
    kept = renew(None, reply(etag=etag, last_modified="Mon, 2 Nov 2026 11:00:00 GMT"))
    assert conditional_headers(kept, URL) == {
        "If-None-Match": etag,
        "If-Modified-Since": "Mon, 2 Nov 2026 11:00:00 GMT",
    }


def test_validators_belong_to_the_url_that_gave_them() -> None:
    assert conditional_headers(Validators(URL, '"a"'), URL + "?x") == {}
    moved = Reply(URL, "https://other.example/feed", 200, {"etag": '"b"'}, complete=True)
    assert renew(None, moved) == Validators("https://other.example/feed", '"b"', None)


def test_every_200_and_304_renews_both() -> None:
    """RFC 9111, 4.3.4; commafeed 1746."""
    before = Validators(URL, '"a"', "Mon")
    assert renew(before, reply(200, etag='"b"')) == Validators(URL, '"b"', None)
    assert renew(before, reply(200)) is None
    assert renew(before, reply(304, etag='"c"')) == Validators(URL, '"c"', "Mon")
    assert renew(before, reply(304, last_modified="Tue")) == Validators(URL, '"a"', "Tue")
    assert renew(before, reply(304)) == before


@pytest.mark.parametrize("status", [404, 429, 500, 503, None])
def test_an_answer_without_the_document_leaves_the_validators_as_they_were(status: int | None) -> None:
    before = Validators(URL, '"a"', "Mon")
    assert renew(before, reply(status, etag='"of the error page"')) == before


def test_a_cut_body_leaves_the_validators_as_they_were() -> None:
    """Else the next 304 would freeze what was read of it."""
    cut = Reply(URL, URL, 200, {"etag": '"b"'}, b"half", complete=False)
    assert renew(Validators(URL, '"a"'), cut) == Validators(URL, '"a"')
    assert renew(None, cut) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, "modified"), (226, "failed"), (204, "failed"), (301, "failed"), (401, "refused"), (403, "refused"),
        (404, "missing"), (406, "refused"), (410, "gone"), (429, "throttled"), (451, "refused"), (500, "failed"),
        (503, "throttled"), (None, "failed"),
    ],
)  # fmt: skip
def test_verdicts(status: int | None, expected: str) -> None:
    assert verdict(reply(status)) == expected


def test_a_304_that_nobody_asked_for_is_a_failure() -> None:
    assert verdict(reply(304)) == "failed"
    asked = Reply(URL, URL, 304, {}, sent=Validators(URL, '"a"'))
    assert verdict(asked) == "unchanged"
    assert "not conditional" in describe(reply(304))


@pytest.mark.parametrize(
    ("headers", "max_age"),
    [
        ({}, None),
        ({"cache_control": "max-age=300"}, 300.0),
        ({"cache_control": 'public, MAX-AGE="60"'}, 60.0),
        ({"cache_control": "max-age=300, no-cache"}, None),
        ({"cache_control": "no-store"}, None),
        ({"cache_control": 'no-cache="set-cookie", max-age=60'}, 60.0),
        ({"cache_control": "max-age=300", "age": "²"}, 300.0),
        ({"cache_control": "max-age=٣"}, None),
        ({"cache_control": "max-age=300", "age": "100"}, 200.0),
        ({"cache_control": "max-age=300", "age": "900"}, 0.0),
        ({"cache_control": "max-age=99999999999"}, 7 * 86400.0),
        ({"cache_control": "max-age=-5"}, None),
        ({"expires": "Mon, 02 Nov 2026 13:00:00 GMT", "date": "Mon, 02 Nov 2026 12:30:00 GMT"}, 1800.0),
        ({"expires": "0"}, None),
        ({"expires": "Mon, 02 Nov 2026 13:00:00 GMT"}, 3600.0),
        ({"expires": "Mon, 02 Nov 2026 13:00:00 GMT", "date": "garbage"}, 3600.0),
        ({"expires": "Fri, 31 Dec 9999 23:59:59 -2300"}, None),
        (
            {
                "expires": "Mon, 02 Nov 2026 13:00:00 GMT",
                "date": "Mon, 02 Nov 2026 12:30:00 GMT",
                "cache_control": "max-age=5",
            },
            5.0,
        ),
    ],
)  # fmt: skip
def test_freshness(headers: dict[str, str], max_age: float | None) -> None:
    """RFC 9111, 4.2.1 and 5.3."""
    assert freshness(reply(200, **headers), NOW).max_age == max_age


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("9999999999", 86400.0),
        ("Mon, 02 Nov 2026 12:10:00 GMT", 600.0),
        ("Mon, 02 Nov 2026 11:00:00 GMT", 0.0),
        ("Fri, 31 Dec 2099 00:00:00 GMT", 86400.0),
        ("soon", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86400.0),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        (" 60 ", 60.0),
        ("9" * 5000, 86400.0),
        ("²", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_in_both_forms(text: str, seconds: float | None) -> None:
    """RFC 9110, 10.2.3, believed up to a day."""
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert freshness(reply(503, retry_after=text), NOW).retry_at == expected


def test_retry_after_by_a_wrong_clock_counts_from_the_servers_own_date() -> None:
    late = reply(429, retry_after="Mon, 02 Nov 2026 15:10:00 GMT", date="Mon, 02 Nov 2026 15:00:00 GMT")
    assert freshness(late, NOW).retry_at == NOW + timedelta(minutes=10)
    never = reply(429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT", date="Mon, 01 Jan 1990 00:00:00 GMT")
    assert freshness(never, NOW).retry_at == NOW + timedelta(days=1)


def test_where_permanent_redirects_lead() -> None:
    """RFC 9110, 15.4.2 and 15.4.9: one temporary step in a chain makes it temporary."""

    def chain(*statuses: int, status: int = 200) -> Reply:
        steps = tuple(Redirect(s, f"https://new.example/{n}") for n, s in enumerate(statuses))
        return Reply(URL, steps[-1].url if steps else URL, status, redirects=steps)

    assert permanent_target(chain()) is None
    assert permanent_target(chain(301, 308)) == "https://new.example/1"
    assert permanent_target(chain(301, 302)) is None
    assert permanent_target(chain(301, status=404)) is None


def test_describe_is_one_sentence() -> None:
    assert describe(reply(503)) == "HTTP 503 (unavailable for now)"
    assert describe(reply(418)) == "HTTP 418"
    assert describe(Reply(URL, failure=Failure("dns", "there is no host x"))) == "there is no host x"


DATES = st.builds(
    "{}, {:02} {} {:04} {:02}:{:02}:{:02} {}".format,
    st.sampled_from(["Mon", "Sun", "x"]),
    st.integers(0, 32),
    st.sampled_from(["Jan", "Dec", "Foo"]),
    st.integers(0, 9999),
    st.integers(0, 24),
    st.integers(0, 60),
    st.integers(0, 61),
    st.sampled_from(["GMT", "+0000", "-2359", "+2359", "-9999", "", "EST"]),
)
VALUES = st.one_of(st.text(max_size=40), DATES, st.sampled_from(["²", "٣", "1e9", "max-age=²", "9" * 400]))


@given(
    st.dictionaries(st.sampled_from(["cache-control", "expires", "date", "age", "retry-after", "etag"]), VALUES),
    st.integers(100, 599),
)
def test_any_header_is_survived_and_bounded(headers: dict[str, str], status: int) -> None:
    fresh = freshness(Reply(URL, URL, status, headers), NOW)
    assert fresh.max_age is None or 0 <= fresh.max_age <= 7 * 86400
    assert fresh.retry_at is None or NOW <= fresh.retry_at <= NOW + timedelta(days=1)
