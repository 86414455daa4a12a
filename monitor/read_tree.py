"""Reading sitemap trees as a library: file after file, no database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime

from monitor.core.decode import decode
from monitor.core.http import describe
from monitor.core.sitemap import parse_sitemap
from monitor.core.url import page_key
from monitor.fetch import Fetcher, FetchPolicy
from monitor.model import NotASitemap, Problem, Row, SitemapKind

MAX_DEPTH = 5
MAX_FILES = 50_000


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """One document of a tree as it was read. `status` is the HTTP status, None without an answer.

    `rows` are the pages listed (children are followed, not shown); `complete` as of `parse_sitemap`, False for a failed
    read, which has no rows and says why in `problems`. `seconds` is fetching and parsing together.
    """

    url: str
    rows: tuple[Row, ...]
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
    without a lastmod stay. Trees are read five levels deep and 50,000 files wide. Never raises for what servers do.
    """
    if fetcher is None:
        from monitor.discover_site import default_policy  # noqa: PLC0415 - pulls in the configuration's defaults

        async with Fetcher(policy or default_policy()) as own:
            async for file in read_sitemaps(roots, since, policy=policy, fetcher=own):
                yield file
        return
    start = [roots] if isinstance(roots, str) else list(roots)
    level: list[tuple[str, str | None]] = [(url, None) for url in dict.fromkeys(start)]
    seen = {page_key(url) for url, _parent in level}
    for _depth in range(MAX_DEPTH + 1):
        found: list[tuple[str, str | None]] = []
        for start_at in range(0, len(level), 8):
            batch = level[start_at : start_at + 8]
            tasks = [asyncio.create_task(_read_file(fetcher, policy, url, parent, since)) for url, parent in batch]
            try:
                for task in asyncio.as_completed(tasks):
                    file, children = await task
                    for child in children:
                        if page_key(child) not in seen and len(seen) < MAX_FILES:
                            seen.add(page_key(child))
                            found.append((child, file.url))
                    yield file
            finally:
                for task in tasks:
                    task.cancel()
        level = found


async def _read_file(
    fetcher: Fetcher, policy: FetchPolicy | None, url: str, parent: str | None, since: datetime | None
) -> tuple[SitemapFile, list[str]]:
    began = time.perf_counter()
    reply = await fetcher.get(url, policy=policy, accept="application/xml, text/xml;q=0.9, */*;q=0.5")

    def failed(why: str) -> tuple[SitemapFile, list[str]]:
        problem = Problem("read.failed", url, why)
        return SitemapFile(url, (), reply.status, (problem,), time.perf_counter() - began, parent=parent), []

    if reply.status != 200:
        return failed(describe(reply))
    data = decode(reply.body)
    try:
        sitemap = await asyncio.to_thread(parse_sitemap, data.data, reply.final_url or url)
    except NotASitemap as error:
        return failed(str(error))
    kept = [row for row in sitemap.rows if since is None or row.lastmod is None or row.lastmod >= since]
    file = SitemapFile(
        url=url,
        rows=tuple(row for row in kept if not row.child),
        status=reply.status,
        problems=data.problems + sitemap.problems,
        seconds=time.perf_counter() - began,
        kind=sitemap.kind,
        is_news=sitemap.is_news,
        complete=sitemap.complete and data.complete and reply.complete,
        parent=parent,
    )
    return file, [row.url for row in kept if row.child]
