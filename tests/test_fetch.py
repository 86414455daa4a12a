"""Fetching from servers that behave, lie, stall and attack; all of them on loopback."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from monitor import fetch as fetch_module
from monitor.core.http import Validators, permanent_target, verdict
from monitor.fetch import Fetcher, FetchPolicy
from tests.servers import Handler, Request, Server, answer, routes, says, serving

T = TypeVar("T")
POLICY = FetchPolicy("test/1 (+https://example.org)", allow_private_networks=True, total_timeout=5.0)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@asynccontextmanager
async def site(handler: Handler, **policy: Any) -> AsyncIterator[tuple[Server, Fetcher]]:
    from dataclasses import replace

    async with serving(handler) as server, Fetcher(replace(POLICY, **policy)) as fetcher:
        yield server, fetcher


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "RETRY_WAIT", (0.0, 0.01))


def test_a_request_is_honest_and_bare() -> None:
    async def go() -> Request:
        async with site(says(answer("200 OK", b"x", "Set-Cookie: a=b; Path=/"))) as (server, fetcher):
            await fetcher.get(server.url("/f"), accept="application/rss+xml")
            await fetcher.get(server.url("/f"), accept="application/rss+xml")
            return server.requests[1]

    request = run(go())
    assert request.headers["user-agent"] == POLICY.user_agent
    assert request.headers["accept"] == "application/rss+xml"
    assert request.headers["accept-encoding"] == "gzip"
    assert not {"cookie", "referer", "from", "if-none-match"} & set(request.headers)


@pytest.mark.parametrize("path", ["/%7Euser/a%2Fb", "/a?x", "/a//b?x=%41&y", "/a;b=c?d=%20e", "/A/%c3%a9"])
def test_addresses_go_out_as_published(path: str) -> None:
    async def go() -> str:
        async with site(says(answer())) as (server, fetcher):
            await fetcher.get(server.url(path))
            return server.requests[0].target

    assert run(go()) == path


def test_validators_go_back_verbatim_and_only_where_they_belong() -> None:
    async def go() -> list[Request]:
        handler = routes(a=answer("302 Found", b"", "Location: /b"), b=answer("304 Not Modified"))
        async with site(handler) as (server, fetcher):
            mine = Validators(server.url("/b"), 'W/"odd, etag"', "Mon, 02 Nov 2026 12:00:00 GMT")
            reply = await fetcher.get(server.url("/a"), validators=mine)
            assert (reply.status, reply.sent, verdict(reply)) == (304, mine, "unchanged")
            other = await fetcher.get(server.url("/b"), validators=Validators(server.url("/c"), '"c"'))
            assert (other.sent, verdict(other)) == (None, "failed")
            return server.requests

    first, second, third = run(go())
    assert "if-none-match" not in first.headers
    assert second.headers["if-none-match"] == 'W/"odd, etag"'
    assert second.headers["if-modified-since"] == "Mon, 02 Nov 2026 12:00:00 GMT"
    assert "if-none-match" not in third.headers


BODY = b"<rss>" + b"news " * 2000 + b"</rss>"


@pytest.mark.parametrize(
    ("payload", "coding", "body", "complete"),
    [
        (gzip.compress(BODY), "gzip", BODY, True),
        (gzip.compress(BODY[:5000]) + gzip.compress(BODY[5000:]), "gzip", BODY, True),
        (zlib.compress(BODY), "deflate", BODY, True),
        (zlib.compress(BODY)[2:-4], "deflate", BODY, True),
        (BODY, "gzip", BODY, True),  # labelled wrongly
        (gzip.compress(BODY)[:-4], "gzip", BODY, False),
        (gzip.compress(BODY)[:-9], "gzip", None, False),
        (b"", "gzip", b"", True),
    ],
    ids=["gzip", "members", "zlib", "deflate", "labelled wrongly", "no length", "cut", "empty"],
)
def test_content_codings(payload: bytes, coding: str, body: bytes | None, complete: bool) -> None:
    async def go() -> None:
        async with site(says(answer("200 OK", payload, f"Content-Encoding: {coding}"))) as (server, fetcher):
            reply = await fetcher.get(server.url())
            assert (reply.status, reply.failure, reply.complete) == (200, None, complete)
            assert body is None or reply.body == body
            assert reply.wire_bytes == len(payload)

    run(go())


def test_a_coding_that_was_not_asked_for_is_a_failure() -> None:
    async def go() -> None:
        async with site(says(answer("200 OK", b"\x0b\x02", "Content-Encoding: br"))) as (server, fetcher):
            reply = await fetcher.get(server.url())
            assert reply.failure is not None
            assert (reply.failure.kind, verdict(reply)) == ("protocol", "failed")

    run(go())


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"x" * 200_000, ()), (gzip.compress(b"\0" * 3_000_000), ("Content-Encoding: gzip",))],
)
def test_bodies_are_bounded_on_the_wire_and_decoded(body: bytes, headers: tuple[str, ...]) -> None:
    async def go() -> None:
        async with site(says(answer("200 OK", body, *headers))) as (server, fetcher):
            reply = await fetcher.get(server.url(), max_bytes=100_000)
            assert reply.failure is not None
            assert (reply.failure.kind, reply.body) == ("too_large", b"")
            assert len((await fetcher.get(server.url(), max_bytes=4_000_000)).body) >= 200_000

    run(go())


@pytest.mark.parametrize(
    "parts",
    [
        (answer("200 OK", BODY[:100], length=len(BODY)),),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + BODY[:100] + b"\r\n",),
    ],
)
def test_a_body_that_is_cut_is_told_from_a_whole_one(parts: tuple[bytes, ...]) -> None:
    async def go() -> None:
        async with site(says(*parts, close=True)) as (server, fetcher):
            reply = await fetcher.get(server.url())
            assert (reply.status, reply.failure, reply.complete) == (200, None, False)
            assert BODY.startswith(reply.body)
            assert reply.body

    run(go())


def test_a_slow_drip_ends_at_the_deadline_and_a_hanging_host_delays_no_other() -> None:
    async def drip(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("200 OK", b"", length=10_000))
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def go() -> None:
        async with site(drip, total_timeout=0.4, total=3) as (slow, fetcher), serving(says(answer())) as quick:
            hanging = [asyncio.create_task(fetcher.get(slow.url(f"/{n}"))) for n in range(8)]
            while slow.active < 2:
                await asyncio.sleep(0)
            assert (await fetcher.get(quick.url())).status == 200
            assert not any(task.done() for task in hanging)
            assert slow.most_active == 2  # per host
            replies = await asyncio.gather(*hanging)
            assert {r.failure.kind for r in replies if r.failure} == {"timeout"}
            assert len(slow.requests) == 8  # the wait for a turn did not eat the time of those behind

    run(go())


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (says(b"", close=True), "reset"),
        (says(b"\x16\x03\x01 this is not HTTP\r\n\r\n", close=True), "protocol"),
        (says(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n", close=True), "protocol"),
        (says(answer("302 Found", b"", "Location: file:///etc/passwd")), "protocol"),
        (says(answer("302 Found", b"", "Location: ?again")), "redirects"),
    ],
)
def test_what_servers_do_is_a_value(handler: Handler, kind: str) -> None:
    async def go() -> None:
        async with site(handler) as (server, fetcher):
            reply = await fetcher.get(server.url())
            assert reply.failure is not None
            assert (reply.status, reply.failure.kind, verdict(reply)) == (None, kind, "failed")
            assert len(reply.failure.message) < 300

    run(go())


def test_endless_headers_end_at_a_bound() -> None:
    async def flood(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(200_000):
            writer.write(b"X-%d: y\r\n" % number)
            await writer.drain()

    async def go() -> None:
        async with site(flood) as (server, fetcher):
            reply = await fetcher.get(server.url(), retry=False)
            assert reply.failure is not None
            assert reply.failure.kind in ("protocol", "timeout", "reset")

    run(go())


def test_redirects_are_followed_within_bounds() -> None:
    async def chain(request: Request, writer: asyncio.StreamWriter) -> None:
        number = int(request.target.strip("/"))
        writer.write(answer("301 Moved", b"", f"Location: /{number - 1}") if number else answer("200 OK", b"end"))

    async def go() -> None:
        async with site(chain) as (server, fetcher):
            reply = await fetcher.get(server.url("/3"))
            assert (reply.body, reply.url, reply.final_url) == (b"end", server.url("/3"), server.url("/0"))
            assert permanent_target(reply) == server.url("/0")
            far = await fetcher.get(server.url("/30"))
            assert far.failure is not None
            assert far.failure.kind == "redirects"

    run(go())


def test_dns_and_refusal_are_told_apart() -> None:
    async def go() -> None:
        async with site(says(answer())) as (server, fetcher):
            gone = await fetcher.get("http://no-such-host.invalid/")
            assert gone.failure is not None
            assert gone.failure.kind == "dns"
            port = server.port
        async with Fetcher(POLICY) as fetcher:
            refused = await fetcher.get(f"http://127.0.0.1:{port}/")
            assert refused.failure is not None
            assert refused.failure.kind == "refused"
        async with site(says(answer()), total_timeout=0.5) as (server, fetcher):
            tls = await fetcher.get(f"https://127.0.0.1:{server.port}/")
            assert tls.failure is not None
            assert tls.failure.kind in ("tls", "reset", "protocol", "timeout")

    run(go())


@pytest.mark.parametrize("url", ["nonsense", "ftp://example.com/", "http://", "http://[::1", "javascript:alert(1)", ""])
def test_what_is_no_address_is_a_value_too(url: str) -> None:
    async def go() -> None:
        async with Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(url)
            assert reply.failure is not None
            assert reply.failure.kind == "protocol"

    run(go())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_private_addresses_are_out_of_reach(host: str) -> None:
    async def go() -> None:
        async with site(says(answer()), allow_private_networks=False) as (server, fetcher):
            reply = await fetcher.get(server.url(host=host))
            assert server.requests == []
            assert reply.failure is not None
            assert reply.failure.kind == "blocked"
            assert "allow_private_networks" in reply.failure.message
            posted = await fetcher.post(server.url(host=host), content=b"x", headers={})
            assert posted.failure is not None
            assert server.requests == []

    run(go())


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0x7f000001", "0177.0.0.1"])
def test_odd_spellings_of_private_addresses_reach_nothing(host: str) -> None:
    async def go() -> None:
        async with site(says(answer()), allow_private_networks=False) as (server, fetcher):
            assert (await fetcher.get(server.url(host=host), retry=False)).failure is not None
            assert server.requests == []

    run(go())


def test_a_policy_of_the_site_goes_before_the_fetchers() -> None:
    from dataclasses import replace

    async def go() -> None:
        async with site(says(answer()), allow_private_networks=False) as (server, fetcher):
            mine = replace(POLICY, user_agent="mine/2")
            assert (await fetcher.get(server.url(), policy=mine)).status == 200
            assert server.requests[0].headers["user-agent"] == "mine/2"

    run(go())


@pytest.mark.parametrize(
    ("handler", "count"),
    [
        (says(b"", close=True), 2),
        (says(answer("502 Bad Gateway")), 2),
        (says(answer("504 Gateway Timeout")), 2),
        (says(answer("500 Internal Server Error")), 1),
        (says(answer("503 Service Unavailable")), 1),
        (says(answer("404 Not Found")), 1),
        (says(answer("429 Too Many Requests")), 1),
    ],
)
def test_only_what_may_succeed_is_tried_again_and_once(handler: Handler, count: int) -> None:
    async def go() -> int:
        async with site(handler) as (server, fetcher):
            await fetcher.get(server.url())
            return len(server.requests)

    assert run(go()) == count


def test_limits_hold_per_host_and_over_all() -> None:
    active = most = 0

    async def slowly(_request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.02)
        active -= 1
        writer.write(answer())

    async def go() -> None:
        async with site(slowly, per_host=3, total=4) as (one, fetcher), serving(slowly) as two:
            urls = [server.url(f"/{n}") for n in range(12) for server in (one, two)]
            replies = await asyncio.gather(*(fetcher.get(url) for url in urls))
            assert {r.status for r in replies} == {200}
            assert max(one.most_active, two.most_active) <= 3
            assert most == 4

    run(go())


def test_a_wait_that_is_cancelled_takes_no_turn_from_others() -> None:
    async def slowly(_request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(answer())

    async def go() -> None:
        async with site(slowly, per_host=1) as (server, fetcher):
            tasks = [asyncio.create_task(fetcher.get(server.url(f"/{n}"))) for n in range(6)]
            await asyncio.sleep(0.01)
            for task in (tasks[0], tasks[2], tasks[3]):
                task.cancel()
            replies = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(r, asyncio.CancelledError) for r in replies] == [True, False, True, True, False, False]
            assert (await fetcher.get(server.url("/after"))).status == 200

    run(go())


def test_a_post_is_sent_once_and_follows_nothing() -> None:
    async def go() -> None:
        async with site(says(answer("307 Temporary Redirect", b"", "Location: /elsewhere"))) as (server, fetcher):
            reply = await fetcher.post(server.url("/hook"), content=b"{}", headers={"content-type": "x/y"})
            assert (reply.status, len(server.requests)) == (307, 1)
            request = server.requests[0]
            assert (request.method, request.body, request.headers["content-type"]) == ("POST", b"{}", "x/y")

    run(go())


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    async def go() -> int | None:
        async with site(says(answer())) as (server, fetcher):
            return (await fetcher.get(server.url())).status

    assert run(go()) == 200


def test_a_configured_proxy_is_used_and_guards_literal_addresses() -> None:
    async def go() -> None:
        async with serving(says(answer("200 OK", b"by proxy"))) as proxy:
            policy = FetchPolicy("t", proxy=proxy.url(), total_timeout=5.0)
            async with Fetcher(policy) as fetcher:
                assert (await fetcher.get("http://news.example/feed")).body == b"by proxy"
                assert proxy.requests[0].target == "http://news.example/feed"
                inside = await fetcher.get("http://10.0.0.1/")
                assert inside.failure is not None
                assert inside.failure.kind == "blocked"
                assert len(proxy.requests) == 1

    run(go())
