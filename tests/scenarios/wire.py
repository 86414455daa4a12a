"""The engine on a scripted server and a clock of the test's own, for what a server may say of a feed."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from monitor.commands.daemon import fetch_policy
from monitor.config import Config, Poll, Settings, StdoutAlert, minimal
from monitor.engine import Engine, Pass
from monitor.fetch import Fetcher
from monitor.store.database import Database
from monitor.store.sources import DocumentRow, SourceRow, all_sources, root_documents
from tests.scenarios.watch import shared_pool
from tests.servers import Handler, Server, serving

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


def item(number: int, *, title: str = "", hours: float | None = None, host: str = "h.example") -> str:
    """An entry `number`, published `hours` after the start of the clock's day (as many as its number, if not said)."""
    date = NOW - timedelta(days=5) + timedelta(hours=number if hours is None else hours)
    return (
        f"<item><guid isPermaLink='false'>g{number}</guid><title>{title or f'Headline number {number}'}</title>"
        f"<link>https://{host}/news/{number}</link><pubDate>{date:%a, %d %b %Y %H:%M:%S} GMT</pubDate></item>"
    )


def rss(numbers: Sequence[int], head: str = "") -> bytes:
    """A feed of these entries, in this order."""
    items = "".join(map(item, numbers))
    return (
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>News</title>'
        f"<link>https://h.example/</link>{head}{items}</channel></rss>"
    ).encode()


class Wire:
    """A monitor on feeds of a scripted server. `said` are all events so far."""

    def __init__(self, server: Server, path: Path, feeds: Sequence[str], sitemaps: Sequence[str], **more: Any) -> None:
        self.server = server
        self.said: list[dict[str, Any]] = []
        self.last = Pass()
        self.now = NOW.timestamp()
        self.config = self._config(path, feeds, sitemaps, more)

    def _config(self, path: Path, feeds: Sequence[str], sitemaps: Sequence[str], more: dict[str, Any]) -> Config:
        settings = Settings(allow_private_networks=True, poll=Poll(min=60), **more)
        config = minimal(
            [self.server.url("/")], database=f"sqlite:///{path}", settings=settings, alerts=[StdoutAlert("jsonl")]
        )
        named = [[url if "://" in url else self.server.url(url) for url in urls] for urls in (feeds, sitemaps)]
        site = replace(config.sites[0], feeds=tuple(named[0]), sitemaps=(), news_sitemaps=tuple(named[1]))
        return replace(config, sites=(site,))

    async def once(self, *, minutes: float = 10.0, everything: bool = True) -> list[dict[str, Any]]:
        """Let time pass, run one pass as a process of its own would, return the events it printed."""
        self.now += 60 * minutes
        out = io.StringIO()
        with Database(self.config.database) as db:
            async with Fetcher(fetch_policy(self.config)) as fetcher:
                engine = Engine(self.config, db, fetcher, shared_pool(), clock=lambda: self.now, stream=out)
                await engine.use(self.config)
                self.last = await engine.once(everything=everything)
        events = [json.loads(line) for line in out.getvalue().splitlines()]
        self.said += events
        return events

    def source(self, number: int = 0) -> SourceRow:
        """A source as stored, in the order of their ids; those that rest count, too."""
        with Database(self.config.database) as db:
            rows = db.call(lambda c: all_sources(c, active=False))
        return sorted(rows, key=lambda row: row.id)[number]

    def document(self, number: int = 0) -> DocumentRow:
        """The document of a source."""
        number = self.source(number).id
        with Database(self.config.database) as db:
            return db.call(lambda c: root_documents(c, [number]))[number]

    def asked(self, path: str) -> list[dict[str, str]]:
        """The header fields of each request for a path."""
        return [request.headers for request in self.server.requests if request.target == path]


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    """The types of events."""
    return [event["type"] for event in events]


def new(events: Sequence[dict[str, Any]]) -> list[str]:
    """The last part of the address of each new page."""
    return [event["subject"].rsplit("/", 1)[-1] for event in events if event["type"] == "url.new"]


@asynccontextmanager
async def wired(
    path: Path,
    handler: Handler,
    *,
    feeds: Sequence[str] = ("/feed.xml",),
    news: Sequence[str] = (),
    host: str = "127.0.0.1",
    **more: Any,
) -> AsyncIterator[Wire]:
    """A scripted server and a monitor on it; `more` are settings."""
    async with serving(handler, host) as server:
        yield Wire(server, path / "monitor.db", feeds, news, **more)
