"""What servers say of a feed, on the wire: conditional requests, frozen validators, statuses, what must not be kept."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from monitor.parse_pool import ParsePool
from tests.scenarios.wire import Wire, item, kinds, new, rss, wired
from tests.servers import Request, answer

DAY = 1440.0
SUNDAY, MONDAY = "Sun, 01 Nov 2026 10:00:00 GMT", "Mon, 02 Nov 2026 10:00:00 GMT"


@dataclass
class Script:
    """A feed's server: what it will say next. `honest` answers 304 to its own validators."""

    body: bytes = b""
    status: str = "200 OK"
    fields: list[str] = field(default_factory=list)
    honest: bool = True
    raw: bytes | None = None

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self.raw is not None:
            writer.write(self.raw)
            writer.close()
            return
        mine = {name.lower(): value for name, _, value in (line.partition(": ") for line in self.fields)}
        if "etag" in mine:
            same = request.headers.get("if-none-match") == mine["etag"]
        else:
            same = "last-modified" in mine and request.headers.get("if-modified-since") == mine["last-modified"]
        if self.honest and same and self.status == "200 OK":
            writer.write(answer("304 Not Modified", b"", *self.fields))
        else:
            writer.write(answer(self.status, self.body, *self.fields))


def sent(wire: Wire, name: str, path: str = "/feed.xml") -> list[str | None]:
    """One field of each request."""
    return [headers.get(name) for headers in wire.asked(path)]


# ---------------------------------------------------------------- validators: RFC 9110, 8.8 and 13.1


@pytest.mark.parametrize(
    ("fields", "etag", "date"),
    [
        (['ETag: "abc"'], '"abc"', None),
        (['ETag: W/"abc"'], 'W/"abc"', None),
        (['ETag: "abc-gzip"'], '"abc-gzip"', None),
        (["ETag: unquoted"], "unquoted", None),
        (['ETag: ""'], '""', None),
        ([f"Last-Modified: {SUNDAY}"], None, SUNDAY),
        (["Last-Modified: 2026-11-01"], None, "2026-11-01"),
        (['ETag: "abc"', f"Last-Modified: {SUNDAY}"], '"abc"', SUNDAY),
    ],
)
def test_validators_go_back_byte_for_byte(
    tmp_path: Path, fields: list[str], etag: str | None, date: str | None
) -> None:
    async def run() -> None:
        async with wired(tmp_path, Script(rss([2, 1]), fields=fields)) as wire:
            await wire.once()
            await wire.once()
            assert wire.last.unchanged == 1
            assert sent(wire, "if-none-match") == [None, etag]
            assert sent(wire, "if-modified-since") == [None, date]

    asyncio.run(run())


def test_every_200_and_every_304_renews_both_validators(tmp_path: Path) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "1"', f"Last-Modified: {SUNDAY}"], honest=False)

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.fields = ['ETag: "2"', f"Last-Modified: {SUNDAY}"]
            await wire.once()  # the same body under another ETag (commafeed 1746)
            script.fields = ['ETag: "2"', f"Last-Modified: {MONDAY}"]
            await wire.once()  # the same body and ETag under another date
            script.status, script.body, script.fields = "304 Not Modified", b"", ['ETag: "3"']
            await wire.once()
            await wire.once()
            assert sent(wire, "if-none-match") == [None, '"1"', '"2"', '"2"', '"3"']
            assert sent(wire, "if-modified-since") == [None, SUNDAY, SUNDAY, MONDAY, MONDAY]

    asyncio.run(run())


def test_a_200_without_validators_forgets_them(tmp_path: Path) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "1"'], honest=False)

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.fields = []
            await wire.once()
            await wire.once()
            assert sent(wire, "if-none-match") == [None, '"1"', None]

    asyncio.run(run())


PAGE = b"<!doctype html><html><head><title>Sorry</title></head></html>"
GOOD = rss([3, 2, 1])


