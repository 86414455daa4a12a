"""What a conditional request costs: ours against bare aiohttp (the floor) and httpx's own pool (the peer), in one run.

    python benchmarks/fetch.py [--requests 6000] [--hosts 500] [--at-once 100]

A server in a process of its own answers 304 on every loopback address of 127.0.0.0/8. Printed are requests a second
and CPU milliseconds a request of the client process, and the ratios to the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

import aiohttp
import httpx

from monitor.core.http import Validators
from monitor.fetch import Fetcher, FetchPolicy

ANSWER = b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: max-age=60\r\n\r\n'


class Server(asyncio.Protocol):
    """Answers 304 to whatever comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(ANSWER * data.count(b"\r\n\r\n"))  # type: ignore[attr-defined]


def serve(pipe: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "0.0.0.0", 0, backlog=4096)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def drive(urls: list[str], at_once: int, get: Callable[[str], Awaitable[int | None]]) -> tuple[float, float]:
    """(requests a second, CPU milliseconds a request) of fetching `urls`."""
    gate = asyncio.Semaphore(at_once)

    async def one(url: str) -> None:
        async with gate:
            assert await get(url) == 304

    began, spent = time.perf_counter(), cpu()
    await asyncio.gather(*(one(url) for url in urls))
    return len(urls) / (time.perf_counter() - began), (cpu() - spent) / len(urls) * 1000


async def ours(urls: list[str], at_once: int) -> tuple[float, float]:
    async with Fetcher(FetchPolicy("bench/1", allow_private_networks=True, total=at_once, per_host=4)) as fetcher:

        async def get(url: str) -> int | None:
            return (await fetcher.get(url, validators=Validators(url, '"a"'))).status

        return await drive(urls, at_once, get)


async def floor(urls: list[str], at_once: int) -> tuple[float, float]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def get(url: str) -> int | None:
            async with session.get(url, headers={"If-None-Match": '"a"'}) as response:
                await response.read()
                return response.status

        return await drive(urls, at_once, get)


async def peer(urls: list[str], at_once: int) -> tuple[float, float]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:

        async def get(url: str) -> int | None:
            return (await client.get(url, headers={"If-None-Match": '"a"'})).status_code

        return await drive(urls, at_once, get)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=100)
    options = parser.parse_args()
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = mine.recv()
    hosts = [f"127.0.{n // 250 + 1}.{n % 250 + 1}" for n in range(options.hosts)]
    urls = [f"http://{hosts[n % len(hosts)]}:{port}/feed{n}.xml" for n in range(options.requests)]
    try:
        results = {"bare aiohttp": asyncio.run(floor(urls, options.at_once))}
        results["ours"] = asyncio.run(ours(urls, options.at_once))
        few = urls[: max(200, options.requests // 10)]
        results["httpx's own pool"] = asyncio.run(peer(few, options.at_once))
    finally:
        server.kill()
        server.join()
    base = results["bare aiohttp"]
    for name, (rate, cost) in results.items():
        print(f"{name:<18} {rate:8.0f}/s {cost:6.2f} ms CPU  {rate / base[0]:5.2f} x rate {cost / base[1]:5.2f} x CPU")


if __name__ == "__main__":
    main()
