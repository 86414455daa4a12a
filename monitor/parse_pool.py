"""Long-lived worker processes for parsing.

Parsing is work for the CPU, and documents are hostile: one that hangs or swells its parser must cost its own source a
read, not the daemon its life. So parsers run in a few worker processes that have a memory limit and are killed when a
document takes too long. Workers start on first use.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from multiprocessing.context import ForkServerContext, ForkServerProcess
from types import ModuleType
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from monitor.core.decode import decode
from monitor.core.feed import reread_feed
from monitor.core.feed_marks import pack, unpack
from monitor.core.listing import ListingRead, read_listing
from monitor.core.markup import is_html
from monitor.core.page import PageFacts, page_links, read_page
from monitor.core.sitemap import parse_sitemap
from monitor.core.sitemap_lines import read_lines
from monitor.model import Feed, NotAFeed, NotASitemap, Problem, Sitemap

T = TypeVar("T")
TIMEOUT = 60.0
MEMORY = 2 << 30


class ParseCrash(Exception):  # noqa: N818 - a crash, told as such
    """The document hung or killed its parser. The message is one sentence; the read has failed."""


def _start_worker() -> None:
    # Ctrl-C goes to the whole process group; the parent decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def _feed(
    data: bytes, url: str, content_type: str | None, marks: bytes | None, salt: str
) -> tuple[Feed, bytes | None] | str:
    try:
        feed, found = reread_feed(data, url, content_type, unpack(marks), salt)
        return feed, pack(found)
    except NotAFeed as error:
        return str(error)


def _sitemap(data: bytes, url: str) -> Sitemap | str:
    try:
        return parse_sitemap(data, url)
    except NotASitemap as error:
        return str(error)


def read_rows(data: bytes, url: str, *, transferred: bool) -> Sitemap | tuple[str, tuple[Problem, ...]] | str:
    """A sitemap as parsed; of a plain one its lines (`read_lines`) and problems, which cross to another process at a
    fraction of what rows do; why it is none."""
    peeled = decode(data)
    whole = transferred and peeled.complete
    if whole and (plain := read_lines(peeled.data)) is not None:
        return plain.text, peeled.problems
    try:
        sitemap = parse_sitemap(peeled.data, url, whole=whole)
    except NotASitemap as error:
        return str(error)
    return replace(sitemap, problems=peeled.problems + sitemap.problems)


def _rows(data: bytes, url: str, transferred: bool) -> Sitemap | tuple[str, tuple[Problem, ...]] | str:
    return read_rows(data, url, transferred=transferred)


def _listing(data: bytes, url: str, facts: dict[str, Any]) -> ListingRead | str | None:
    try:
        return read_listing(data, url, **facts)
    except NotASitemap as error:
        return str(error)


def _page(data: bytes, url: str, content_type: str | None) -> PageFacts:
    return read_page(decode(data).data, url=url, content_type=content_type)


def _links(data: bytes, url: str, content_type: str | None) -> tuple[PageFacts, tuple[str, ...]]:
    body = decode(data).data
    links = page_links(body, url=url, content_type=content_type) if is_html(body, content_type) else ()
    return read_page(body, url=url, content_type=content_type), links


class _Process(ForkServerProcess):
    """A worker that leaves the program's main module alone.

    Others import it anew, to find what is pickled by reference: a script without the `__name__` guard that used this
    library would run once more in each worker.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the library's name
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return ForkServerProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = main


class _Context(ForkServerContext):
    Process = _Process


class ParsePool:
    """Parses documents in worker processes. Use as a context manager."""

    def __init__(self, workers: int | None = None, *, timeout: float = TIMEOUT) -> None:
        self._workers = workers or min(2, os.cpu_count() or 1)
        self._timeout = timeout
        self._pool: ProcessPool | None = None

    def __enter__(self) -> ParsePool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers at once; what they were at has failed."""
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            self._pool = None

    async def feed(
        self, data: bytes, url: str, content_type: str | None, marks: bytes | None = None, salt: str = ""
    ) -> tuple[Feed, bytes | None]:
        """`reread_feed` in a worker, marks packed as they are stored. Raises NotAFeed, ParseCrash."""
        result = await self._call(_feed, data, url, content_type, marks, salt)
        if isinstance(result, str):
            raise NotAFeed(result)
        return result

    async def sitemap(self, data: bytes, url: str) -> Sitemap:
        """`parse_sitemap` in a worker. Raises NotASitemap, ParseCrash."""
        result = await self._call(_sitemap, data, url)
        if isinstance(result, str):
            raise NotASitemap(result)
        return result

    async def rows(
        self, data: bytes, url: str, *, transferred: bool
    ) -> Sitemap | tuple[str, tuple[Problem, ...]] | str:
        """`read_rows` in a worker. Raises ParseCrash."""
        return await self._call(_rows, data, url, transferred)

    async def listing(self, data: bytes, url: str, **facts: Any) -> ListingRead | None:
        """`read_listing` in a worker. Raises NotASitemap, ParseCrash."""
        result = await self._call(_listing, data, url, facts)
        if isinstance(result, str):
            raise NotASitemap(result)
        return result

    async def page(self, data: bytes, url: str, content_type: str | None) -> PageFacts:
        """`read_page` in a worker. Raises ParseCrash."""
        return await self._call(_page, data, url, content_type)

    async def links(self, data: bytes, url: str, content_type: str | None) -> tuple[PageFacts, tuple[str, ...]]:
        """`read_page` and `page_links` in a worker. Raises ParseCrash."""
        return await self._call(_links, data, url, content_type)

    async def _call(self, function: Callable[..., T], *args: Any) -> T:
        if self._pool is None:
            # A fork server with the parsers loaded once: workers share their memory and start in milliseconds.
            context = _Context()
            context.set_forkserver_preload(["monitor.parse_pool"])
            self._pool = ProcessPool(max_workers=self._workers, initializer=_start_worker, context=context)
        future = self._pool.schedule(function, args=args, timeout=self._timeout)
        try:
            return await asyncio.wrap_future(future)
        except FutureTimeoutError as error:
            raise ParseCrash(f"parsing took more than {self._timeout:.0f} s and was stopped") from error
        except ProcessExpired as error:
            raise ParseCrash(f"parsing ended its worker process (exit code {error.exitcode})") from error
        except MemoryError as error:
            raise ParseCrash(f"parsing needed more than {MEMORY >> 20} MiB") from error
