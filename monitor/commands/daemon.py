"""`monitor run`: the daemon, and one pass of it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

from monitor.config import Config, ConfigError, load
from monitor.deliver.text import counted
from monitor.engine import Engine, UnusableConfigError
from monitor.fetch import Fetcher, FetchPolicy
from monitor.parse_pool import ParsePool
from monitor.store.database import Database

log = logging.getLogger("monitor")


def fetch_policy(config: Config) -> FetchPolicy:
    """The fetcher's own bounds, from `defaults`; sites bring theirs with each request."""
    defaults = config.defaults
    return FetchPolicy(
        user_agent=defaults.user_agent,
        allow_private_networks=defaults.allow_private_networks,
        proxy=defaults.proxy,
        total=defaults.concurrency.total,
        per_host=defaults.concurrency.per_host,
        host_delay=defaults.concurrency.host_delay,
    )


@contextlib.asynccontextmanager
async def opened(config: Config, db: Database, *, progress: bool = False, retry: bool = False) -> AsyncIterator[Engine]:
    """An engine with all its parts, closed again on leaving. `retry`: see `Engine.use`. Raises UnusableConfigError."""
    say = _progress if progress and sys.stderr.isatty() else lambda _text: None
    async with Fetcher(fetch_policy(config)) as fetcher:
        with ParsePool() as pool:
            engine = Engine(config, db, fetcher, pool, clock=time.time, progress=say)
            await engine.use(config, retry=retry)
            spare_collector()
            yield engine


def spare_collector() -> None:
    """What is loaded by now stays to the end: without it a collection of garbage takes no 70 ms, in which nothing else
    runs."""
    gc.collect()
    gc.freeze()


def run(config: Config, database: str, *, once: bool, everything: bool, quiet: bool = False) -> int:
    """Run the daemon, or one pass; returns the exit code. Raises StoreError where the database cannot be used."""
    with Database(database) as db:
        try:
            if once:
                return asyncio.run(_once(config, db, everything=everything, quiet=quiet))
            return asyncio.run(_forever(config, db))
        except UnusableConfigError as error:
            print(f"monitor: {error}", file=sys.stderr)  # noqa: T201
            return 2


async def _once(config: Config, db: Database, *, everything: bool, quiet: bool) -> int:
    stop = _stop_on_signals()
    async with opened(config, db, progress=not quiet) as engine:
        work = asyncio.create_task(engine.once(everything=everything))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not work.done():
            # Nothing is lost: what was not committed is still due, what was not delivered still waits.
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
            return 0
        result = work.result()
        if sys.stderr.isatty() and not quiet:
            _progress("")
        for problem in result.problems:
            print(f"monitor: {problem}", file=sys.stderr)  # noqa: T201
        return 1 if result.problems else 0


async def _forever(config: Config, db: Database) -> int:
    stop = _stop_on_signals()
    reload = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload.set)
    async with opened(config, db, retry=True) as engine:
        log.info("watching %s", counted(len(config.sites), "site"))
        reloading = asyncio.create_task(_reload_on(reload, config, engine))
        try:
            await engine.forever(stop)
        finally:
            reloading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reloading
    return 0


async def _reload_on(reload: asyncio.Event, config: Config, engine: Engine) -> None:
    """Read the configuration again at each SIGHUP; one that is wrong is told and changes nothing."""
    while True:
        await reload.wait()
        reload.clear()
        if config.path is None:
            continue
        try:
            fresh = load(config.path, os.environ)
            await engine.use(fresh, retry=True)
        except (ConfigError, UnusableConfigError) as error:
            for line in str(error).splitlines():
                print(f"monitor: {line}", file=sys.stderr)  # noqa: T201
            _stays()
        except Exception:
            # A fault of ours must not be the last that is heard of reloads.
            log.exception("the configuration could not be taken into force")
            _stays()
        else:
            print(f"monitor: configuration read again: {counted(len(fresh.sites), 'site')}", file=sys.stderr)  # noqa: T201


def _stays() -> None:
    print("monitor: the configuration in force stays as it was", file=sys.stderr)  # noqa: T201


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    return stop


def _progress(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()
