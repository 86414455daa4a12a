"""`monitor demo`: a simulated newsroom on loopback, and the real engine on it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from monitor.commands.daemon import fetch_policy
from monitor.config import Concurrency, Config, Poll, Settings, SitemapSettings, StdoutAlert, minimal
from monitor.engine import Engine
from monitor.fetch import Fetcher
from monitor.newsroom import Newsroom
from monitor.newsroom_story import perform, plan
from monitor.parse_pool import ParsePool
from monitor.store import events as event_store
from monitor.store.database import Database

QUIET_END = 5.0
"""The newsroom falls silent this long before the end, so that all it did can be heard of."""

PACE = 3.0
"""Seconds between two things that happen in the newsroom."""


def demo(*, seconds: float | None, seed: int) -> int:
    """Run the demo until `seconds` have passed or Ctrl-C; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="monitor-demo-") as folder:
        return asyncio.run(_demo(Path(folder), seconds, seed))


async def _demo(folder: Path, seconds: float | None, seed: int) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    start = datetime.now(UTC)
    async with Newsroom(seed=seed, start=start) as room:
        config = _config(room.url, folder)
        _say(f"A newsroom of {len(room.articles)} articles serves feeds, sitemaps and pages at {room.url}")
        _say("The monitor knows that address and nothing else. It finds the sources, reads them once in silence (the")
        _say("baseline), and from then on tells of each new, changed, missing and returned page. Ctrl-C ends it.\n")
        with Database(config.database) as db:
            async with Fetcher(fetch_policy(config)) as fetcher:
                with ParsePool() as pool:
                    engine = Engine(config, db, fetcher, pool, clock=time.time)
                    await engine.use(config)
                    story = asyncio.create_task(_tell(room, db, seed, seconds))
                    ending = asyncio.create_task(_end(stop, seconds))
                    clock = asyncio.create_task(_tick(room))
                    began = time.monotonic()
                    try:
                        await engine.forever(stop)
                    finally:
                        for task in (story, ending, clock):
                            task.cancel()
                        await asyncio.gather(story, ending, clock, return_exceptions=True)
                    await engine.deliver()
            log = await db.run(event_store.read_events)
        _summary(room, start, [envelope for _seq, envelope in log], time.monotonic() - began)
    return 0


def _config(url: str, folder: Path) -> Config:
    settings = Settings(
        allow_private_networks=True,
        concurrency=Concurrency(per_host=4),
        poll=Poll(min=1.0, max=3.0, target_delay=1.0),
        sitemap=SitemapSettings(every=2.0, news_every=2.0),
    )
    config = minimal([url], database=f"sqlite:///{folder}/demo.db", settings=settings)
    return replace(config, sites=(replace(config.sites[0], name="courier"),), alerts=(StdoutAlert(format="text"),))


async def _tick(room: Newsroom) -> None:
    """The newsroom's clock goes with ours."""
    before = time.monotonic()
    while True:
        await asyncio.sleep(0.25)
        now = time.monotonic()
        room.advance(now - before)
        before = now


async def _end(stop: asyncio.Event, seconds: float | None) -> None:
    if seconds is not None:
        await asyncio.sleep(seconds)
        stop.set()


async def _tell(room: Newsroom, db: Database, seed: int, seconds: float | None) -> None:
    """Let things happen in the newsroom, once the monitor has its baseline."""
    began = time.monotonic()
    while "source.baseline" not in await db.run(event_store.count_by_type):  # noqa: ASYNC110 - it happens in a database
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.5)
    start = time.monotonic()
    left = 3600.0 if seconds is None else max(0.0, seconds - QUIET_END - (start - began))
    for second, action in plan(seed, left, PACE):
        await asyncio.sleep(max(0.0, start + second - time.monotonic()))
        _say(_dim(f"          newsroom  {perform(room, action)}"))


def _say(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if sys.stdout.isatty() else text


def _summary(room: Newsroom, start: datetime, events: list[dict[str, object]], seconds: float) -> None:
    types = Counter(str(e["type"]) for e in events)
    told = Counter(str(e["subject"]) for e in events if e["type"] == "url.new")
    requests = room.requests
    unchanged = sum(1 for r in requests if r.status == 304)
    published = [article for article in room.articles if article.published >= start]
    missed = [a for a in published if told[a.url] == 0]
    twice = [url for url, count in told.items() if count > 1]
    _say(f"\nIn {seconds:.0f} s the newsroom published {len(published)} articles.")
    _say(
        f"The monitor told of {types['url.new']} new, {types['url.changed']} changed, {types['url.missing']} missing "
        f"and {types['url.returned']} returned pages: {len(missed)} of the new ones missed, {len(twice)} told twice."
    )
    _say(f"It made {len(requests)} requests; {unchanged} of them were answered 304 Not Modified, without a body.")
    _say("\nNext: write your own sites.yaml (an address is enough) and run `monitor run`.")
