"""`monitor crawl`: a crawl of one site, now."""

from __future__ import annotations

import asyncio
import sys

from monitor.commands.daemon import opened
from monitor.config import Config
from monitor.core.health import Outcome
from monitor.crawl import Visit
from monitor.engine import UnusableConfigError
from monitor.store.database import Database


def crawl(config: Config, database: str, site: str, *, quiet: bool) -> int:
    """Crawl the sections of a site and print what came of it; returns the exit code. LookupError, UnusableConfigError:
    a mistake of the user's, told in one sentence."""
    if config.site(site) is None:
        raise LookupError(f"no site is named {site!r}; known are {', '.join(sorted(one.name for one in config.sites))}")
    with Database(database) as db:
        outcome, visit = asyncio.run(_crawl(config, db, site, quiet=quiet))
    if visit is None or outcome.result != "modified":
        print(f"monitor: {site}: {outcome.error}", file=sys.stderr)  # noqa: T201
        return 1
    listed, unchanged = len(visit.rows), visit.unchanged
    print(f"{site}: {visit.visited:,} pages visited ({unchanged:,} unchanged), {listed:,} listed")  # noqa: T201
    if visit.disallowed:
        print(f"{len(visit.disallowed):,} linked pages are disallowed by robots.txt")  # noqa: T201
    if visit.frontier.bounded:
        told = ", ".join(f"{count:,} by {bound}" for bound, count in visit.frontier.bounded.most_common())
        print(f"left out as endless: {told}")  # noqa: T201
    if visit.cut:
        print(f"monitor: {site}: {visit.cut}", file=sys.stderr)  # noqa: T201
    return 0


async def _crawl(config: Config, db: Database, site: str, *, quiet: bool) -> tuple[Outcome, Visit | None]:
    async with opened(config, db, progress=not quiet) as engine:
        outcome, visit = await engine.crawl(site)
        if sys.stderr.isatty() and not quiet:
            sys.stderr.write("\r\x1b[K")
        await engine.deliver()
        return outcome, visit


__all__ = ["UnusableConfigError", "crawl"]
