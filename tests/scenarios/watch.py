"""Drives whole passes of the engine against a simulated site, on the site's own clock."""

from __future__ import annotations

import asyncio
import atexit
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from monitor.commands.daemon import fetch_policy
from monitor.config import Config, Poll, Settings, Site, SitemapSettings, StdoutAlert, minimal
from monitor.engine import Engine, Pass
from monitor.fetch import Fetcher
from monitor.newsroom import Newsroom, serve_in_thread
from monitor.parse_pool import ParsePool
from monitor.store.database import Database

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


class Watch:
    """A monitor on a simulated site. Each `once` is one pass of `run --once --all`, at the site's time."""

    def __init__(self, room: Newsroom, path: Path, pool: ParsePool, **site: Any) -> None:
        self.room = room
        self.path = path
        self.pool = pool
        self.site_options = site
        self.last = Pass()

    def config(self) -> Config:
        settings = Settings(allow_private_networks=True, poll=Poll(min=60), sitemap=SitemapSettings())
        config = minimal(
            [self.room.url], database=f"sqlite:///{self.path}", settings=settings, alerts=[StdoutAlert(format="jsonl")]
        )
        site: Site = replace(config.sites[0], **self.site_options)
        return replace(config, sites=(site,))

    def once(self, *, advance: float = 300.0, everything: bool = True) -> list[dict[str, Any]]:
        """Let `advance` seconds pass on the site, run one pass, return the events it printed."""
        self.room.advance(advance)
        return asyncio.run(self._once(everything))

    async def _once(self, everything: bool) -> list[dict[str, Any]]:
        config = self.config()
        out = io.StringIO()
        with Database(config.database) as db:
            async with Fetcher(fetch_policy(config)) as fetcher:
                engine = Engine(config, db, fetcher, self.pool, clock=self._now, stream=out)
                await engine.use(config)
                self.last = await engine.once(everything=everything)
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def _now(self) -> float:
        return self.room.now.timestamp()

    def urls(self, events: list[dict[str, Any]], kind: str) -> list[str]:
        """Subjects of the events of one type."""
        return [event["subject"] for event in events if event["type"] == kind]


def pages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events about pages, without those about sources."""
    return [event for event in events if event["type"].startswith("url.")]


@contextmanager
def watching(path: Path, *, room: Newsroom | None = None, **site: Any) -> Iterator[Watch]:
    """A served newsroom and a monitor on it."""
    room = room or Newsroom(seed=7, old_pages=35, start=START)
    with serve_in_thread(room):
        yield Watch(room, path / "monitor.db", shared_pool(), **site)


@cache
def shared_pool() -> ParsePool:
    """One pool of parse workers for all tests of a session; it ends with the process."""
    pool = ParsePool(1)
    atexit.register(pool.close)
    return pool