@pytest.mark.parametrize(
    "bad",
    [
        answer("200 OK", PAGE, 'ETag: "bad"'),
        answer("200 OK", b"", 'ETag: "bad"'),
        answer("200 OK", GOOD[:-60], 'ETag: "bad"', length=len(GOOD)),
        answer("200 OK", GOOD[:-60], 'ETag: "bad"'),
        answer("200 OK", gzip.compress(GOOD)[:-12], 'ETag: "bad"', "Content-Encoding: gzip"),
        answer("500 Internal Server Error", b"", 'ETag: "bad"'),
        answer("404 Not Found", PAGE, 'ETag: "bad"'),
        answer("206 Partial Content", GOOD[:200], 'ETag: "bad"'),
        answer("204 No Content", b"", 'ETag: "bad"'),
    ],
)
def test_validators_are_kept_after_a_whole_and_readable_answer_only(tmp_path: Path, bad: bytes) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "good"'])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.raw = bad
            events = await wire.once()
            assert "url.missing" not in kinds(events)
            script.raw = None
            await wire.once()
            assert '"bad"' not in sent(wire, "if-none-match")
            assert wire.source().failures == 0
            assert wire.document().etag == '"good"'

    asyncio.run(run())


def test_a_304_that_nobody_asked_for_is_a_failure(tmp_path: Path) -> None:
    async def run() -> None:
        async with wired(tmp_path, Script(status="304 Not Modified")) as wire:
            assert await wire.once() == []
            assert wire.source().last_error == "HTTP 304 to a request that was not conditional"
            assert wire.source().baseline_at is None

    asyncio.run(run())


def test_a_suffix_that_the_server_does_not_know_again_costs_no_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache's ``-gzip``: what it gave it does not recognise; the body says that nothing changed."""
    parsed: list[str] = []
    real = ParsePool.feed

    async def feed(self: ParsePool, data: bytes, url: str, *rest: Any) -> Any:
        parsed.append(url)
        return await real(self, data, url, *rest)

    monkeypatch.setattr(ParsePool, "feed", feed)
    fields = ['ETag: "5f1c-gzip"', "Content-Encoding: gzip"]

    async def run() -> None:
        async with wired(tmp_path, Script(gzip.compress(rss([2, 1])), fields=fields, honest=False)) as wire:
            for _ in range(4):
                await wire.once()
            assert sent(wire, "if-none-match") == [None, *['"5f1c-gzip"'] * 3]
            assert wire.last.unchanged == 1

    asyncio.run(run())
    assert len(parsed) == 1


# ---------------------------------------------------------------- validators that lie


@pytest.mark.parametrize(
    ("fields", "rest"),
    [
        (['ETag: "for ever"'], (None, None)),
        ([f"Last-Modified: {SUNDAY}"], (None, None)),
        (['ETag: "for ever"', f"Last-Modified: {SUNDAY}"], (None, None)),
    ],
)
def test_one_validator_for_ever_is_found_out_by_a_full_read_and_distrusted(
    tmp_path: Path, fields: list[str], rest: tuple[None, None]
) -> None:
    script = Script(rss([2, 1]), fields=fields)

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body = rss([3, 2, 1])
            assert await wire.once() == []  # the 304 hides it
            assert new(await wire.once(minutes=8 * DAY)) == ["3"]
            script.body = rss([4, 3, 2, 1])
            assert new(await wire.once()) == ["4"]
            last = wire.asked("/feed.xml")[-1]
            assert (last.get("if-none-match"), last.get("if-modified-since")) == rest

    asyncio.run(run())


def test_of_two_validators_the_one_that_moved_is_trusted(tmp_path: Path) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "for ever"', f"Last-Modified: {SUNDAY}"])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body, script.fields = rss([3, 2, 1]), ['ETag: "for ever"', f"Last-Modified: {MONDAY}"]
            await wire.once(minutes=8 * DAY)
            script.fields = [f"Last-Modified: {MONDAY}"]
            await wire.once()
            assert wire.last.unchanged == 1
            assert (sent(wire, "if-none-match")[-1], sent(wire, "if-modified-since")[-1]) == (None, MONDAY)

    asyncio.run(run())


