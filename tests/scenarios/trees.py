"""A loopback site of sitemaps whose every answer a test sets, and a monitor of it."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection

from monitor.commands.daemon import fetch_policy
from monitor.config import Changes, Config, Poll, Settings, SitemapSettings, StdoutAlert, minimal
from monitor.engine import Engine, Pass
from monitor.fetch import Fetcher
from monitor.store.database import Database, Work
from tests.scenarios.watch import shared_pool

T = TypeVar("T")
START = 1_796_115_600.0


@dataclass(slots=True)
class Answer:
    """What is sent for a path. `missing`: bytes that the header promises and the body lacks."""

    body: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0


def urlset(*rows: str | tuple[str, str]) -> str:
    """A sitemap of paths, or of (path, lastmod)."""
    pairs = [row if isinstance(row, tuple) else (row, "") for row in rows]
    text = "".join(
        f"<url><loc>{{site}}{path}</loc>{f'<lastmod>{lastmod}</lastmod>' if lastmod else ''}</url>"
        for path, lastmod in pairs
    )
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{text}</urlset>'


def index(*rows: str | tuple[str, str]) -> str:
    """An index of paths, or of (path, lastmod)."""
    return urlset(*rows).replace("urlset", "sitemapindex").replace("<url>", "<sitemap>").replace("</url>", "</sitemap>")


class Site:
    """Answers by path, and a monitor of the site at its own time."""

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()
        self.agents: dict[str, str] = {}
        self.url = ""
        self.now = START
        self.proxy: str | None = None
        self.last = Pass()
        self.options: dict[str, Any] = {"sitemaps": ["/index.xml"], "feeds": [], "news_sitemaps": []}
        self._database = folder / "monitor.db"

    def show(self, path: str, body: str, **more: Any) -> None:
        """Answer so at `path` from now on."""
        self.answers[path] = Answer(body, **more)

    def config(self) -> Config:
        """The configuration in force: `options` are those of the site."""
        settings = Settings(allow_private_networks=True, proxy=self.proxy, poll=Poll(min=60), sitemap=SitemapSettings())
        config = minimal(
            [self.url], database=f"sqlite:///{self._database}", settings=settings, alerts=[StdoutAlert(format="jsonl")]
        )
        options = dict(self.options)
        for name in ("feeds", "sitemaps", "news_sitemaps"):
            if options[name] is not None:
                options[name] = tuple(f"{self.url}{path}" for path in options[name])
        options.setdefault("changes", Changes(verify="never"))
        return replace(config, sites=(replace(config.sites[0], **options),))

    def once(self, *, everything: bool = True, advance: float = 6 * 3600.0) -> list[tuple[str, str]]:
        """One pass after `advance` seconds: (type, path) of each event told."""
        self.now += advance
        self.asked.clear()
        return [(e["type"], e["subject"].removeprefix(self.url)) for e in asyncio.run(self._once(everything))]

    async def _once(self, everything: bool) -> list[dict[str, Any]]:
        config, out = self.config(), io.StringIO()
        with Database(config.database) as db:
            async with Fetcher(fetch_policy(config)) as fetcher:
                engine = Engine(config, db, fetcher, shared_pool(), clock=lambda: self.now, stream=out)
                await engine.use(config)
                self.last = await engine.once(everything=everything)
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def look(self, work: Work[T]) -> T:
        """Read the database."""
        with Database(self.config().database, exclusive=False) as db:
            return db.call(work)

    def count(self, table: str) -> int:
        """Rows of a table."""

        def rows(connection: Connection) -> int:
            return int(connection.exec_driver_sql(f"select count(*) from {table}").scalar_one())

        return self.look(rows)


def pages(told: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The events about pages."""
    return sorted(event for event in told if event[0].startswith("url."))


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A site that is served while the context lasts."""
    made = Site(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            path = self.path.removeprefix(made.url)  # a proxy is asked for whole addresses
            made.asked[path] += 1
            answer = made.answers.get(path, Answer("nothing here", 404))
            made.agents[path] = self.headers["user-agent"]
            body = answer.body.replace("{site}", made.url).encode()
            tag = f'"{sha256(body).hexdigest()[:32]}"'
            same = answer.status == 200 and not answer.missing and self.headers.get("if-none-match") == tag
            self.send_response(304 if same else answer.status)
            self.send_header("etag", tag)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if not same:
                self.send_header("content-length", str(len(body) + answer.missing))
            self.close_connection = bool(answer.missing)
            self.end_headers()
            self.wfile.write(b"" if same else body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
