"""The only socket: limits, politeness, address guard, redirects, bounded bodies.

What servers and networks do is a value here, never an exception: `get` and `post` always return a Reply.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import urljoin, urlsplit

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, wait_random

from monitor.core.decode import CappedInflate
from monitor.core.http import Failure, Redirect, Reply, Validators, conditional_headers
from monitor.guard import allowed
from monitor.transport import AiohttpTransport, TransportFailure

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAFE = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+/[!$%&'()*+,./0-9:;=?@A-Z_a-z~-]*")
"""Addresses that can go out byte for byte: whatever httpx might make of them is not asked."""

RETRIED_KINDS = frozenset({"refused", "reset", "unreachable"})  # a time-out has cost enough already
RETRIED_STATUS = frozenset({502, 504})
RETRY_WAIT = (0.2, 1.0)
"""Seconds before the second try, at least and at most."""


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How to fetch. Times in seconds, sizes in bytes; `max_bytes` bounds a body both as sent and as decoded."""

    user_agent: str
    allow_private_networks: bool = False
    proxy: str | None = None
    total: int = 100
    per_host: int = 2
    host_delay: float = 0.0
    connect_timeout: float = 10.0
    total_timeout: float = 60.0
    max_redirects: int = 10
    max_bytes: int = 52_428_800
    allow_downgrade: bool = False


