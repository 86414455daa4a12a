"""Targets, header fields and validators on the wire, where servers send what they should not."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode

import pytest

from monitor.core.http import renew
from monitor.fetch import Fetcher, FetchPolicy
from tests.servers import Request, answer, says, serving

POLICY = FetchPolicy("test/1", allow_private_networks=True, total_timeout=5.0)


def ask(*headers: str, path: str = "/", times: int = 1) -> list[Request]:
    """What a server sees that is asked `times` times, each time with the validators of the last answer."""

    async def go() -> list[Request]:
        kept = None
        async with serving(says(answer("200 OK", b"x", *headers))) as server, Fetcher(POLICY) as fetcher:
            for _ in range(times):
                reply = await fetcher.get(server.url(path), validators=kept, retry=False)
                assert (reply.status, reply.failure) == (200, None)
                kept = renew(kept, reply)
            return server.requests

    return asyncio.run(go())


@pytest.mark.parametrize("path", ["/a?", "//", "/a|b?c|d", "/a/../b", "/%7E?%41%", "/[x]", "/a;b?c&&d=="])
def test_targets_arrive_byte_for_byte(path: str) -> None:
    assert ask(path=path)[0].target == path


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/x?", "/x?"),
        (b"/caf\xc3\xa9", "/caf%C3%A9"),
        (b"/caf\xe9", "/caf%E9"),  # no UTF-8: the bytes themselves
        (b"/%7E|", "/%7E|"),
    ],
)
def test_redirects_lead_where_the_bytes_say(location: bytes, target: str) -> None:
    async def turn(request: Request, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n"
        writer.write(head if request.target == "/start" else answer())

    async def go() -> list[str]:
        async with serving(turn) as server, Fetcher(POLICY) as fetcher:
            await fetcher.get(server.url("/start"))
            return [request.target for request in server.requests]

    assert asyncio.run(go()) == ["/start", target]


def test_repeated_fields_count_once_where_they_are_no_lists() -> None:
    """RFC 9110, 5.3: a joined date is no date, and the request would never be conditional again."""
    second = ask('ETag: "a"', 'ETag: "a"', "Last-Modified: Mon", "Last-Modified: Mon", times=2)[1]
    assert (second.headers["if-none-match"], second.headers["if-modified-since"]) == ('"a"', "Mon")


@pytest.mark.parametrize("etag", ['"a\x01b"', f'"{"x" * 20_000}"', '"\xe4"'])
def test_validators_that_no_request_can_carry_fail_none(etag: str) -> None:
    """They stay away, and the next request is made, by the other validator."""
    second = ask(f"ETag: {etag}", "Last-Modified: Mon", times=2)[1]
    assert "if-none-match" not in second.headers
    assert second.headers["if-modified-since"] == "Mon"


def test_an_etag_beyond_ascii_goes_back_byte_for_byte() -> None:
    # The server reads and writes latin-1: these are the two bytes of an UTF-8 letter.
    etag = 'W/"\xc3\xa4,b-gzip"'
    assert ask(f"ETag: {etag}", times=2)[1].headers["if-none-match"] == etag


def test_credentials_of_an_address_go_out_as_basic() -> None:
    """RFC 7617; and they go nowhere else."""

    async def go() -> Request:
        async with serving(says(answer())) as server, Fetcher(POLICY) as fetcher:
            await fetcher.get(server.url(host="me:p%40ss@127.0.0.1"))
            return server.requests[0]

    request = asyncio.run(go())
    assert request.headers["authorization"] == f"Basic {b64encode(b'me:p@ss').decode()}"
    assert "me" not in request.headers["host"]


def test_ipv6_literals_are_reached() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")

    async def go() -> Request:
        async with serving(says(answer()), "::1") as server, Fetcher(POLICY) as fetcher:
            assert (await fetcher.get(server.url(host="[0:0::1]"))).status == 200
            return server.requests[0]

    assert asyncio.run(go()).headers["host"].startswith("[::1]:")


def test_a_bomb_is_left_long_before_the_cap() -> None:
    import zlib

    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(bytes(40_000_000)) + packer.flush()

    async def go() -> None:
        async with (
            serving(says(answer("200 OK", bomb, "Content-Encoding: gzip"))) as server,
            Fetcher(POLICY) as fetcher,
        ):
            reply = await fetcher.get(server.url())
            assert reply.failure is not None
            assert (reply.failure.kind, reply.body, reply.complete) == ("too_large", b"", False)

    asyncio.run(go())