def test_a_validator_that_moves_again_is_trusted_again(tmp_path: Path) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "1"'])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body = rss([3, 2, 1])
            await wire.once(minutes=8 * DAY)
            script.body, script.fields = rss([4, 3, 2, 1]), ['ETag: "2"']
            await wire.once()
            await wire.once()
            assert sent(wire, "if-none-match") == [None, None, None, '"2"']

    asyncio.run(run())


def test_a_rebuild_under_one_etag_is_no_reason_to_distrust_it(tmp_path: Path) -> None:
    script = Script(rss([2, 1]), fields=['ETag: W/"1"'])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body = rss([2, 1], "<lastBuildDate>Mon, 02 Nov 2026 10:00:00 GMT</lastBuildDate>")
            await wire.once(minutes=8 * DAY)
            await wire.once()
            assert sent(wire, "if-none-match") == [None, None, 'W/"1"']

    asyncio.run(run())


# ---------------------------------------------------------------- 226: RFC 3229


def test_a_server_may_send_what_is_new_alone(tmp_path: Path) -> None:
    script = Script(rss([4, 3, 2, 1]), fields=['ETag: "1"'])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.status, script.body, script.fields = "226 IM Used", rss([5]), ['ETag: "2"', "IM: feed"]
            assert new(await wire.once()) == ["5"]
            script.body, script.fields = rss([7, 6]), ['ETag: "3"', "IM: feed"]
            assert sorted(new(await wire.once())) == ["6", "7"]
            assert sent(wire, "a-im") == [None, "feed", "feed"]
            assert sent(wire, "if-none-match") == [None, '"1"', '"2"']
            script.status, script.body, script.fields = "200 OK", rss([7, 6, 5, 4]), ['ETag: "4"']
            assert await wire.once() == []
            script.body, script.fields = rss([8, 7, 6, 5]), ['ETag: "5"']
            assert new(await wire.once()) == ["8"]
            assert set(kinds(wire.said)) == {"source.baseline", "url.new"}  # nothing is missing, no gap

    asyncio.run(run())


@pytest.mark.parametrize("fields", [[], ["IM: gzip"], ["IM: feed, gzip"]])
def test_a_part_of_the_document_in_another_way_is_a_failure(tmp_path: Path, fields: list[str]) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "1"'])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.status, script.fields = "226 IM Used", ['ETag: "2"', *fields]
            await wire.once()
            assert wire.source().failures == 1
            assert wire.document().etag == '"1"'

    asyncio.run(run())


# ---------------------------------------------------------------- when to come back: RFC 9111, 5; RFC 9110, 10.2.3


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        (["Cache-Control: max-age=7200"], 7200),
        (["Cache-Control: max-age=7200", "Age: 1200"], 6000),
        (["Date: Mon, 02 Nov 2026 09:00:00 GMT", "Expires: Mon, 02 Nov 2026 11:00:00 GMT"], 7200),
        (["Cache-Control: max-age=7200", "Expires: Mon, 02 Nov 2026 09:00:00 GMT"], 7200),
    ],
)
def test_what_is_fresh_is_not_asked_for(tmp_path: Path, fields: list[str], seconds: int) -> None:
    async def run() -> None:
        script = Script(rss(range(60, 0, -1)).replace(b"28 Oct", b"02 Nov"), fields=fields)
        async with wired(tmp_path, script) as wire:
            await wire.once()
            assert wire.source().next_at >= wire.now + seconds - 1

    asyncio.run(run())


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_holds_even_for_a_pass_over_all(tmp_path: Path, status: str, form: str) -> None:
    script = Script(rss([2, 1]))

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            date = email.utils.formatdate(wire.now + 600 + 7200, usegmt=True)
            served = email.utils.formatdate(wire.now + 600, usegmt=True)
            script.status = status
            script.fields = ["Retry-After: 7200"] if form == "seconds" else [f"Retry-After: {date}", f"Date: {served}"]
            await wire.once()
            script.status, script.fields = "200 OK", []
            await wire.once(minutes=119)
            assert len(wire.asked("/feed.xml")) == 2
            await wire.once(minutes=2)
            assert len(wire.asked("/feed.xml")) == 3
            assert wire.source().failures == 0

    asyncio.run(run())