@dataclass(slots=True)
class _Host:
    """Who is at one host, who waits for it, and when the next request may go out."""

    active: int = 0
    next_at: float = 0.0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Fetcher:
    """Fetches documents within the limits of a policy, over all hosts and each. Use as an async context manager."""

    def __init__(self, policy: FetchPolicy) -> None:
        self.policy = policy
        self._hosts: dict[str, _Host] = {}
        self._total = asyncio.Semaphore(policy.total)
        self._transports: dict[tuple[bool, str | None], AiohttpTransport] = {}
        self._tls = ssl.create_default_context()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()
        # Closed TLS transports need a turn of the loop to be gone.
        await asyncio.sleep(0)

    async def get(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        accept: str = "*/*",
        max_bytes: int | None = None,
        policy: FetchPolicy | None = None,
        retry: bool = True,
    ) -> Reply:
        """GET a document, redirects followed. Never raises for what the network or the server does.

        `validators` make the request conditional where they belong to the URL asked. `policy` brings a site's own user
        agent, guard, proxy and host limits. What may succeed on a second try is tried again once, after a moment.
        """
        chosen = policy or self.policy
        if max_bytes is not None:
            chosen = replace(chosen, max_bytes=max_bytes)
        headers = {"user-agent": chosen.user_agent, "accept": accept, "accept-encoding": "gzip"}
        reply = await self._chain(url, headers, validators, chosen)
        return await self._again(reply, url, headers, validators, chosen) if retry and _worth_a_retry(reply) else reply

    async def _again(
        self, first: Reply, url: str, headers: Mapping[str, str], validators: Validators | None, policy: FetchPolicy
    ) -> Reply:
        """A second try after a moment, for what may succeed then; the first has been made."""
        made = [first]

        async def attempt() -> Reply:
            return made.pop() if made else await self._chain(url, headers, validators, policy)

        tries = AsyncRetrying(
            stop=stop_after_attempt(2),
            wait=wait_random(*RETRY_WAIT),
            retry=retry_if_result(_worth_a_retry),
            retry_error_callback=_last_result,
        )
        reply: Reply = await tries(attempt)
        return reply

    async def post(
        self, url: str, *, content: bytes, headers: Mapping[str, str], policy: FetchPolicy | None = None
    ) -> Reply:
        """POST `content` once; redirects are not followed. Never raises for what the network or the server does."""
        chosen = replace(policy or self.policy, max_bytes=65_536, total_timeout=30.0)
        sent = {"user-agent": chosen.user_agent, "accept-encoding": "identity", **headers}
        return await self._one("POST", url, sent, None, chosen, content)

    async def _chain(
        self, url: str, headers: Mapping[str, str], validators: Validators | None, policy: FetchPolicy
    ) -> Reply:
        began = time.perf_counter()
        steps: list[Redirect] = []
        seen = {url}
        here = url
        while True:
            conditions = conditional_headers(validators, here)
            sent = validators if conditions else None
            reply = await self._one("GET", here, {**headers, **conditions}, sent, policy)
            wire = replace(reply, url=url, redirects=tuple(steps), seconds=time.perf_counter() - began)
            target = reply.headers.get("location") if reply.status in REDIRECTS else None
            if not target or reply.status is None:
                return wire
            there = urljoin(here, target.strip())
            problem = _refused_redirect(here, there, policy, len(steps), seen)
            if problem is not None:
                return replace(wire, status=None, failure=problem, body=b"")
            steps.append(Redirect(reply.status, there))
            seen.add(there)
            here = there

    async def _one(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        sent: Validators | None,
        policy: FetchPolicy,
        content: bytes | None = None,
    ) -> Reply:
        """One request and its answer, within the limits of its host."""
        began = time.perf_counter()
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            return Reply(url, url, failure=Failure("protocol", f"{url!r} is no usable address: {error}"))
        if parsed.scheme not in ("http", "https") or not parsed.host:
            return Reply(url, url, failure=Failure("protocol", f"{url!r} is no http or https address"))
        if policy.proxy and not policy.allow_private_networks and _is_private_literal(parsed.host):
            text = f"{parsed.host} is not a public address; allow_private_networks: true would permit it"
            return Reply(url, url, failure=Failure("blocked", text))
        host = f"{parsed.host}:{parsed.port or ''}"
        turn = await self._take_turn(host, policy)
        try:
            async with asyncio.timeout(policy.total_timeout):
                return await self._exchange(method, parsed, url, headers, sent, policy, content, began)
        except TimeoutError:
            failure = Failure("timeout", f"no whole answer from {parsed.host} within {policy.total_timeout:g} s")
        finally:
            self._total.release()
            self._end_turn(host, turn)
        return Reply(url, url, failure=failure, seconds=time.perf_counter() - began, sent=sent)

    async def _exchange(
        self,
        method: str,
        parsed: httpx.URL,
        url: str,
        headers: Mapping[str, str],
        sent: Validators | None,
        policy: FetchPolicy,
        content: bytes | None,
        began: float,
    ) -> Reply:
        try:
            # The transport is called directly: of a client's work (cookies, auth, redirects) we want none.
            extensions = {"as_published": url} if _SAFE.fullmatch(url) else {}
            request = httpx.Request(method, parsed, headers=dict(headers), content=content, extensions=extensions)
            response = await self._transport(policy).handle_async_request(request)
        except TransportFailure as error:
            failure = Failure(error.kind, str(error))
            return Reply(url, url, failure=failure, seconds=time.perf_counter() - began, sent=sent)
        except (httpx.HTTPError, ValueError) as error:
            failure = Failure("protocol", f"{url}: {error}")
            return Reply(url, url, failure=failure, seconds=time.perf_counter() - began, sent=sent)
        try:
            body = await _read(response, policy.max_bytes)
        finally:
            await response.aclose()
        names: dict[str, str] = {}
        for name, value in response.headers.multi_items():
            names[name] = f"{names[name]}, {value}" if name in names else value
        return Reply(
            url=url,
            final_url=url,
            status=response.status_code,
            headers=names,
            body=body.data,
            complete=body.complete,
            failure=body.failure,
            seconds=time.perf_counter() - began,
            wire_bytes=body.wire,
            sent=sent,
        )

    def _transport(self, policy: FetchPolicy) -> AiohttpTransport:
        key = (not policy.allow_private_networks, policy.proxy)
        transport = self._transports.get(key)
        if transport is None:
            transport = self._transports[key] = AiohttpTransport(
                guarded=key[0], proxy=key[1], connect_timeout=policy.connect_timeout, tls=self._tls
            )
        return transport

    async def _take_turn(self, name: str, policy: FetchPolicy) -> _Host:
        """Take a place at a host, then one of all: whoever waits for a slow host takes no place from others."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
        loop = asyncio.get_running_loop()
        while host.active >= policy.per_host:
            place: asyncio.Future[None] = loop.create_future()
            host.waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    _next_in_line(host)
                raise
        host.active += 1
        try:
            if policy.host_delay or host.next_at:
                start = max(loop.time(), host.next_at)
                host.next_at = start + policy.host_delay
                await asyncio.sleep(max(0.0, start - loop.time()))
            await self._total.acquire()
        except BaseException:
            self._end_turn(name, host)
            raise
        return host

    def _end_turn(self, name: str, host: _Host) -> None:
        host.active -= 1
        _next_in_line(host)
        if not host.active and not host.waiting and host.next_at <= asyncio.get_running_loop().time():
            self._hosts.pop(name, None)


def _next_in_line(host: _Host) -> None:
    while host.waiting:
        place = host.waiting.popleft()
        if not place.done():
            place.set_result(None)
            return


@dataclass(slots=True)
class _Body:
    data: bytes = b""
    complete: bool = False
    wire: int = 0
    failure: Failure | None = None


async def _read(response: httpx.Response, cap: int) -> _Body:
    """The body, decoded, within `cap` bytes on the wire and within `cap` decoded; what was read of a cut one."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    body = _Body()
    parts: list[bytes] = []
    if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        body.failure = Failure("protocol", f"the body has the content coding {coding!r}, which was not asked for")
        return body
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    inflate = CappedInflate(cap) if coding in ("gzip", "x-gzip", "deflate") else None
    try:
        async for chunk in stream:
            body.wire += len(chunk)
            parts.append(inflate.feed(chunk) if inflate else chunk)
            if body.wire > cap or (inflate is not None and inflate.capped):
                body.failure = Failure("too_large", f"the body is larger than {cap} bytes")
                return body
    except TransportFailure as error:
        if not parts:
            body.failure = Failure(error.kind, str(error))
            return body
        body.data = b"".join(parts)
        return body  # cut: what came may add, never remove
    body.data = b"".join(parts)
    body.complete = inflate.finish() if inflate else True
    return body


def _refused_redirect(here: str, there: str, policy: FetchPolicy, steps: int, seen: set[str]) -> Failure | None:
    if steps >= policy.max_redirects:
        return Failure("redirects", f"more than {policy.max_redirects} redirects")
    if there in seen:
        return Failure("redirects", f"redirects in a circle, back to {there}")
    schemes = (urlsplit(here).scheme, urlsplit(there).scheme)
    if schemes[1] not in ("http", "https"):
        return Failure("protocol", f"redirects to {there}, which is no http or https address")
    if schemes == ("https", "http") and not policy.allow_downgrade:
        return Failure("downgrade", f"redirects from https to {there}; name that address yourself if you trust it")
    return None


def _is_private_literal(host: str) -> bool:
    literal = host.strip("[]")
    is_address = ":" in literal or literal.replace(".", "").isdigit()
    return literal == "localhost" or (is_address and not allowed(literal))


def _worth_a_retry(reply: Reply) -> bool:
    if reply.failure is not None:
        return reply.failure.kind in RETRIED_KINDS
    return reply.status in RETRIED_STATUS


def _last_result(state: RetryCallState) -> Reply:
    assert state.outcome is not None
    result: Reply = state.outcome.result()
    return result
