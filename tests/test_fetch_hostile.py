"""What servers do that nobody should: whatever it is, `get` and `post` return."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import fetch as fetch_module
from monitor import guard
from monitor.core.http import Validators, renew, verdict
from monitor.fetch import Fetcher, FetchPolicy
from tests.servers import Request, Server, answer, routes, says, serving

POLICY = FetchPolicy("test/1", allow_private_networks=True, total_timeout=5.0)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "RETRY_WAIT", (0.0, 0.01))


def redirect(location: bytes, status: str = "302 Found") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nLocation: ".encode() + location + b"\r\n\r\n"


@pytest.mark.parametrize(
    "location",
    [
        b"http://[",
        b"//[::1",
        b"http://a\xe2\x84\x80b/",
        b"http://a:99999999/",
        b"http://a:b/",
        b"http://..../",
        b"//%00/",
    ],
)
def test_a_redirect_to_nowhere_is_a_value(location: bytes) -> None:
    async def go() -> None:
        async with serving(says(redirect(location))) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url())
            assert reply.failure is not None
            assert (reply.status, reply.failure.kind) in ((None, "protocol"), (None, "dns"))

    asyncio.run(go())


@pytest.mark.parametrize(
    "url",
    ["http://x/\ud800", "http://\ud800/", "http://xn--/", "http://a..b/", "http://a\u2100b/", "http://a:65536/",
     "http://a\nb/", "http://" + "a" * 300 + ".invalid/", "http://127.0.0.1/" + "a" * 70_000],
)  # fmt: skip
def test_an_address_that_is_none_is_a_value_with_a_short_message(url: str) -> None:
    async def go() -> None:
        async with Fetcher(POLICY) as fetcher:
            for reply in (await fetcher.get(url), await fetcher.post(url, content=b"", headers={})):
                assert reply.failure is not None
                assert reply.failure.kind == "protocol"
                assert len(reply.failure.message) < 400
                assert reply.failure.message.isprintable()

    asyncio.run(go())


STARTS = [b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"]
LINES = [
    b"Content-Length: 5", b"Content-Length: -1", b"Transfer-Encoding: chunked", b"", b"", b"Location: \xff", b":",
    b"a: b", b"zz", b"5", b"hello", b"0", b"\x00", b"\x1f\x8b",
]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(STARTS),
    st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(LINES)).map(b"\r\n".join)),
)
def test_any_bytes_at_all_are_a_value(start: bytes, rest: bytes) -> None:
    async def go() -> None:
        policy = replace(POLICY, total_timeout=0.2)
        async with serving(says(start + rest, close=True)) as server, Fetcher(policy) as fetcher:
            reply = await fetcher.get(server.url(), retry=False)
            assert reply.failure is not None or reply.status is not None

    asyncio.run(go())


@pytest.mark.parametrize(
    "tag",
    [b'"a"', b'W/"a"', b"unquoted", b'"a,b"', b'""', b'"a" "b"', b'"tab\tx"', b'"caf\xc3\xa9"', b'"-gzip"', b'"a'],
)
def test_etags_go_back_byte_for_byte(tag: bytes) -> None:
    async def go() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: " + tag + b"\r\n\r\n"
        async with serving(says(head)) as server, Fetcher(POLICY) as fetcher:
            kept = renew(None, await fetcher.get(server.url()))
            reply = await fetcher.get(server.url(), validators=kept)
            assert (reply.status, reply.sent) == (200, kept)
            assert server.requests[1].headers["if-none-match"].encode("latin-1") == tag

    asyncio.run(go())


def test_an_etag_in_no_encoding_does_no_harm() -> None:
    async def go() -> None:
        head = b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: "\xe4"\r\n\r\n'
        async with serving(says(head)) as server, Fetcher(POLICY) as fetcher:
            kept = renew(None, await fetcher.get(server.url()))
            assert (await fetcher.get(server.url(), validators=kept)).status == 200

    asyncio.run(go())


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone", "503 Slow Down", "301 Moved"])
@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n\x0b\x02",
        b"Content-Length: 9000000\r\n\r\n" + b"x" * 200_000,
        b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        b"Content-Length: 50\r\n\r\ncut",
        b"Content-Length: 50\r\n\r\n",
    ],
)
def test_where_the_status_says_it_all_a_bad_body_spoils_nothing(status: str, rest: bytes) -> None:
    async def go() -> None:
        handler = says(b"HTTP/1.1 " + status.encode() + b"\r\n" + rest, close=True)
        async with serving(handler) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url())
            assert (reply.status, reply.failure) == (int(status[:3]), None)
            expected = {"404": "missing", "410": "gone", "503": "throttled", "301": "failed"}
            assert verdict(reply) == expected[status[:3]]
            assert len(server.requests) == 1

    asyncio.run(go())


@pytest.mark.parametrize("header", ["Content-Encoding: br", "Content-Encoding: gzip", "Content-Length: 9000000000"])
def test_a_304_may_tell_of_the_body_that_it_leaves_out(header: str) -> None:
    """RFC 9110, 8.6 and 15.4.5."""

    async def go() -> None:
        head = f"HTTP/1.1 304 Not Modified\r\n{header}\r\n\r\n".encode()
        async with serving(says(head)) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url(), validators=Validators(server.url(), '"a"'))
            assert (verdict(reply), reply.failure, reply.complete) == ("unchanged", None, True)

    asyncio.run(go())


async def _stall(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(answer("200 OK", b"", length=1000))
    await writer.drain()
    await asyncio.Event().wait()


def test_a_webhook_that_was_taken_is_not_failed_by_its_answers_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the event would be sent again, and again."""
    monkeypatch.setattr(fetch_module, "GLANCE_SECONDS", 0.05)

    async def go() -> None:
        handler = routes(
            stall=_stall, large=answer("200 OK", b"x" * 9_000_000), br=answer("200 OK", b"x", "Content-Encoding: br")
        )
        async with serving(handler) as server, Fetcher(POLICY) as fetcher:
            for path in ("stall", "large", "br"):
                reply = await fetcher.post(server.url(f"/{path}"), content=b"{}", headers={})
                assert (reply.status, reply.failure) == (200, None)

    asyncio.run(go())


