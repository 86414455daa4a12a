"""A sitemap index of a million URLs: read, stored, read again; in times of a plain reader, measured in the same run.

    python benchmarks/sitemaps.py [--files 20] [--rows 50000] [--latency 50] [--rounds 3]

A server in a process of its own serves an index of gzipped files after `latency` milliseconds each, with entity tags.
The reference: aiohttp, four fetches at a time, a pool of four processes, ElementTree's fromstring and findtext, tuples
returned. `monitor run --once` runs as the engine does, on a SQLite file, with the start of the interpreter and of its
workers left out. Each figure is the best of `rounds`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import multiprocessing
import os
import resource
import sqlite3
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from xml.etree import ElementTree

import aiohttp

from monitor.commands.daemon import fetch_policy, spare_collector
from monitor.config import Changes, Concurrency, Config, Settings, StdoutAlert, minimal
from monitor.core.identity import page_id
from monitor.engine import Engine
from monitor.fetch import Fetcher, FetchPolicy
from monitor.parse_pool import ParsePool
from monitor.read_tree import read_sitemaps
from monitor.store import listings as listing_store
from monitor.store.database import Database

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def sitemap(site: str, number: int, rows: int, edited: bool) -> bytes:
    """One file of the tree, gzipped; `edited`: every twentieth row has another lastmod, and one row is another."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="', NAMESPACE, '">\n']
    for row in range(rows):
        slug = f"{(row * 2654435761 + number * 97) % 2**32:08x}{'-new' if edited and row == rows - 1 else ''}"
        day = 1 + (row % 28)
        hour = 23 if edited and row % 20 == 0 else row % 22
        parts.append(
            f"<url><loc>{site}/news/{number:02}/{slug}-{row}</loc>"
            f"<lastmod>2024-{1 + row % 12:02}-{day:02}T{hour:02}:{row % 60:02}:00+00:00</lastmod></url>\n"
        )
    return gzip.compress("".join([*parts, "</urlset>\n"]).encode(), 6, mtime=0)


def serve(pipe: Connection, files: int, rows: int, latency: float) -> None:
    """Serve the tree until told to stop; ``edit`` on the pipe turns to the edited files."""
    state = {"edited": False}
    bodies: dict[bool, dict[str, bytes]] = {False: {}, True: {}}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            time.sleep(latency)
            body = bodies[state["edited"]].get(self.path)
            tag = f'"{self.path}-{state["edited"]}"'
            status = 404 if body is None else 304 if self.headers.get("if-none-match") == tag else 200
            sent = body if status == 200 and body is not None else b""
            self.send_response(status)
            self.send_header("etag", tag)
            if status != 304:
                self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = f"http://127.0.0.1:{server.server_address[1]}"
    index = "".join(f"<sitemap><loc>{site}/s{n}.xml.gz</loc></sitemap>" for n in range(files))
    for edited, known in bodies.items():
        known["/index.xml"] = f'<sitemapindex xmlns="{NAMESPACE}">{index}</sitemapindex>'.encode()
        for n in range(files):
            known[f"/s{n}.xml.gz"] = sitemap(site, n, rows, edited)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(site)
    while (order := pipe.recv()) != "stop":
        state["edited"] = order == "edit"
        pipe.send("done")


def parse(data: bytes) -> list[tuple[str | None, str | None]]:
    """The reference's worker."""
    root = ElementTree.fromstring(gzip.decompress(data))
    return [(u.findtext(f"{{{NAMESPACE}}}loc"), u.findtext(f"{{{NAMESPACE}}}lastmod")) for u in root]


async def reference(site: str, pool: ProcessPoolExecutor) -> int:
    """Read the tree in the usual way."""
    gate = asyncio.Semaphore(4)
    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession() as session:

        async def get(url: str) -> bytes:
            async with gate, session.get(url) as answer:
                return await answer.read()

        async def one(url: str) -> int:
            return len(await loop.run_in_executor(pool, parse, await get(url)))

        root = ElementTree.fromstring(await get(f"{site}/index.xml"))
        return sum(await asyncio.gather(*(one(loc.text or "") for loc in root.iter(f"{{{NAMESPACE}}}loc"))))


async def unstored(site: str) -> int:
    """The library's reader."""
    policy = FetchPolicy("benchmark/1.0", allow_private_networks=True, per_host=4)
    return sum([len(file.rows) async for file in read_sitemaps(f"{site}/index.xml", policy=policy)])


def config(site: str, path: Path) -> Config:
    settings = Settings(allow_private_networks=True, concurrency=Concurrency(per_host=4))
    made = minimal([site], database=f"sqlite:///{path}", settings=settings, alerts=[StdoutAlert(format="jsonl")])
    one = replace(
        made.sites[0],
        feeds=(),
        sitemaps=(f"{site}/index.xml",),
        news_sitemaps=(),
        changes=Changes(verify="never"),
    )
    return replace(made, sites=(one,))