# ---------------------------------------------------------------- statuses: RFC 9110, 15


@pytest.mark.parametrize(
    ("status", "result", "error", "requests"),
    [
        ("401 Unauthorized", "failed", "HTTP 401 (wants a login)", 1),
        ("403 Forbidden", "failed", "HTTP 403 (refuses us)", 1),
        ("404 Not Found", "failed", "HTTP 404 (not found)", 1),
        ("406 Not Acceptable", "failed", "HTTP 406 (refuses what we accept)", 2),  # once more, for any type at all
        ("410 Gone", "gone", "HTTP 410 (gone for good)", 1),
        ("429 Too Many Requests", "throttled", "HTTP 429 (asks us to slow down)", 1),
        ("451 Unavailable For Legal Reasons", "failed", "HTTP 451 (withheld for legal reasons)", 1),
        ("500 Internal Server Error", "failed", "HTTP 500 (server error)", 1),
        ("502 Bad Gateway", "failed", "HTTP 502 (bad gateway)", 2),  # once more, after a moment
        ("503 Service Unavailable", "throttled", "HTTP 503 (unavailable for now)", 1),
        ("504 Gateway Timeout", "failed", "HTTP 504 (gateway timeout)", 2),
    ],
)
def test_each_status_has_its_treatment_and_none_loses_anything(
    tmp_path: Path, status: str, result: str, error: str, requests: int
) -> None:
    script = Script(rss([2, 1]), fields=['ETag: "1"'])

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.status = status
            first = await wire.once()
            source = wire.source()
            assert (source.last_result, source.last_error) == (result, error)
            assert len(wire.asked("/feed.xml")) == 1 + requests
            assert wire.document().etag == '"1"'
            if result == "gone":
                assert kinds(first) == ["source.gone"]
                assert source.next_at == wire.now + 7 * 86400
                await wire.once()
                assert len(wire.asked("/feed.xml")) == 2  # not even for --all
                return
            assert first == []  # a hiccup is no news
            assert [kinds(await wire.once()) for _ in range(3)] == [[], ["source.failing"], []]
            script.status, script.body, script.fields = "200 OK", rss([3, 2, 1]), ['ETag: "2"']
            assert sorted(kinds(await wire.once())) == ["source.recovered", "url.new"]

    asyncio.run(run())


def test_a_feed_that_is_gone_and_back_is_found_within_a_week(tmp_path: Path) -> None:
    script = Script(rss([2, 1]))

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.status = "410 Gone"
            await wire.once()
            script.status, script.body = "200 OK", rss([3, 2, 1])
            events = await wire.once(minutes=7 * DAY + 1, everything=False)
            assert sorted(kinds(events)) == ["source.recovered", "url.new"]

    asyncio.run(run())


def test_a_server_that_takes_no_list_of_types_is_asked_for_any_from_then_on(tmp_path: Path) -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        fits = request.headers["accept"] == "*/*"
        writer.write(answer("200 OK", rss([2, 1])) if fits else answer("406 Not Acceptable"))

    async def run() -> None:
        async with wired(tmp_path, handler) as wire:
            for _ in range(3):
                await wire.once()
            accepts = sent(wire, "accept")
            assert [accept == "*/*" for accept in accepts] == [False, True, True, True]
            assert wire.source().failures == 0

    asyncio.run(run())


# ---------------------------------------------------------------- manners, and what else peers were caught at


