"""A simulated news site on a loopback port: what `monitor demo` watches, and what the scenario tests drive.

The site is a value that a seed and a clock determine. Its clock stands still until `advance` is called; its methods
change what it publishes at once and may be called from any thread. HTTP is exact (RFC 9110): strong validators,
conditional requests, content codings, HEAD; and each path can be made to fail as real sites do.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from typing import Self, get_args

from aiohttp import web

from monitor import newsroom_pages as pages
from monitor.newsroom_http import (
    Answer,
    Document,
    RequestRecord,
    Trouble,
    conditional,
    error_page,
    plain,
    send,
    serve_in_thread,
    wait_while,
)
from monitor.newsroom_pages import Article, Build, Listing
from monitor.newsroom_story import byline, headline, slug_of, story_text

__all__ = ["Article", "Newsroom", "RequestRecord", "serve_in_thread"]

_EVERYWHERE: frozenset[Listing] = frozenset(get_args(Listing))
_RECORDED = ("user-agent", "accept", "accept-encoding", "if-none-match", "if-modified-since")


class Newsroom:
    """A site with `old_pages` published before `start`, serving while the `async with` block (or thread) runs.

    start     aware instant at which the clock `now` stands at first
    window    articles that each feed shows, newest first
    news_hours  age in hours at which an article leaves the news sitemap
    children  gzipped files in the sitemap index; old pages fill them by age, new ones join the last

    Of the old pages the newest `window` came about four hours apart, the others over the four months before. `url`
    and the addresses of old articles are known once the site serves; a second `async with` takes the same port
    again. Attributes to set at any time: `now`, `latency` (seconds before each answer: gives requests the time to
    overlap), `generation_time_lastmod` (True: each sitemap dates all its rows by the clock, as broken sites do).

    Raises ValueError for a naive `start`, or for a section that is not lower-case letters, digits and hyphens.
    """

    def __init__(
        self,
        seed: int = 1,
        old_pages: int = 35,
        *,
        start: datetime,
        sections: tuple[str, ...] = ("news", "sport", "culture"),
        window: int = 20,
        news_hours: float = 48,
        children: int = 3,
    ) -> None:
        if start.tzinfo is None:
            raise ValueError("start needs a zone")
        if not sections or not all(re.fullmatch(r"[a-z0-9-]+", name) for name in sections):
            raise ValueError("a section is lower-case letters, digits and hyphens")
        self.url = ""
        self.sections, self.window, self.news_hours, self.children = sections, window, news_hours, children
        self.latency = 0.0
        self.requests: list[RequestRecord] = []
        self.max_concurrency = 0
        """The most requests in progress at once that any one peer address had."""
        self.failures: dict[str, int | Trouble] = {}
        self._retry_after: dict[str, int] = {}
        self._seed, self._random = seed, Random(seed)  # noqa: S311 - a story, not a secret
        self._now = start.astimezone(UTC)
        self._generation_time_lastmod = False
        self._lock = threading.RLock()
        self._articles: dict[int, Article] = {}
        self._numbers: dict[str, int] = {}
        self._child_changed = dict.fromkeys(range(1, children + 1), self._now)
        self._build = Build(self._now - timedelta(days=365), 0)
        self._rendered: dict[str, Document] = {}
        self._last_served: dict[str, Document] = {}
        self._in_progress: Counter[str] = Counter()
        self._port = 0
        self._closing = False
        self._runner: web.ServerRunner | None = None
        self._fill(old_pages)

    def _fill(self, old_pages: int) -> None:
        """Publish the old pages, oldest first."""
        recent, start = min(self.window, old_pages), self._now
        ages = [4 * 3600 * (place + self._random.uniform(0.2, 0.8)) for place in range(recent)]
        rest, begin, end = old_pages - recent, 4 * 3600.0 * recent, 120 * 86400.0
        ages += [begin + (end - begin) * (place + self._random.random()) / rest for place in range(rest)]
        for place, age in enumerate(reversed(ages)):
            article = self.publish(at=(start - timedelta(seconds=age)).replace(microsecond=0))
            child = 1 + place * self.children // old_pages
            self._articles[article.number] = replace(article, child=child)
            self._child_changed[child] = article.published

    # The clock and the state

    @property
    def now(self) -> datetime:
        """The site's clock, an aware instant in UTC. It moves only when set, or by `advance`."""
        return self._now

    @now.setter
    def now(self, instant: datetime) -> None:
        with self._lock:
            self._now = instant.astimezone(UTC)
            self._rendered.clear()

    def advance(self, seconds: float) -> None:
        """Move the clock on by `seconds`."""
        self.now = self._now + timedelta(seconds=seconds)

    @property
    def generation_time_lastmod(self) -> bool:
        """Whether sitemaps date every row and child by the moment they are generated, which is each request."""
        return self._generation_time_lastmod

    @generation_time_lastmod.setter
    def generation_time_lastmod(self, on: bool) -> None:
        with self._lock:
            self._generation_time_lastmod = on
            self._rendered.clear()

    @property
    def articles(self) -> tuple[Article, ...]:
        """All articles as they stand, newest first, withdrawn ones included."""
        with self._lock:
            found = sorted(self._articles.values(), key=lambda each: (each.published, each.number), reverse=True)
        return tuple(found)

    @property
    def live(self) -> tuple[Article, ...]:
        """The articles that are not withdrawn, newest first."""
        return tuple(article for article in self.articles if article.status == 200)

    @property
    def withdrawn(self) -> tuple[Article, ...]:
        """The withdrawn articles, newest first."""
        return tuple(article for article in self.articles if article.status != 200)

    def current(self, article: Article) -> Article:
        """`article` as it stands now."""
        with self._lock:
            return self._articles[article.number]

    def _keep(self, article: Article) -> Article:
        with self._lock:
            self._articles[article.number] = article
            self._numbers[article.path] = article.number
            self._child_changed[article.child] = self._now
            self._rendered.clear()
        return article

    # What can happen

    def publish(
        self,
        title: str | None = None,
        *,
        section: str | None = None,
        in_feed: bool = True,
        in_news: bool = True,
        in_sitemap: bool = True,
        at: datetime | None = None,
        utm: bool = False,
    ) -> Article:
        """Publish an article, dated `at` (default: now), in the listings that are not refused.

        Listings sort by that date, so one dated before all that a feed shows never appears there. `utm` puts trackers
        on its feed links; sitemaps give the plain address.
        """
        with self._lock:
            section = section or self.sections[self._random.randrange(len(self.sections))]
            number = len(self._articles) + 1
            title = title or headline(self._random, section)
            path = f"/news/{slug_of(title)}-{number}"
            published = (at.astimezone(UTC) if at else self._now).replace(microsecond=0)
            asked: tuple[tuple[Listing, bool], ...] = (("feed", in_feed), ("news", in_news), ("sitemap", in_sitemap))
            return self._keep(
                Article(
                    number=number,
                    path=path,
                    url=self.url.rstrip("/") + path,
                    title=title,
                    body=story_text(self._random, title),
                    section=section,
                    author=byline(self._random),
                    published=published,
                    modified=published,
                    lists=frozenset(name for name, wanted in asked if wanted),
                    child=self.children,
                    utm=utm,
                )
            )

    def edit(self, article: Article, title: str | None = None, body: str | None = None) -> Article:
        """Change an article's title or text. Its modification date moves forward in any case, by a second at least."""
        with self._lock:
            known = self.current(article)
            modified = max(self._now.replace(microsecond=0), known.modified + timedelta(seconds=1))
            return self._keep(replace(known, title=title or known.title, body=body or known.body, modified=modified))

    def withdraw(self, article: Article, status: int = 404, *, to: Article | str | None = None) -> Article:
        """Take an article out of every listing; its page answers `status`: 404, 410, or a redirect such as 301.

        `to`, an article or an address, makes it a redirect there: a 301 unless `status` is another redirect. A
        redirect without it leads to the home page.
        """
        if to is not None and not 300 <= status < 400:
            status = 301
        location = to.path if isinstance(to, Article) else to or "/"
        with self._lock:
            return self._keep(replace(self.current(article), status=status, location=location))

    def restore(self, article: Article) -> Article:
        """Undo `withdraw` and `unlist`: the page is back, and so are the listings it was published in."""
        with self._lock:
            return self._keep(replace(self.current(article), status=200, location=None, hidden=frozenset()))

    def unlist(self, article: Article, from_: Collection[Listing] = _EVERYWHERE) -> Article:
        """Take an article out of the given listings while its page stays."""
        with self._lock:
            known = self.current(article)
            return self._keep(replace(known, hidden=known.hidden | frozenset(from_)))

    def rebuild(self) -> None:
        """Build every listing anew with nothing else changed: new build dates and bytes, so new validators."""
        with self._lock:
            self._build = Build(self._now, self._build.number + 1)
            self._rendered.clear()

    def fail(self, path: str, status: int | Trouble = 500, *, retry_after: int | None = None) -> None:
        """Make a path (or the address of one) fail until `mend`.

        A number is answered as status, with `retry_after` seconds if given. "html" is an error page with status 200;
        "empty" a 200 without a body; "truncate" the right headers, then half the body; "drip" a byte every 20 ms;
        "hang" no answer at all until mended; "reset" a TCP reset before any.
        """
        with self._lock:
            path = self._path(path)
            self.failures[path] = status
            self._retry_after.pop(path, None)
            if retry_after is not None:
                self._retry_after[path] = retry_after

    def mend(self, path: str) -> None:
        """End what `fail` began. A path that does not fail is left as it is."""
        with self._lock:
            self.failures.pop(self._path(path), None)

    def _path(self, path: str) -> str:
        return path.removeprefix(self.url.rstrip("/"))

    def requests_since(self, count: int) -> list[RequestRecord]:
        """The requests after the first `count`: note ``len(room.requests)`` first, ask for what came later after."""
        with self._lock:
            return self.requests[count:]

    # Documents

    def _site(self) -> pages.Site:
        return pages.Site(
            base=self.url,
            sections=self.sections,
            articles=self.articles,
            window=self.window,
            news_hours=self.news_hours,
            now=self._now,
            build=self._build,
            child_changed=dict(self._child_changed),
            generation_time_lastmod=self._generation_time_lastmod,
        )

    def _document(self, path: str, article: Article | None) -> Document | None:
        """What a path holds now, with its validators.

        A listing's Last-Modified is the clock when a change of its bytes was first noticed, and moves by a second at
        least, so that two states never share one. A page's is the article's own date: its noise does not move it.
        """
        if path in self._rendered:
            return self._rendered[path]
        if article is not None:
            noise = f"{self._seed}/{article.number}/{self._now.timestamp() // 3600:.0f}"
            body, content_type = pages.article_page(article, noise), "text/html; charset=utf-8"
            modified = article.modified
        elif (listing := pages.listing(self._site(), path)) is not None:
            (body, content_type), modified = listing, self._now.replace(microsecond=0)
            if before := self._last_served.get(path):
                same = before.body == body
                modified = before.modified if same else max(modified, before.modified + timedelta(seconds=1))
        else:
            return None
        document = Document(body, content_type, hashlib.sha256(body).hexdigest()[:24], modified)
        self._rendered[path] = self._last_served[path] = document
        return document

    # Serving

    async def __aenter__(self) -> Self:
        """Bind and serve. OSError when the port of an earlier run was taken by another meanwhile."""
        self._closing = False
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        with self._lock:
            self.url = f"http://127.0.0.1:{self._port}/"
            for number, article in self._articles.items():
                self._articles[number] = replace(article, url=self.url.rstrip("/") + article.path)
            self._rendered.clear()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop serving; answers that hang or drip are cut short."""
        self._closing = True
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        peer = request.remote or ""
        headers = {name: request.headers[name] for name in _RECORDED if name in request.headers}
        with self._lock:
            place = len(self.requests)
            self.requests.append(RequestRecord(time.monotonic(), request.method, request.path_qs, None, headers))
            self._in_progress[peer] += 1
            self.max_concurrency = max(self.max_concurrency, self._in_progress[peer])
        try:
            await asyncio.sleep(self.latency)
            await wait_while(lambda: self._fails(request.path, "hang"))
            with self._lock:
                failure = self.failures.get(request.path)
                answer = self._answer(request, failure)
                if failure != "reset":
                    self.requests[place] = replace(self.requests[place], status=answer.status)
            answer = replace(answer, headers={"Date": format_datetime(self._now, usegmt=True), **answer.headers})
            trouble = None if isinstance(failure, int) else failure
            return await send(request, answer, trouble, lambda: self._fails(request.path, "drip"))
        finally:
            self._in_progress[peer] -= 1

    def _fails(self, path: str, trouble: Trouble) -> bool:
        return not self._closing and self.failures.get(path) == trouble

    def _answer(self, request: web.BaseRequest, failure: int | Trouble | None) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return plain(405, headers={"Allow": "GET, HEAD"})
        if isinstance(failure, int):
            wait = self._retry_after.get(request.path)
            return plain(failure, headers={} if wait is None else {"Retry-After": str(wait)})
        if failure == "html":
            return error_page()
        article = self._articles.get(self._numbers.get(request.path, 0))
        if article is not None and article.status != 200:
            redirect = 300 <= article.status < 400
            return plain(article.status, headers={"Location": article.location or "/"} if redirect else None)
        document = self._document(request.path, article)
        if document is None:
            return plain(404)
        # A path in trouble sends a body whatever the client knows: there must be something to spoil.
        asked = {"Accept-Encoding": request.headers.get("Accept-Encoding", "")} if failure else request.headers
        return conditional(document, asked, self._now)
