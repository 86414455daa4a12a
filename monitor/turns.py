"""Whose turn it is: how many requests go out at once, to one host and over all, and how far apart."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

_SWEEP_AT = 1024


@dataclass(slots=True)
class _Host:
    """Who is at one host, who waits for it (each with the most that may be there with it), and when it may start."""

    active: int = 0
    next_at: float = 0.0
    waiting: deque[tuple[asyncio.Future[None], int]] = field(default_factory=deque)
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)


class Turns:
    """Places at hosts, and `total` places over all. First come, first served at each host."""

    def __init__(self, total: int) -> None:
        self._hosts: dict[str, _Host] = {}
        self._total = asyncio.Semaphore(total)
        self._sweep_at = _SWEEP_AT

    def __len__(self) -> int:
        """How many hosts are remembered."""
        return len(self._hosts)

    async def take(self, name: str, at_once: int, delay: float) -> None:
        """Wait for a place at the host `name`, then for one of all; `leave` gives both back.

        At most `at_once` are at the host together, their starts at least `delay` seconds apart. Whoever waits for a
        slow host holds no place of all.
        """
        host = self._hosts.get(name) or self._add(name)
        if host.active < at_once and not host.waiting:
            host.active += 1
        else:
            await self._queue(name, host, at_once)
        try:
            if delay or host.next_at:
                await self._start(host, delay)
            else:
                await self._total.acquire()
        except BaseException:
            self._give_up(name, host)
            raise

    def leave(self, name: str) -> None:
        """Give back what `take` took."""
        self._total.release()
        self._give_up(name, self._hosts[name])

    async def _queue(self, name: str, host: _Host, at_once: int) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        host.waiting.append((place, at_once))
        try:
            await place  # whoever leaves hands the place over: no newcomer slips in between
        except asyncio.CancelledError:
            if not place.cancelled():
                self._give_up(name, host)
            raise

    async def _start(self, host: _Host, delay: float) -> None:
        # One at a time, and the clock is read after the wait for a place of all: that wait may be long, and two that
        # sat in it must not start together.
        loop = asyncio.get_running_loop()
        async with host.gate:
            while (wait := host.next_at - loop.time()) > 0:  # noqa: ASYNC110 - what is awaited is a time
                await asyncio.sleep(wait)
            await self._total.acquire()
            host.next_at = loop.time() + delay

    def _give_up(self, name: str, host: _Host) -> None:
        host.active -= 1
        while host.waiting and (host.waiting[0][0].done() or host.active < host.waiting[0][1]):
            place, _ = host.waiting.popleft()
            if not place.done():
                host.active += 1
                place.set_result(None)
        if not host.active and not host.waiting and host.next_at <= asyncio.get_running_loop().time():
            self._hosts.pop(name, None)

    def _add(self, name: str) -> _Host:
        if len(self._hosts) >= self._sweep_at:
            now = asyncio.get_running_loop().time()
            rested = [n for n, h in self._hosts.items() if not h.active and not h.waiting and h.next_at <= now]
            for gone in rested:
                del self._hosts[gone]
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._hosts))
        host = self._hosts[name] = _Host()
        return host