def test_requests_carry_nothing_but_what_they_need(tmp_path: Path) -> None:
    async def run() -> None:
        script = Script(rss([2, 1]), fields=['ETag: "1"', "Set-Cookie: a=b"])
        async with wired(tmp_path, script) as wire:
            await wire.once()
            await wire.once()
            names = [set(headers) for headers in wire.asked("/feed.xml")]
            assert names[0] == {"host", "user-agent", "accept", "accept-encoding"}
            assert names[1] - names[0] == {"if-none-match", "a-im"}
            assert {request.target for request in wire.server.requests} == {"/feed.xml"}

    asyncio.run(run())


def test_a_feed_that_the_user_named_is_read_whatever_robots_txt_says(tmp_path: Path) -> None:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        robots = request.target == "/robots.txt"
        writer.write(answer("200 OK", b"User-agent: *\nDisallow: /" if robots else rss([2, 1])))

    async def run() -> None:
        async with wired(tmp_path, handler) as wire:
            assert kinds(await wire.once()) == ["source.baseline"]

    asyncio.run(run())


def test_a_restart_asks_for_nothing_that_is_not_due(tmp_path: Path) -> None:
    async def run() -> None:
        async with wired(tmp_path, Script(rss([2, 1]))) as wire:
            await wire.once()
            for _ in range(3):
                await wire.once(minutes=0.1, everything=False)  # each a process of its own
            assert len(wire.asked("/feed.xml")) == 1

    asyncio.run(run())


def test_html_where_a_feed_was_names_the_feed_that_it_offers(tmp_path: Path) -> None:
    page = (
        b'<!doctype html><html><head><title>News</title><link rel="alternate" type="application/atom+xml"'
        b' href="atom.xml"></head><body>Hello</body></html>'
    )

    async def run() -> None:
        async with wired(tmp_path, Script(page)) as wire:
            await wire.once()
            offered = wire.server.url("/atom.xml")
            assert wire.source().last_error == (
                f'The body is an HTML page titled "News", not a feed; it names a feed at {offered}.'
            )
            assert wire.last.problems == [f"{wire.server.url('/feed.xml')}: {wire.source().last_error}"]

    asyncio.run(run())


def test_all_guids_anew_are_no_flood(tmp_path: Path) -> None:
    script = Script(rss([4, 3, 2, 1]))

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body = rss([5, 4, 3, 2, 1]).replace(b">g", b">https://h.example/?p=")
            assert new(await wire.once()) == ["5"]
            script.body = script.body.replace(b"https://h.example", b"http://www.h.example")
            assert await wire.once() == []

    asyncio.run(run())


def test_an_edit_of_an_entry_that_is_known_is_told_though_only_it_is_read(tmp_path: Path) -> None:
    script = Script(rss([4, 3, 2, 1]))

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body = script.body.replace(item(2).encode(), item(2, title="Another headline").encode())
            events = await wire.once()
            assert [(e["type"], e["data"]["changed"]) for e in events] == [("url.changed", ["title"])]
            script.body = script.body.replace(item(3).encode(), b"")
            assert "url.missing" not in kinds(await wire.once())

    asyncio.run(run())


def test_a_new_entry_that_shares_a_known_ones_link_makes_the_whole_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bytes | None] = []
    real = ParsePool.feed

    async def feed(self: ParsePool, data: bytes, url: str, kind: str | None, marks: bytes | None, salt: str) -> Any:
        given.append(marks)
        return await real(self, data, url, kind, marks, salt)

    monkeypatch.setattr(ParsePool, "feed", feed)
    script = Script(rss([3, 2, 1]))

    async def run() -> None:
        async with wired(tmp_path, script) as wire:
            await wire.once()
            script.body = rss([4, 3, 2, 1]).replace(b"/news/4", b"/news/3")
            assert len(new(await wire.once())) == 1

    asyncio.run(run())
    assert [marks is not None for marks in given] == [False, True, False]
