"""Polls a second and CPU a poll of the real engine, in the steady state: feeds that answer 304, store included.

    python benchmarks/polls.py [--feeds 3000] [--hosts 600] [--seconds 20] [--profile FILE]

A server in a process of its own serves the feeds on loopback hosts 127.0.x.y. The engine runs as the daemon does, on a
SQLite file, with every feed due again after a second, which is more than can be done. The floor, measured in the same
run against the same server: bare aiohttp requests with If-None-Match, as many at a time. CPU is user and system time of
the measuring process alone; parse workers have nothing to do.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import logging
import multiprocessing
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import aiohttp

from monitor.commands.daemon import fetch_policy
from monitor.config import Concurrency, Config, Poll, Settings, Site, WebhookAlert, minimal
from monitor.engine import Engine
from monitor.fetch import Fetcher
from monitor.parse_pool import ParsePool
from monitor.store.database import Database

AT_ONCE = 100
ETAG = b'"5f1c-0"'


class Answered(Protocol):
    """A counter that two processes share."""

    value: int


@dataclass(frozen=True)
class Figure:
    """What a stretch of work cost."""

    polls: int
    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.polls / self.seconds:7.0f}/s  {1000 * self.cpu / self.polls:6.3f} ms CPU each"


def feed_body(path: str) -> bytes:
    """A feed of 20 entries."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{path}-{n}</guid><title>Headline number {n}</title>"
        f"<link>http://127.0.0.1/news{path}/{n}</link><pubDate>Tue, 01 Dec 2026 {n:02}:00:00 GMT</pubDate>"
        f"<description>{'Some words of a story. ' * 10}</description></item>"
        for n in range(20)
    )
    return f"<rss version='2.0'><channel><title>{path}</title>{items}</channel></rss>".encode()


class Server(asyncio.Protocol):
    """Just enough HTTP/1.1 to answer a GET, cheaply: 304 to any If-None-Match, else a feed."""

    count: Answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            if b"if-none-match" in head.lower():
                self.count.value += 1
                self._transport.write(b"HTTP/1.1 304 Not Modified\r\nETag: " + ETAG + b"\r\n\r\n")
                continue
            body = feed_body(head.split(b" ", 2)[1].decode())
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nETag: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (ETAG, len(body), body)
            )


def serve(ready: Connection, count: Answered) -> None:
    """Serve on all loopback addresses until killed; tells its port, counts its answers of 304."""
    Server.count = count

    async def live() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "0.0.0.0", 0, backlog=2048)
        ready.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(live())


def addresses(port: int, feeds: int, hosts: int) -> list[str]:
    """URLs of feeds, spread evenly over loopback hosts."""
    names = [f"127.0.{1 + n // 250}.{1 + n % 250}" for n in range(hosts)]
    return [f"http://{names[n % hosts]}:{port}/feed-{n}.xml" for n in range(feeds)]


def configuration(urls: list[str], database: str) -> Config:
    """One site a host, each with its feeds; no alert takes an event, so that nothing is delivered."""
    settings = Settings(
        allow_private_networks=True, concurrency=Concurrency(total=AT_ONCE, per_host=2), poll=Poll(min=1.0, max=1.0)
    )
    by_host: dict[str, list[str]] = {}
    for url in urls:
        by_host.setdefault(url.rpartition("/")[0] + "/", []).append(url)
    quiet = WebhookAlert(name="none", url="http://127.0.0.1:9/", secrets=(), events=("source.gone",), sites=("*",))
    config = minimal(list(by_host), database=database, settings=settings, alerts=[quiet])
    sites: list[Site] = [replace(site, feeds=tuple(by_host[site.url]), sitemaps=()) for site in config.sites]
    return replace(config, sites=tuple(sites))


def cpu() -> float:
    """User and system seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def floor(urls: list[str], rounds: int) -> Figure:
    """Bare aiohttp: a conditional GET of each URL, `AT_ONCE` at a time."""
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=20)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        queue = iter(urls * rounds)
        spent = 0

        async def work() -> None:
            nonlocal spent
            for url in queue:
                async with session.get(url, headers={"If-None-Match": ETAG.decode()}) as response:
                    await response.read()
                    assert response.status == 304
                spent += 1

        began, used = time.perf_counter(), cpu()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return Figure(spent, time.perf_counter() - began, cpu() - used)


async def engine_polls(
    urls: list[str], folder: Path, seconds: float, profile: str | None, answered: Answered
) -> Figure:
    """The daemon's own loop on feeds that are due more often than they can be polled."""
    config = configuration(urls, f"sqlite:///{folder}/polls.db")
    with Database(config.database) as db:
        async with Fetcher(fetch_policy(config)) as fetcher:
            with ParsePool() as pool:
                engine = Engine(config, db, fetcher, pool, clock=time.time)
                await engine.use(config)
                first = await engine.once(everything=True)
                assert not first.problems, first.problems[:3]
                print(f"baseline: {first.polled} feeds read", file=sys.stderr)
        with ParsePool() as pool:
            # Another fetcher, as after a restart: connections are made anew within the measured time.
            async with Fetcher(fetch_policy(config)) as fetcher:
                engine = Engine(config, db, fetcher, pool, clock=time.time)
                await engine.use(config)
                stop = asyncio.Event()
                asyncio.get_running_loop().call_later(seconds, stop.set)
                profiler = cProfile.Profile(time.thread_time) if profile else None
                began, used, before = time.perf_counter(), cpu(), answered.value
                if profiler:
                    profiler.enable()
                await engine.forever(stop)
                if profiler and profile:
                    profiler.disable()
                    profiler.dump_stats(profile)
                took, spent = time.perf_counter() - began, cpu() - used
                return Figure(answered.value - before, took, spent)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feeds", type=int, default=3000)
    parser.add_argument("--hosts", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--profile", help="write a cProfile of the engine to this file")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    ready, tells = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    answered: Answered = context.Value("q", 0, lock=False)
    server = context.Process(target=serve, args=(tells, answered), daemon=True)
    server.start()
    urls = addresses(ready.recv(), options.feeds, options.hosts)
    try:
        bare = asyncio.run(floor(urls, 3))
        with tempfile.TemporaryDirectory() as folder:
            ours = asyncio.run(engine_polls(urls, Path(folder), options.seconds, options.profile, answered))
    finally:
        server.kill()
    print(f"{options.feeds} feeds on {options.hosts} hosts, {AT_ONCE} requests at a time, all answered 304")
    print(f"bare aiohttp  {bare}")
    print(f"the engine    {ours}")
    print(f"ratios        {ours.cpu / ours.polls / (bare.cpu / bare.polls):.1f} times the floor's CPU, ", end="")
    print(f"{ours.polls / ours.seconds / (bare.polls / bare.seconds):.2f} of its polls a second")


if __name__ == "__main__":
    main()
