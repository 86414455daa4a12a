"""The only socket: limits, politeness, address guard, redirects, bounded bodies.

What servers and networks do is a value here, never an exception: `get` and `post` always return a Reply.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, Self

from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, wait_random

from monitor.core.address import Address, address_of, follow
from monitor.core.decode import BOMB_BYTES, BOMB_RATIO, CappedInflate
from monitor.core.http import Failure, Redirect, Reply, Validators, conditional_headers
from monitor.guard import PERMIT, allowed_by_name
from monitor.network import Network, is_answer
from monitor.transport import AiohttpTransport, Answer, Resolver, TransportFailure
from monitor.turns import Turns

REDIRECTS = frozenset({301, 302, 303, 307, 308})
BODIES = frozenset({200, 226})
"""The answers whose body is the document; of any other the status is what counts."""

_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})
_FOREIGN = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})
"""Codings that exist and were not asked for. Names that are none (`utf-8`, `none`) are sent in error, and ignored."""

RETRIED_KINDS = frozenset({"refused", "reset", "unreachable"})  # a time-out has cost enough already
RETRIED_STATUS = frozenset({502, 504})
RETRY_WAIT = (0.2, 1.0)
"""Seconds before the second try, at least and at most."""

GLANCE_BYTES = 65_536
GLANCE_SECONDS = 5.0
"""What is read of a body that nobody waits for, so that its connection can be used again."""


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How to fetch. Times in seconds, sizes in bytes; `max_bytes` bounds a body both as sent and as decoded.

    `total_timeout` bounds what one `get` spends in exchanges, redirects included, the wait for a turn not; a second
    try has as much again. `total` is the fetcher's alone: a policy given with a request does not change it.
    """

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


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is asked for: the same at every step of a chain but for the address and the validators."""

    method: str
    headers: Mapping[str, str]
    policy: FetchPolicy
    validators: Validators | None = None
    delta: bool = False
    content: bytes | None = None
    in_turn: bool = True


def _tls() -> ssl.SSLContext:
    return _trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _trust(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """The system's trust, or that of OpenSSL's two variables, read once a process: loading it takes 50 ms."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Fetcher:
    """Fetches documents within the limits of a policy, over all hosts and each. Use as an async context manager."""

    def __init__(self, policy: FetchPolicy) -> None:
        self.policy = policy
        self._turns = Turns(policy.total)
        self._transports: dict[tuple[bool, str | None, float], AiohttpTransport] = {}
        self._resolver = Resolver(policy.total)
        self._tls = _tls()
        self.network = Network()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()
        await self._resolver.close()
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
        method: Literal["GET", "HEAD"] = "GET",
        delta: bool = False,
    ) -> Reply:
        """GET a document, redirects followed. Never raises for what the network or the server does.

        `validators` make the request conditional where they belong to the URL asked. `policy` brings a site's own user
        agent, guard, proxy and host limits. What may succeed on a second try is tried again once, after a moment.
        `delta`: where a request carries an ETag, the new entries of the feed alone will do (RFC 3229).
        """
        chosen = policy or self.policy
        if max_bytes is not None:
            chosen = replace(chosen, max_bytes=max_bytes)
        headers = {"user-agent": chosen.user_agent, "accept": accept, "accept-encoding": "gzip"}
        ask = _Ask(method, headers, chosen, validators, delta)
        answered = False
        self.network.begin()
        try:
            reply = await self._chain(url, ask)
            if retry and _worth_a_retry(reply):
                reply = await self._again(reply, url, ask)
            answered = is_answer(reply, proxied=chosen.proxy is not None)
            return reply
        finally:
            self.network.end(answered=answered)

    async def post(
        self, url: str, *, content: bytes, headers: Mapping[str, str], policy: FetchPolicy | None = None
    ) -> Reply:
        """POST `content` once; redirects are not followed. Never raises for what the network or the server does.

        An answer counts by its status: what is wrong with its body fails nothing. The limits on requests to a host do
        not count here: they spare those who did not ask for it, and an endpoint that hangs must delay no other.
        """
        chosen = replace(policy or self.policy, total_timeout=30.0)
        sent = {"user-agent": chosen.user_agent, "accept-encoding": "identity", **headers}
        return await self._step(url, _Ask("POST", sent, chosen, content=content, in_turn=False), chosen.total_timeout)

    async def _again(self, first: Reply, url: str, ask: _Ask) -> Reply:
        """A second try after a moment, for what may succeed then; the first has been made."""
        made = [first]

        async def attempt() -> Reply:
            return made.pop() if made else await self._chain(url, ask)

        tries = AsyncRetrying(
            stop=stop_after_attempt(2),
            wait=wait_random(*RETRY_WAIT),
            retry=retry_if_result(_worth_a_retry),
            retry_error_callback=_last_result,
        )
        reply: Reply = await tries(attempt)
        return reply

    async def _chain(self, url: str, ask: _Ask) -> Reply:
        steps: list[Redirect] = []
        seen = {url}
        here, spent = url, 0.0
        while True:
            reply = await self._step(here, ask, ask.policy.total_timeout - spent)
            spent += reply.seconds
            location = reply.headers.get("location", "").strip() if reply.status in REDIRECTS else ""
            if not steps and not location:
                return reply
            reply = replace(reply, url=url, redirects=tuple(steps), seconds=spent)
            if not location or reply.status is None:
                return reply
            there = _follow(here, location, ask.policy, len(steps), seen)
            if isinstance(there, Failure):
                return replace(reply, status=None, failure=there, body=b"")
            steps.append(Redirect(reply.status, there))
            seen.add(there)
            here = there

    async def _step(self, url: str, ask: _Ask, seconds: float) -> Reply:
        """One request and its answer, in its turn where it takes one, within `seconds` once it has begun."""
        policy = ask.policy
        try:
            to = address_of(url)
        except ValueError as error:
            return _failed(url, "protocol", _shown(str(error)))
        if policy.proxy and not policy.allow_private_networks and not allowed_by_name(to.host):
            text = f"{to.host} is not a public address; {PERMIT}"
            return _failed(url, "blocked", text)
        name = f"{to.host.rstrip('.')}:{to.port or ''}"
        if ask.in_turn:
            await self._turns.take(name, policy.per_host, policy.host_delay)
        began = time.perf_counter()
        conditions = conditional_headers(ask.validators, url)
        if ask.delta and "If-None-Match" in conditions:
            conditions["A-IM"] = "feed"
        try:
            async with asyncio.timeout(seconds):
                reply = await self._exchange(url, to, ask, conditions)
        except TransportFailure as error:
            reply = _failed(url, error.kind, str(error))
        except TimeoutError:
            text = f"no whole answer from {to.host} within {policy.total_timeout:g} s"
            reply = _failed(url, "timeout", text)
        finally:
            if ask.in_turn:
                self._turns.leave(name)
        return replace(reply, seconds=time.perf_counter() - began, sent=ask.validators if conditions else None)

    async def _exchange(self, url: str, to: Address, ask: _Ask, conditions: Mapping[str, str]) -> Reply:
        headers = {**ask.headers, **conditions} if conditions else ask.headers
        answer = await self._transport(ask.policy).send(ask.method, to, headers, ask.content)
        try:
            if answer.status in (204, 304) or ask.method == "HEAD":
                body = _Body(complete=True)
            elif answer.status in BODIES and ask.method == "GET":
                body = await _read(answer, ask.policy.max_bytes)
            else:
                body = await _glance(answer)
        finally:
            answer.close()
        return Reply(
            url=url,
            final_url=url,
            status=answer.status,
            headers=answer.headers,
            body=body.data,
            complete=body.complete,
            failure=body.failure,
            wire_bytes=body.wire,
        )

    def _transport(self, policy: FetchPolicy) -> AiohttpTransport:
        key = (not policy.allow_private_networks, policy.proxy, policy.connect_timeout)
        transport = self._transports.get(key)
        if transport is None:
            transport = self._transports[key] = AiohttpTransport(
                guarded=key[0], proxy=key[1], connect_timeout=key[2], tls=self._tls, resolver=self._resolver
            )
        return transport


