"""httpx's transport interface over aiohttp's connections.

httpx's own pool does not scale to hundreds of hosts; aiohttp's does. This is the seam between the two: requests and
responses are httpx's, sockets are aiohttp's. Request targets go out byte for byte, bodies come in raw, no cookie is
kept, no proxy is taken from the environment, and every error has one of `core.http.Failure`'s kinds.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from string import punctuation
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import aiohttp
import httpx
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from monitor.core.address import Address, address_of
from monitor.guard import BLOCKED, PERMIT, guarded_socket, open_socket

MAX_HEADER_LINE = 65_536
_LONGEST_NAME = 200
KEEP_ALIVE = 5.0
"""Seconds that an idle connection is kept: enough for the files of one tree, few enough for thousands of hosts."""


class TransportFailure(httpx.TransportError):
    """A connection that did not work out. `kind` is one of `core.http.Failure`'s."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Resolver(AbstractResolver):
    """The system's resolver on threads of its own.

    The event loop's few threads are shared with all other work, and a name whose servers are dead holds one for up to
    half a minute: a handful of such names would keep every other host waiting.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "resolve")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name, in the system's order. Raises OSError (`socket.gaierror`)."""
        found = await asyncio.get_running_loop().run_in_executor(self._pool, _look_up, host, port, family)
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=proto, flags=flags)
            for kind, proto, address in found
        ]

    async def close(self) -> None:
        """Let go of the threads; look-ups that still run end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: int) -> list[tuple[int, int, str]]:
    found = []
    for kind, _, proto, _, address in socket.getaddrinfo(
        host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
    ):
        scope = f"%{address[3]}" if len(address) == 4 and address[3] else ""  # of a link-local address
        found.append((int(kind), proto, f"{address[0]}{scope}"))
    return found


class _Body(httpx.AsyncByteStream):
    """A body as it comes, still encoded."""

    def __init__(self, response: aiohttp.ClientResponse, host: str) -> None:
        self._response = response
        self._host = host

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises TransportFailure where it breaks off."""
        try:
            return await self._response.content.readany()
        except Exception as error:
            raise failure_of(error, self._host) from error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self.read():
            yield chunk

    def close(self) -> None:
        """Give the connection back where the body was read to its end; else close it: the rest is not wanted."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()

    async def aclose(self) -> None:
        self.close()


class Answer:
    """The head of a response. `headers` have lower-case names; `read` gives the body."""

    __slots__ = ("_body", "headers", "status")

    def __init__(self, response: httpx.Response) -> None:
        assert isinstance(response.stream, _Body)
        self.status = response.status_code
        self.headers = _fields(response.headers.raw)
        self._body = response.stream

    async def read(self) -> bytes:
        """The next bytes of the body, still encoded; empty at its end. Raises TransportFailure where it breaks off."""
        return await self._body.read()

    def close(self) -> None:
        """The rest of the body is not wanted."""
        self._body.close()


SINGLE = frozenset(
    {"age", "content-length", "content-type", "date", "etag", "expires", "last-modified", "location", "retry-after"}
)
"""Fields that are no lists: of repeats the first counts, a joined one would be no value at all (RFC 9110, 5.3)."""


def _fields(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Header fields by lower-case name. Values are UTF-8 where they can be, so that they go back as they came."""
    names: dict[str, str] = {}
    for key, content in raw:
        name = key.decode("latin-1").lower()
        try:
            value = content.decode()
        except UnicodeDecodeError:
            if name == "etag":
                continue  # it could not be sent back verbatim
            value = quote(content, safe=punctuation) if name == "location" else content.decode("latin-1")
        if name not in names:
            names[name] = value
        elif name not in SINGLE:
            names[name] = f"{names[name]}, {value}"
    return names


_OF_THE_CONNECTION = (b"host", b"content-length")