@pytest.mark.parametrize("coding", ["utf-8", "none", "identity", "gzip, gzip", "IDENTITY, GZIP"])
def test_a_coding_that_is_none_is_no_reason_to_read_nothing(coding: str) -> None:
    async def go() -> None:
        said = says(answer("200 OK", b"plain", f"Content-Encoding: {coding}"))
        async with serving(said) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url())
            assert (reply.body, reply.complete, reply.failure) == (b"plain", True, None)

    asyncio.run(go())


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    async def go() -> None:
        async with serving(_stall) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url(), max_bytes=999)
            assert reply.failure is not None
            assert (reply.failure.kind, reply.wire_bytes) == ("too_large", 0)

    asyncio.run(go())


def test_a_chain_has_one_deadline() -> None:
    """Ten redirects, each just in time, would hold a place for ten times as long."""

    async def tardy(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(answer("302 Found", b"", f"Location: /{len(request.target)}{request.target[1:]}"))

    async def go() -> None:
        async with serving(tardy) as server, Fetcher(replace(POLICY, total_timeout=0.4)) as fetcher:
            reply = await fetcher.get(server.url())
            assert reply.failure is not None
            assert reply.failure.kind == "timeout"
            assert 1 <= len(reply.redirects) <= 2

    asyncio.run(go())


@pytest.mark.parametrize("part", [b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_endless_promises_end_at_the_deadline(part: bytes) -> None:
    async def flood(_request: Request, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)

    async def go() -> None:
        async with serving(flood) as server, Fetcher(replace(POLICY, total_timeout=0.3)) as fetcher:
            reply = await fetcher.get(server.url())
            assert reply.failure is not None
            assert reply.failure.kind == "timeout"

    asyncio.run(go())


@pytest.mark.parametrize("size", [30_000, 100_000])
def test_long_header_fields_are_read_up_to_a_bound(size: int) -> None:
    async def go() -> None:
        async with serving(says(answer("200 OK", b"x", "X-Long: " + "y" * size))) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url())
            if size < 65_536:
                assert (reply.body, len(reply.headers["x-long"])) == (b"x", size)
            else:
                assert reply.failure is not None
                assert reply.failure.kind == "protocol"

    asyncio.run(go())


@pytest.mark.parametrize(("sent", "kind"), [(b"", "reset"), (answer("200 OK", b"begun", length=99), None)])
def test_a_reset_before_the_answer_fails_and_within_it_cuts(sent: bytes, kind: str | None) -> None:
    async def reset(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()
        await asyncio.sleep(0.05)  # for the client to read what came before
        raw: Any = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def go() -> None:
        async with serving(reset) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url())
            if kind is None:
                assert (reply.status, reply.body, reply.complete, reply.failure) == (200, b"begun", False, None)
            else:
                assert reply.failure is not None
                assert (reply.status, reply.failure.kind) == (None, kind)

    asyncio.run(go())


def test_a_redirect_from_outside_reaches_nothing_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 plays the outside: the guard's socket factory judges each hop by itself."""
    monkeypatch.setattr(guard, "allowed", lambda address: address == "127.0.0.1")

    async def go() -> None:
        async with serving(says(answer("200 OK", b"secret")), "127.0.0.2") as inside:
            to = inside.url(host="127.0.0.2").encode()
            policy = replace(POLICY, allow_private_networks=False)
            async with serving(says(redirect(to))) as outside, Fetcher(policy) as fetcher:
                reply = await fetcher.get(outside.url())
                assert (len(outside.requests), inside.requests) == (1, [])
                assert reply.failure is not None
                assert (reply.failure.kind, reply.status, reply.body) == ("blocked", None, b"")
                assert [step.url.encode() for step in reply.redirects] == [to]

    asyncio.run(go())


def test_validators_do_not_follow_to_another_host() -> None:
    async def go() -> None:
        async with serving(says(answer("200 OK", b"x", 'ETag: "theirs"')), "127.0.0.2") as other:
            there = other.url(host="127.0.0.2")
            async with serving(says(redirect(there.encode()))) as first, Fetcher(POLICY) as fetcher:
                mine = Validators(first.url(), '"mine"', "Mon")
                reply = await fetcher.get(first.url(), validators=mine)
                assert first.requests[0].headers["if-none-match"] == '"mine"'
                assert not {"if-none-match", "if-modified-since"} & set(other.requests[0].headers)
                assert (reply.status, reply.sent) == (200, None)
                assert renew(mine, reply) == Validators(there, '"theirs"')

    asyncio.run(go())


def test_names_that_nobody_answers_for_keep_no_other_name_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, asked, real = threading.Event(), threading.Semaphore(0), socket.getaddrinfo

    def look_up(host: Any, *args: Any, **options: Any) -> Any:
        if str(host).endswith(".invalid"):
            asked.release()
            answered.wait(30)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def go() -> None:
        async with serving(says(answer("200 OK", b"x"))) as server, Fetcher(POLICY) as fetcher:
            dead = [asyncio.create_task(fetcher.get(f"http://n{n}.invalid/")) for n in range(60)]
            try:
                for _ in range(4):  # the fewest threads that the event loop's own pool has
                    while not asked.acquire(blocking=False):
                        await asyncio.sleep(0)
                for _ in range(50):
                    await asyncio.sleep(0)  # all are queued by now
                assert (await fetcher.get(server.url(host="localhost"))).body == b"x"
                assert not any(task.done() for task in dead)
            finally:
                answered.set()
            assert {r.failure.kind for r in await asyncio.gather(*dead) if r.failure} == {"dns"}

    asyncio.run(go())


@pytest.mark.parametrize(
    ("proxy", "kind"),
    [
        ("nonsense", "protocol"),
        ("http://[::1", "protocol"),
        ("http://127.0.0.1:1", "refused"),
        ("http://p.invalid", "dns"),
    ],
)
def test_what_is_wrong_with_the_proxy_is_said_of_the_proxy(proxy: str, kind: str) -> None:
    async def go() -> None:
        async with Fetcher(replace(POLICY, proxy=proxy)) as fetcher:
            for scheme in ("http", "https"):
                reply = await fetcher.get(f"{scheme}://news.example/")
                assert reply.failure is not None
                assert reply.failure.kind == kind
                assert "the proxy" in reply.failure.message

    asyncio.run(go())


@asynccontextmanager
async def proxied(said: bytes) -> AsyncIterator[tuple[Server, Fetcher]]:
    """A proxy that always says the same, and a guarded fetcher behind it."""
    async with serving(says(said)) as proxy, Fetcher(FetchPolicy("test/1", proxy=proxy.url())) as fetcher:
        yield proxy, fetcher


def test_a_proxy_that_refuses_a_tunnel_is_a_value() -> None:
    async def go() -> None:
        async with proxied(answer("403 Forbidden")) as (proxy, fetcher):
            reply = await fetcher.get("https://news.example/", retry=False)
            assert (proxy.requests[0].method, proxy.requests[0].target) == ("CONNECT", "news.example:443")
            assert reply.failure is not None
            assert reply.failure.kind == "unreachable"
            assert "403" in reply.failure.message

    asyncio.run(go())


@pytest.mark.parametrize("location", [b"http://10.0.0.1/", b"http://127.1/", b"http://localhost/", b"http://[::1]/"])
def test_a_redirect_through_a_proxy_reaches_no_private_literal(location: bytes) -> None:
    async def go() -> None:
        async with proxied(redirect(location)) as (proxy, fetcher):
            reply = await fetcher.get("http://news.example/")
            assert len(proxy.requests) == 1
            assert reply.failure is not None
            assert reply.failure.kind == "blocked"

    asyncio.run(go())


def test_a_head_request_has_no_body_and_keeps_its_method() -> None:
    async def go() -> None:
        handler = routes(a=redirect(b"/b"), b=answer("200 OK", b"", "Content-Encoding: br", length=5000))
        async with serving(handler) as server, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(server.url("/a"), method="HEAD")
            assert (reply.status, reply.body, reply.complete, reply.failure) == (200, b"", True, None)
            assert reply.headers["content-length"] == "5000"
            assert [request.method for request in server.requests] == ["HEAD", "HEAD"]

    asyncio.run(go())
