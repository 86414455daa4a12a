"""Reading sitemap trees as a library: file after file, no database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from monitor.core.http import Reply, describe
from monitor.core.rows import Rows
from monitor.core.url import page_key
from monitor.fetch import Fetcher, FetchPolicy
from monitor.model import Problem, Row, Sitemap, SitemapKind
from monitor.parse_pool import ParseCrash, ParsePool, read_rows

MAX_DEPTH = 5
MAX_FILES = 50_000
FILES_AT_ONCE = 8
SMALL = 16_384
"""Bytes up to which a file is parsed at once: sooner done than handed to another process, whatever it expands to."""


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """One document of a tree as it was read. `status` is the HTTP status, None without an answer.

    `rows` are the pages listed (children are followed, not shown); `complete` as of `parse_sitemap`, False for a failed
    read, which has no rows and says why in `problems`. `seconds` is fetching and parsing together.
    """

    url: str
    rows: Sequence[Row]
    status: int | None
    problems: tuple[Problem, ...]
    seconds: float
    kind: SitemapKind | None = None
    is_news: bool = False
    complete: bool = False
    parent: str | None = None


async def read_sitemaps(
    roots: str | Iterable[str],
    since: datetime | None = None,
    *,
    policy: FetchPolicy | None = None,
    fetcher: Fetcher | None = None,
) -> AsyncIterator[SitemapFile]:
    """Read sitemaps and all that their indexes lead to, each file once; yields each as it is read.

    `since` leaves out rows whose lastmod is earlier, and children that the index dates earlier; rows and children
    without a lastmod stay. Trees are read five levels deep and 50,000 files wide. Large files are parsed in worker
    processes, which start with the first of them. Never raises for what servers do.
    """
    async with AsyncExitStack() as stack:
        if fetcher is None:
            from monitor.discover_site import default_policy  # noqa: PLC0415 - pulls in the configuration's defaults

            fetcher = await stack.enter_async_context(Fetcher(policy or default_policy()))
        reader = _Reader(fetcher, stack.enter_context(ParsePool()), policy, since)
        level: list[tuple[str, str | None]] = [
            (url, None) for url in dict.fromkeys([roots] if isinstance(roots, str) else roots)
        ]
        seen = {page_key(url) for url, _parent in level}
        for _depth in range(MAX_DEPTH + 1):
            found: list[tuple[str, str | None]] = []
            async for file, children in reader.read(level):
                for child in children:
                    if page_key(child) not in seen and len(seen) < MAX_FILES:
                        seen.add(page_key(child))
                        found.append((child, file.url))
                yield file
            level = found


@dataclass(frozen=True, slots=True)
class _Reader:
    fetcher: Fetcher
    pool: ParsePool
    policy: FetchPolicy | None
    since: datetime | None

    async def read(self, level: list[tuple[str, str | None]]) -> AsyncIterator[tuple[SitemapFile, list[str]]]:
        """The files of a level as they come, with their children; a few at a time are under way or wait to be taken."""
        waiting = iter(level)
        tasks: set[asyncio.Task[tuple[SitemapFile, list[str]]]] = set()
        try:
            while True:
                for url, parent in islice(waiting, FILES_AT_ONCE - len(tasks)):
                    tasks.add(asyncio.create_task(self._file(url, parent)))
                if not tasks:
                    return
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        finally:
            for task in tasks:
                task.cancel()

    async def _file(self, url: str, parent: str | None) -> tuple[SitemapFile, list[str]]:
        began = time.perf_counter()
        reply = await self.fetcher.get(url, policy=self.policy, accept="application/xml, text/xml;q=0.9, */*;q=0.5")

        def failed(why: str) -> tuple[SitemapFile, list[str]]:
            problem = Problem("read.failed", url, why)
            return SitemapFile(url, (), reply.status, (problem,), time.perf_counter() - began, parent=parent), []

        if reply.status != 200:
            return failed(describe(reply))
        try:
            read = await self._parse(reply, url)
        except ParseCrash as error:
            return failed(str(error))
        if isinstance(read, str):
            return failed(read)
        if isinstance(read, tuple):
            rows: Sequence[Row] = Rows(read[0])
            sitemap = Sitemap("urlset", url, (), complete=True, problems=read[1])
        else:
            rows, sitemap = read.rows, read
        if self.since is not None:
            rows = [row for row in rows if row.lastmod is None or row.lastmod >= self.since]
        file = SitemapFile(
            url=url,
            rows=rows if isinstance(rows, Rows) else tuple(row for row in rows if not row.child),
            status=reply.status,
            problems=sitemap.problems,
            seconds=time.perf_counter() - began,
            kind=sitemap.kind,
            is_news=sitemap.is_news,
            complete=sitemap.complete,
            parent=parent,
        )
        return file, [] if isinstance(rows, Rows) else [row.url for row in rows if row.child]

    async def _parse(self, reply: Reply, url: str) -> Sitemap | tuple[str, tuple[Problem, ...]] | str:
        address = reply.final_url or url
        if len(reply.body) < SMALL:
            return await asyncio.to_thread(read_rows, reply.body, address, transferred=reply.complete)
        return await self.pool.rows(reply.body, address, transferred=reply.complete)