class AiohttpTransport(httpx.AsyncBaseTransport):
    """One pool of connections; `guarded` lets it connect to public addresses only."""

    def __init__(
        self,
        *,
        guarded: bool,
        proxy: str | None,
        connect_timeout: float,
        tls: ssl.SSLContext,
        resolver: AbstractResolver,
    ) -> None:
        self._guarded = guarded and proxy is None
        self._proxy = proxy
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_timeout, sock_connect=connect_timeout)
        self._tls = tls
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,  # the fetcher holds the limits
                limit_per_host=0,
                ttl_dns_cache=60,
                keepalive_timeout=KEEP_ALIVE,
                ssl=self._tls,
                resolver=self._resolver,
                socket_factory=guarded_socket if self._guarded else open_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                max_line_size=MAX_HEADER_LINE,
                max_field_size=MAX_HEADER_LINE,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
            # Trying again is the fetcher's to decide: it counts, waits, and knows what may succeed.
            self._session._retry_connection = False
        return self._session

    async def send(self, method: str, to: Address, headers: Mapping[str, str], content: bytes | None) -> Answer:
        """Send one request; returns once the head of the answer is there. Raises TransportFailure.

        The transport is called directly: of a client's work (cookies, auth, redirects, codings) we want none.
        """
        fields = [(name.encode(), value.encode(errors="replace")) for name, value in headers.items()]
        if to.userinfo is not None:
            fields.append((b"authorization", b"Basic " + b64encode(unquote_to_bytes(to.userinfo))))
        # Given as a stream, a body that is none costs nothing to encode.
        stream = httpx.ByteStream(content or b"")
        request = httpx.Request(method, _url_of(to), headers=fields, stream=stream, extensions={"address": to})
        return Answer(await self.handle_async_request(request))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; its extension ``address``, where there is one, says what goes out byte for byte."""
        to: Address = request.extensions.get("address") or address_of(str(request.url))
        host = f"[{to.host}]" if ":" in to.host else to.host
        try:
            response = await self._open().request(
                request.method,
                # The target as the path: taken apart, an empty query would be lost.
                yarl.URL.build(scheme=to.scheme, host=host, port=to.port, path=to.target, encoded=True),
                headers=[
                    (k.decode(), v.decode()) for k, v in request.headers.raw if k.lower() not in _OF_THE_CONNECTION
                ],
                data=await request.aread() or None,
                allow_redirects=False,
                proxy=self._proxy,
            )
        except Exception as error:
            raise failure_of(error, to.host, self._proxy is not None) from error
        return httpx.Response(
            response.status, headers=list(response.raw_headers), stream=_Body(response, to.host), request=request
        )

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None


@lru_cache(maxsize=4096)
def _url_of(to: Address) -> httpx.URL:
    """httpx's name for an address. What it cannot hold of a target stays out of it: the address itself goes out."""
    host = f"[{to.host}]" if ":" in to.host else to.host
    try:
        return httpx.URL(scheme=to.scheme, host=host, port=to.port, raw_path=to.target.encode())
    except (httpx.InvalidURL, ValueError):
        return httpx.URL(scheme=to.scheme, host="host.invalid", port=to.port, path="/")


_ERRNO = {
    errno.ECONNREFUSED: ("refused", "refused the connection"),
    errno.ECONNRESET: ("reset", "closed the connection"),
    errno.EPIPE: ("reset", "closed the connection"),
    errno.EHOSTUNREACH: ("unreachable", "cannot be reached"),
    errno.ENETUNREACH: ("unreachable", "cannot be reached: there is no network"),
    errno.ETIMEDOUT: ("timeout", "did not answer"),
    errno.EMFILE: ("unreachable", "was not tried: too many files are open here (ulimit -n)"),
}

_BY_CLASS: tuple[tuple[type[Exception], str, str], ...] = (
    (aiohttp.ConnectionTimeoutError, "timeout", "no connection to {host} in time"),
    (TimeoutError, "timeout", "{host} did not answer in time"),
    (aiohttp.ClientPayloadError, "reset", "{host} broke off in the middle of its answer"),
    (aiohttp.ServerDisconnectedError, "reset", "{host} closed the connection without an answer"),
)


def failure_of(error: Exception, host: str, proxied: bool = False) -> TransportFailure:
    """The failure that one of aiohttp's (or the system's) errors stands for.

    Any error at all: a server must not be able to raise one here that nobody thought of. `proxied`: the connection
    was one to the proxy, and so is what went wrong with it.
    """
    cause: Any = getattr(error, "os_error", None) or error
    host = host[:_LONGEST_NAME]
    if isinstance(error, OSError) and BLOCKED in f"{error} {cause}":
        text = f"{host} is at an address that is not public; {PERMIT}"
        return TransportFailure("blocked", text)
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return TransportFailure("tls", f"no secure connection to {host}: {_reason(error)}")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return TransportFailure("unreachable", f"the proxy does not lead to {host}: it answers {error.status}")
    if isinstance(error, (aiohttp.InvalidURL, UnicodeError)):
        subject = "the proxy's address" if proxied else host
        return TransportFailure("protocol", f"{subject} is no usable address: {_reason(error)}")
    if isinstance(error, aiohttp.ClientConnectorError) and proxied:
        host = "the proxy"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        if getattr(cause, "errno", None) in (socket.EAI_AGAIN, socket.EAI_FAIL):
            return TransportFailure("dns", f"the name of {host} could not be looked up: {_reason(cause)}")
        return TransportFailure("dns", f"there is no host {host} (its name is unknown to the DNS)")
    for of, kind, text in _BY_CLASS:
        if isinstance(error, of):
            return TransportFailure(kind, text.format(host=host))
    # Where each of several addresses failed in a way of its own, their errors are one text.
    for number in (getattr(cause, "errno", None), *map(int, re.findall(r"\[Errno (\d+)\]", str(cause)))):
        if number in _ERRNO:
            kind, text = _ERRNO[number]
            return TransportFailure(kind, f"{host} {text}")
    if isinstance(error, OSError):
        return TransportFailure("unreachable", f"{host} cannot be reached: {_reason(cause)}")
    return TransportFailure("protocol", f"{host} does not speak proper HTTP: {_reason(error)}")


def _reason(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:200]