class Lag:
    """The longest that the event loop kept others waiting."""

    def __init__(self) -> None:
        self.most = 0.0

    async def watch(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.most = max(self.most, time.perf_counter() - before - 0.001)


async def stored(site: str, path: Path, pool: ParsePool, lag: Lag, now: float) -> None:
    """One pass of `run --once --all` on a database."""
    made = config(site, path)
    with Database(made.database) as db:
        async with Fetcher(fetch_policy(made)) as fetcher:
            with Path(os.devnull).open("w") as out:
                engine = Engine(made, db, fetcher, pool, clock=lambda: now, stream=out)
                await engine.use(made)
                spare_collector()
                watching = asyncio.create_task(lag.watch())
                done = await engine.once(everything=True)
                watching.cancel()
    assert not done.problems, done.problems


def timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    asyncio.run(work())  # type: ignore[arg-type]
    return time.perf_counter() - began


def membership(path: Path, site: str, rows: int) -> float:
    """Seconds to find the documents that list one page, the database warm."""
    with Database(f"sqlite:///{path}") as db:
        keys = [f"{site}/news/07/{(n * 2654435761 + 7 * 97) % 2**32:08x}-{n}" for n in range(0, rows, rows // 200)]
        ids = [page_id(key) for key in keys]
        assert all(db.call(lambda c: listing_store.listing_documents(c, 1, [ids[0]])).values())

        def look(connection: object) -> float:
            began = time.perf_counter()
            for number in ids:
                assert listing_store.listing_documents(connection, 1, [number])  # type: ignore[arg-type]
            return (time.perf_counter() - began) / len(ids)

        return min(db.call(look) for _ in range(3))


def own_rss() -> float:
    """MiB of this process, at their peak."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def children_rss() -> float:
    """MiB of all living processes below this one that run the monitor's parsers."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            line = (status.parent / "cmdline").read_text()
        except OSError:
            continue
        if "parse_pool" in line:
            total += int(fields.get("VmHWM", "0 kB").split()[0]) / 1024
    return total


def stored_rounds(site: str, pipe: Connection, folder: Path, rounds: int) -> tuple[dict[str, float], Lag, Path]:
    best: dict[str, float] = {}
    lag = Lag()
    path = folder / "0.db"
    with ParsePool() as pool:
        asyncio.run(pool.sitemap(b"<urlset/>", "http://e.example/"))  # its start is not what is measured
        for number in range(rounds):
            path = folder / f"{number}.db"
            for name, order in (("cold, stored", "new"), ("304 everywhere", ""), ("5 % changed", "edit")):
                if order:
                    pipe.send(order)
                    pipe.recv()
                now = time.time() + {"cold, stored": 0, "304 everywhere": 30_000, "5 % changed": 60_000}[name]
                taken = timed(lambda now=now, path=path: stored(site, path, pool, lag, now))  # type: ignore[misc]
                best[name] = min(best.get(name, taken), taken)
        print(f"memory at its peak: {own_rss():.0f} MiB here, {own_rss() + children_rss():.0f} MiB with the workers")
    return best, lag, path


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=int, default=20)
    options.add_argument("--rows", type=int, default=50_000)
    options.add_argument("--latency", type=float, default=50.0, help="milliseconds a request")
    options.add_argument("--rounds", type=int, default=3)
    args = options.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(there, args.files, args.rows, args.latency / 1000), daemon=True
    )
    server.start()
    site = here.recv()
    with tempfile.TemporaryDirectory() as name:
        best, lag, path = stored_rounds(site, here, Path(name), args.rounds)
        here.send("new")
        here.recv()
        looked = membership(path, site, args.rows)
        with sqlite3.connect(path) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
        size = path.stat().st_size / args.files / args.rows
        best["cold, nothing stored"] = min(timed(lambda: unstored(site)) for _ in range(args.rounds))
        with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(parse, [gzip.compress(b"<urlset/>")] * 8))
            whole = min(timed(lambda: reference(site, pool)) for _ in range(args.rounds))
    print(f"reference (aiohttp, four processes, ElementTree): {whole:.2f} s for {args.files * args.rows:,} URLs")
    for name, aim in {
        "cold, nothing stored": 0.5,
        "cold, stored": 0.7,
        "5 % changed": 0.7,
        "304 everywhere": 0.25,
    }.items():
        print(f"{name:22} {best[name]:6.2f} s  ratio {best[name] / whole:5.2f}  (aim {aim})")
    print(f"largest lag of the event loop {1000 * lag.most:.0f} ms (aim 20)")
    print(f"database {size:.1f} bytes a URL (aim 20); membership of one page {1000 * looked:.2f} ms (aim 1)")
    here.send("stop")
    server.join(5)


if __name__ == "__main__":
    main()
