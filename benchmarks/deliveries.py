"""Deliveries a second out of a full outbox, to loopback webhooks, against a bare client in the same run.

    python benchmarks/deliveries.py [--events 100000] [--sites 50] [--batch 1] [--profile FILE]

An outbox with that many signed deliveries queued is drained by the real deliverer, store included, into a server in a
process of its own. The floor: bare aiohttp posting the same bodies, as many at a time as an endpoint may have. Then the
same deliveries spread over ten endpoints of which one takes every request and never answers: the rate of the nine, and
what is left for the tenth. CPU is user and system time of the measuring process alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import logging
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
from pydantic import SecretStr
from sqlalchemy import Connection as StoreConnection
from sqlalchemy import func, select

from monitor.config import WebhookAlert
from monitor.core.reconcile import Draft
from monitor.deliver.outbox import Deliverer
from monitor.deliver.webhook import WebhookSink
from monitor.fetch import Fetcher, FetchPolicy
from monitor.store import events as event_store
from monitor.store.database import Database
from monitor.store.events import Route
from monitor.store.schema import delivery

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
POLICY = FetchPolicy("benchmark/1", allow_private_networks=True)
ENDPOINTS = 10


class Server(asyncio.Protocol):
    """Just enough HTTP/1.1 to take a POST, cheaply: 204, or for `/hang` no answer at all."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while True:
            head, found, rest = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(rest) < length:
                return
            self._data = rest[length:]
            if not head.startswith(b"POST /hang"):
                self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def serve(ready: Connection) -> None:
    """Serve until killed; tells its port."""

    async def live() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=2048)
        ready.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(live())


@dataclass(frozen=True)
class Figure:
    """What a stretch of work cost."""

    done: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.done / self.seconds

    def __str__(self) -> str:
        return f"{self.rate:8.0f}/s  {1000 * self.cpu / self.done:6.3f} ms CPU each"


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fill(db: Database, events: int, sites: int, names: list[str]) -> None:
    """Queue `events` deliveries: one an event, to the endpoints in turn, of `sites` sites."""
    chance = random.Random(1)

    def add(connection: StoreConnection, start: int, count: int) -> None:
        for number in range(start, start + count):
            site = f"site{chance.randrange(sites)}"
            route = Route(names[number % len(names)], lambda _event: True)
            url = f"https://{site}.example/news/2026/12/a-headline-of-usual-length-{number}"
            entry = {"id": url, "title": f"A headline of usual length, number {number}", "summary": "Some words. " * 20}
            data = {"site": site, "url": url, "observed_url": url, "entry": entry, "delay_seconds": 61.0}
            event_store.add_events(connection, site, [Draft("url.new", url, data)], [route], time.time())

    for start in range(0, events, 1000):
        db.call(partial(add, start=start, count=min(1000, events - start)))


def left(db: Database, name: str | None = None) -> int:
    query = select(func.count()).select_from(delivery)
    if name is not None:
        query = query.where(delivery.c.endpoint == name)
    return db.call(lambda c: c.scalar(query)) or 0


async def drain(db: Database, port: int, names: list[str], batch: int, until: Callable[[], int]) -> Figure:
    """Run the deliverer as the daemon does until `until()` deliveries are left, which is 0."""
    async with Fetcher(POLICY) as fetcher:
        deliverer = Deliverer(db, time.time)
        base, secrets = f"http://127.0.0.1:{port}", (SecretStr(SECRET),)
        alerts = [WebhookAlert(name=name, url=f"{base}/{name}", secrets=secrets, batch=batch) for name in names]
        deliverer.use([WebhookSink(alert, fetcher, POLICY) for alert in alerts])
        before = until()
        began, used = time.perf_counter(), cpu()
        running = asyncio.create_task(deliverer.run())
        while await asyncio.to_thread(until):
            await asyncio.sleep(0.1)
        figure = Figure(before, time.perf_counter() - began, cpu() - used)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        return figure


async def floor(port: int, count: int, at_once: int, body: bytes) -> Figure:
    """Bare aiohttp: the same requests, nothing stored, nothing signed."""
    headers = {"content-type": "application/cloudevents+json", "webhook-id": "x", "webhook-signature": "v1," + "x" * 44}
    todo = iter(range(count))
    async with aiohttp.ClientSession() as session:

        async def work() -> None:
            for _ in todo:
                async with session.post(f"http://127.0.0.1:{port}/good", data=body, headers=headers) as answer:
                    await answer.read()

        began, used = time.perf_counter(), cpu()
        await asyncio.gather(*(work() for _ in range(at_once)))
        return Figure(count, time.perf_counter() - began, cpu() - used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sites", type=int, default=50)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    with tempfile.TemporaryDirectory() as folder:
        with Database(f"sqlite:///{folder}/one.db") as db:
            fill(db, options.events, options.sites, ["good"])
            [first] = db.call(lambda c: event_store.pending_deliveries(c, time.time(), ["good"], 1))
            bare = asyncio.run(floor(port, min(options.events, 20_000), WebhookSink.at_once, first.body.encode()))
            print(f"bare client, {WebhookSink.at_once} at a time    {bare}")
            profile = cProfile.Profile() if options.profile else None
            if profile:
                profile.enable()
            one = asyncio.run(drain(db, port, ["good"], options.batch, lambda: left(db)))
            if profile:
                profile.disable()
                profile.dump_stats(options.profile)
            print(f"one endpoint                 {one}   {one.rate / bare.rate:.2f} of the floor")
        with Database(f"sqlite:///{folder}/ten.db") as db:
            names = [f"good{n}" for n in range(ENDPOINTS - 1)] + ["hang"]
            fill(db, options.events, options.sites, names)
            nine = asyncio.run(drain(db, port, names, options.batch, lambda: left(db) - left(db, "hang")))
            print(f"nine of ten, the tenth hangs {nine}   {nine.rate / one.rate:.2f} of one endpoint's rate")
            print(f"left for the tenth           {left(db, 'hang'):,} of {options.events // ENDPOINTS:,}")
    server.kill()
    if one.rate < 1000 or nine.rate < 0.9 * one.rate:
        sys.exit(1)


if __name__ == "__main__":
    main()
