"""Replays captured documents, version by version, through the whole of the monitor.

A `Stage` serves on loopback what was captured, the clock stands at the time of the capture, and nothing else is asked.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from monitor.commands.daemon import fetch_policy
from monitor.config import Config, Poll, Settings, Site, StdoutAlert, minimal
from monitor.config_values import Changes
from monitor.engine import Engine
from monitor.fetch import Fetcher
from monitor.parse_pool import ParsePool
from monitor.store.database import Database
from tests.corpus import members

_NAME = re.compile(r"(?:(?P<document>[^/]+)/)?\d{4}-(?P<time>\d{8}T\d{6}Z)\.(?:xml|json)$")
_CHILD = re.compile(rb"(<loc>\s*)https?://[^/<\s]+", re.I)
RESTART = 25
"""The monitor is stopped and started again on its database after so many versions."""


@dataclass(frozen=True, slots=True)
class Version:
    """A document as it was captured at a time."""

    document: str
    at: datetime
    body: bytes


@dataclass(slots=True)
class Told:
    """What the monitor printed after one version, and what it had to complain of."""

    at: datetime
    events: list[dict[str, Any]]
    problems: list[str]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == kind]


def versions(series: str) -> list[Version]:
    """All versions of a series of the corpus, oldest first."""
    found = []
    for name, body in members(f"series/{series}.tar.xz"):
        match = _NAME.search(name.removeprefix("./").removeprefix(f"{series}/"))
        if match:
            at = datetime.strptime(match["time"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            found.append((at, name, Version(match["document"] or series, at, body)))
    return [version for _at, _name, version in sorted(found, key=lambda item: item[:2])]


def moments(captured: Iterable[Version]) -> list[tuple[datetime, dict[str, bytes]]]:
    """What changed at each time at which anything was captured, oldest first."""
    found: dict[datetime, dict[str, bytes]] = {}
    for version in captured:
        found.setdefault(version.at, {})[version.document] = version.body
    return sorted(found.items())


def sampled(
    steps: Sequence[tuple[datetime, dict[str, bytes]]], most: int | None
) -> list[tuple[datetime, dict[str, bytes]]]:
    """At most `most` of the moments, evenly, in runs of three (a flap shows only in a row); the first and the last.

    What was captured between two of them is as it was at the later one.
    """
    if most is None or len(steps) <= most:
        return list(steps)
    runs = max(1, most // 3)
    chosen = {0, len(steps) - 1}
    for run in range(runs):
        start = run * (len(steps) - 3) // max(1, runs - 1)
        chosen.update(range(start, min(start + 3, len(steps))))
    kept = []
    pending: dict[str, bytes] = {}
    for number, (at, bodies) in enumerate(steps):
        pending |= bodies
        if number in chosen:
            kept.append((at, pending))
            pending = {}
    return kept


class Stage:
    """A loopback server that shows each path the bytes put there, with an entity tag that tells them apart."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.url = ""

    def show(self, path: str, body: bytes) -> None:
        """Show `body` at `path` from now on."""
        self.bodies[path] = body

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request as a plain file server does (RFC 9110, 13.1.2)."""
        self.asked[handler.path] += 1
        body = self.bodies.get(handler.path)
        tag = f'"{sha256(body or b"").hexdigest()[:32]}"'
        status = 404 if body is None else 304 if handler.headers.get("if-none-match") == tag else 200
        handler.send_response(status)
        handler.send_header("etag", tag)
        handler.send_header("content-type", "application/json" if handler.path.endswith("json") else "application/xml")
        sent = body if status == 200 and body is not None else b""
        if status != 304:
            handler.send_header("content-length", str(len(sent)))
        handler.end_headers()
        handler.wfile.write(sent)


@contextmanager
def staged() -> Iterator[Stage]:
    """A stage that is served while the context lasts."""
    stage = Stage()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            stage.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stage.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield stage
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def at_home(body: bytes, url: str) -> bytes:
    """An index with its children on the stage at `url`; any other document as it is."""
    if b"<sitemapindex" not in body:
        return body
    return _CHILD.sub(rb"\1" + url.encode(), body)


@dataclass(slots=True)
class Replay:
    """A monitor of one site on a stage. `paths` say where each document of the series is shown.

    No page is ever asked (`verify` is never): the rows are of real hosts.
    """

    stage: Stage
    database: Path
    pool: ParsePool
    paths: Mapping[str, str]
    feeds: Sequence[str] = ()
    sitemaps: Sequence[str] = ()
    hosts: frozenset[str] = frozenset()
    told: list[Told] = field(default_factory=list)
    now: float = 0.0

    def config(self) -> Config:
        """A site whose sources are the documents shown."""
        settings = Settings(allow_private_networks=True, poll=Poll(min=60))
        config = minimal(
            [self.stage.url],
            database=f"sqlite:///{self.database}",
            settings=settings,
            alerts=[StdoutAlert(format="jsonl")],
        )
        site: Site = replace(
            config.sites[0],
            hosts=tuple(sorted(self.hosts)),
            feeds=tuple(self.stage.url + self.paths[name] for name in self.feeds),
            sitemaps=tuple(self.stage.url + self.paths[name] for name in self.sitemaps),
            news_sitemaps=(),
            changes=Changes(verify="never"),
        )
        return replace(config, sites=(site,))

    def play(self, steps: Sequence[tuple[datetime, Mapping[str, bytes]]]) -> list[Told]:
        """One pass of `run --once --all` after each step, at its time; returns what each pass told."""
        asyncio.run(self._play(steps))
        return self.told

    async def _play(self, steps: Sequence[tuple[datetime, Mapping[str, bytes]]]) -> None:
        config = self.config()
        for start in range(0, len(steps), RESTART):
            out = io.StringIO()
            with Database(config.database) as db:
                async with Fetcher(fetch_policy(config)) as fetcher:
                    engine = Engine(config, db, fetcher, self.pool, clock=lambda: self.now, stream=out)
                    await engine.use(config)
                    for at, bodies in steps[start : start + RESTART]:
                        for name, body in bodies.items():
                            self.stage.show(self.paths[name], at_home(body, self.stage.url))
                        self.now = at.timestamp()
                        done = await engine.once(everything=True)
                        lines = out.getvalue().splitlines()
                        out.seek(0)
                        out.truncate()
                        self.told.append(Told(at, [json.loads(line) for line in lines], done.problems))