@dataclass(slots=True)
class _Body:
    data: bytes = b""
    complete: bool = False
    wire: int = 0
    failure: Failure | None = None


async def _read(answer: Answer, cap: int) -> _Body:
    """The body, decoded, within `cap` bytes on the wire and within `cap` decoded; what was read of a cut one."""
    codings = {name.strip() for name in answer.headers.get("content-encoding", "").lower().split(",")}
    body = _Body()
    parts: list[bytes] = []
    if foreign := codings & _FOREIGN:
        text = f"the body has the content coding {foreign.pop()}, which was not asked for"
        body.failure = Failure("protocol", text)
        return body
    length = answer.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > cap):
        body.failure = _too_large(cap)
        return body
    # One layer: what is compressed more often is peeled by its bytes when it is parsed.
    inflate = CappedInflate(cap) if codings & _COMPRESSED else None
    made = 0
    try:
        while chunk := await answer.read():
            body.wire += len(chunk)
            part = inflate.feed(chunk) if inflate else chunk
            parts.append(part)
            made += len(part)
            if body.wire > cap or (inflate and inflate.capped) or made > max(BOMB_BYTES, body.wire * BOMB_RATIO):
                body.failure = _too_large(cap)
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


async def _glance(answer: Answer) -> _Body:
    """A body that nobody waits for: a redirect's, an error's, a webhook's. It is short, or left; it fails nothing."""
    try:
        async with asyncio.timeout(GLANCE_SECONDS):
            body = await _read(answer, GLANCE_BYTES)
    except TimeoutError:
        return _Body()
    body.failure = None
    return body


def _follow(here: str, location: str, policy: FetchPolicy, steps: int, seen: set[str]) -> str | Failure:
    """Where a redirect leads, or why it is not followed."""
    if steps >= policy.max_redirects:
        return Failure("redirects", f"more than {policy.max_redirects} redirects")
    try:
        there = follow(here, location)
        scheme = address_of(there).scheme
    except ValueError:
        return Failure("protocol", f"redirects to {_shown(location)}, which is no http or https address")
    if there in seen:
        return Failure("redirects", f"redirects in a circle, back to {_shown(there)}")
    if scheme == "http" and here[:6].lower() == "https:" and not policy.allow_downgrade:
        return Failure(
            "downgrade", f"redirects from https to {_shown(there)}; name that address yourself if you trust it"
        )
    return there


def _failed(url: str, kind: str, message: str) -> Reply:
    return Reply(url, url, failure=Failure(kind, message))


def _too_large(cap: int) -> Failure:
    return Failure("too_large", f"the body is larger than {cap} bytes")


def _shown(text: str) -> str:
    """A server's text as one line of a message: printable, and not a page long."""
    shown = text if text.isprintable() else repr(text)[1:-1]
    return shown if len(shown) <= 120 else f"{shown[:120]}..."


def _worth_a_retry(reply: Reply) -> bool:
    if reply.failure is not None:
        return reply.failure.kind in RETRIED_KINDS
    return reply.status in RETRIED_STATUS


def _last_result(state: RetryCallState) -> Reply:
    assert state.outcome is not None
    result: Reply = state.outcome.result()
    return result
