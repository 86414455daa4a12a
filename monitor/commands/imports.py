"""`monitor import crawl`: lists of other crawlers."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

from monitor.commands.daemon import fetch_policy
from monitor.config import Config
from monitor.core.crawl_file import NoURLsError
from monitor.engine import Engine, UnusableConfigError
from monitor.fetch import Fetcher
from monitor.import_crawl import CannotReadError, Imported, import_crawl
from monitor.parse_pool import ParsePool
from monitor.store.database import Database


class CannotImportError(Exception):
    """The file holds nothing to import. `str(error)` is one sentence for the user, `code` the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def crawl(config: Config, database: str, file: Path, *, site: str | None, quiet: bool) -> None:
    """Import a list of URLs (``-``: standard input) and print what came of it. Raises CannotImportError."""
    only = config.site(site) if site else None
    if site and only is None:
        known = ", ".join(sorted(one.name for one in config.sites))
        raise CannotImportError(f"no site is named {site!r}; known are {known}", 2)
    say = _progress if sys.stderr.isatty() and not quiet else _silent

    def work(engine: Engine, stream: IO[bytes]) -> Imported:
        return import_crawl(engine.runtime, stream, only=only, say=say)

    done = _with_engine(config, database, file, work)
    if sys.stderr.isatty() and not quiet:
        sys.stderr.write("\r\x1b[K")
    for name, count in sorted(done.by_site.items()):
        sys.stdout.write(f"{name}: {count:,} pages in the crawl, {done.new[name]:,} of them news\n")
    tally = done.tally
    if tally.others:
        _note(f"{tally.others:,} rows are of no page that can be read (status, content type), and were left out")
    if tally.unreadable:
        _note(f"{tally.unreadable:,} rows hold no http or https address")
    if done.foreign:
        hosts = ", ".join(host for host, _count in done.foreign_hosts.most_common(3))
        _note(f"{done.foreign:,} URLs are on hosts of no site ({hosts}); --site names the site, `hosts:` lets hosts in")
    if not done.by_site:
        raise CannotImportError(f"{file}: nothing was imported")


def _with_engine(config: Config, database: str, file: Path, work: Callable[[Engine, IO[bytes]], Imported]) -> Imported:
    try:
        stream: IO[bytes] = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError as error:
        _refuse(f"{file}: {error.strerror}")
    with stream, Database(database) as db:
        engine = asyncio.run(_engine(config, db))
        try:
            return work(engine, stream)
        except (NoURLsError, CannotReadError) as error:
            raise CannotImportError(f"{file}: {error}") from error


async def _engine(config: Config, db: Database) -> Engine:
    """The parts of the monitor with the configuration in force; nothing is fetched."""
    async with Fetcher(fetch_policy(config)) as fetcher:
        engine = Engine(config, db, fetcher, ParsePool(), clock=time.time)
        try:
            await engine.use(config)
        except UnusableConfigError as error:
            _refuse(str(error))
        return engine


def _refuse(message: str) -> NoReturn:
    raise CannotImportError(message, 2)


def _note(message: str) -> None:
    print(f"monitor: {message}", file=sys.stderr)  # noqa: T201


def _silent(_rows: int) -> None:
    """Nobody watches."""


def _progress(rows: int) -> None:
    sys.stderr.write(f"\r\x1b[K{rows:,} URLs read")
    sys.stderr.flush()
