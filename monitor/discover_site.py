"""Finding what a site publishes: robots.txt, the links in its home page's head, then well-known paths."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from monitor.core import discovery
from monitor.core.decode import decode
from monitor.core.feed import parse_feed
from monitor.core.http import Reply, describe
from monitor.core.robots import Robots, parse_robots
from monitor.core.sitemap import parse_sitemap
from monitor.core.url import absolute, page_key
from monitor.fetch import Fetcher, FetchPolicy
from monitor.model import NotAFeed, NotASitemap, SourceKind


@dataclass(frozen=True, slots=True)
class Found:
    """A place that may list pages. `how` tells where its address came from, `size` counts entries or rows.

    `verdict` is ``ok`` or one sentence that says what is wrong with it; `form` is its format (``rss20``, ``index``).
    """

    url: str
    kind: SourceKind
    how: str
    size: int = 0
    form: str | None = None
    title: str | None = None
    verdict: str = "ok"
    guessed: bool = False
    transient: bool = False
    """It was named by the site itself and could only not be read just now."""

    @property
    def ok(self) -> bool:
        """Whether it can be watched."""
        return self.verdict == "ok"


@dataclass(frozen=True, slots=True)
class Discovered:
    """What discovery found for `url`. `robots` is the robots.txt's own address, its status and sitemap lines."""

    url: str
    feeds: tuple[Found, ...] = ()
    sitemaps: tuple[Found, ...] = ()
    news_sitemaps: tuple[Found, ...] = ()
    robots: Robots | None = None
    robots_url: str = ""
    problems: tuple[str, ...] = field(default=())

    def all(self) -> tuple[Found, ...]:
        """Everything found, feeds first."""
        return self.feeds + self.news_sitemaps + self.sitemaps


async def discover(url: str, *, fetcher: Fetcher | None = None, policy: FetchPolicy | None = None) -> Discovered:
    """Find the feeds and sitemaps of the site at `url`, each read once to see that it works.

    Sitemaps: the robots.txt's lines, else `/sitemap.xml` and its relatives; feeds: the home page's
    `link rel=alternate`, else `/feed` and its relatives. Never raises for what servers do: `problems` says what could
    not be read. Without a `fetcher` one is opened for this call. ValueError: `url` is no address of the web.
    """
    if fetcher is None:
        async with Fetcher(policy or default_policy()) as own:
            return await discover(url, fetcher=own, policy=policy)
    base = url if "://" in url else f"https://{url}"
    robots_url = absolute("/robots.txt", base)
    if robots_url is None:
        raise ValueError(f"{url!r} is no http or https URL")
    home, robots_reply = await asyncio.gather(
        fetcher.get(base, policy=policy, accept="text/html, */*;q=0.8"),
        fetcher.get(robots_url, policy=policy, accept="text/plain, */*;q=0.5"),
    )
    problems = []
    robots = None
    if robots_reply.status is None:
        problems.append(f"{robots_url}: {describe(robots_reply)}")
    else:
        robots = parse_robots(robots_reply.body, status=robots_reply.status, url=robots_reply.final_url or robots_url)
    if home.status != 200:
        text = describe(home)
        if home.status is None and robots_reply.status is None and text == describe(robots_reply):
            problems.clear()  # one fault of the host, not two of its documents
        problems.append(f"{base}: {text}")
    landed = home.final_url or base
    body = decode(home.body).data if home.status == 200 else b""
    sitemaps, feeds = await asyncio.gather(
        _sitemaps(fetcher, policy, landed, robots, body), _feeds(fetcher, policy, base, landed, body)
    )
    return Discovered(
        url=base,
        feeds=tuple(feeds),
        sitemaps=tuple(f for f in sitemaps if f.kind == "sitemap"),
        news_sitemaps=tuple(f for f in sitemaps if f.kind == "news_sitemap"),
        robots=robots,
        robots_url=robots_url,
        problems=tuple(problems),
    )


def default_policy() -> FetchPolicy:
    """How the library fetches when nobody says otherwise: politely, under its own name."""
    from monitor.config import Settings  # noqa: PLC0415 - pydantic is for those who configure

    return FetchPolicy(user_agent=Settings().user_agent)


async def _sitemaps(
    fetcher: Fetcher, policy: FetchPolicy | None, home: str, robots: Robots | None, body: bytes
) -> list[Found]:
    named = [(url, "robots.txt") for url in (robots.sitemaps if robots else ())]
    named += [(link.url, "link rel=sitemap") for link in discovery.sitemap_links(body, home)]
    found = await asyncio.gather(*(try_sitemap(fetcher, policy, url, how) for url, how in _unique(named)))
    kept = [f for f in found if f is not None]
    if any(f.ok for f in kept):
        return kept
    guesses = [(absolute(path, home), f"well-known path {path}") for path in discovery.WELL_KNOWN_SITEMAPS]
    seen = {f.url for f in kept}
    for url, how in guesses:
        if url is None or url in seen:
            continue
        guess = await try_sitemap(fetcher, policy, url, how, guessed=True)
        if guess is not None and guess.ok:
            return [*kept, guess]
    return kept


async def try_sitemap(
    fetcher: Fetcher, policy: FetchPolicy | None, url: str, how: str, *, guessed: bool = False
) -> Found:
    reply = await fetcher.get(url, policy=policy, accept="application/xml, text/xml;q=0.9, */*;q=0.5")
    if reply.status != 200:
        return _unread(url, "sitemap", how, reply, guessed=guessed)
    try:
        sitemap = await asyncio.to_thread(parse_sitemap, reply.body, reply.final_url or url, whole=reply.complete)
    except NotASitemap as error:
        return Found(url, "sitemap", how, verdict=str(error), guessed=guessed)
    rows = len(sitemap.rows)
    news = sum(1 for row in sitemap.rows if row.news is not None)
    by_name = not rows and "news" in url.partition("?")[0].rsplit("/", 1)[-1].casefold()
    kind: SourceKind = "news_sitemap" if (rows and news * 2 >= rows) or by_name else "sitemap"
    return Found(url, kind, how, size=rows, form=sitemap.kind, guessed=guessed)


async def _feeds(fetcher: Fetcher, policy: FetchPolicy | None, base: str, home: str, body: bytes) -> list[Found]:
    links = [link for link in discovery.feed_links(body, home) if not link.comments]
    named = [(link.url, "link rel=alternate") for link in links]
    found = [
        f
        for f in await asyncio.gather(*(try_feed(fetcher, policy, url, how) for url, how in _unique(named)))
        if f is not None
    ]
    if any(f.ok for f in found):
        return found
    # The address given may be a feed itself.
    itself = await try_feed(fetcher, policy, base, "the address itself", guessed=True)
    if itself is not None and itself.ok:
        return [itself]
    for path in discovery.WELL_KNOWN_FEEDS:
        url = absolute(path, home)
        if url is None:
            break
        guess = await try_feed(fetcher, policy, url, f"well-known path {path}", guessed=True)
        if guess is not None and guess.ok:
            return [*found, guess]
    return found


async def try_feed(fetcher: Fetcher, policy: FetchPolicy | None, url: str, how: str, *, guessed: bool = False) -> Found:
    reply = await fetcher.get(url, policy=policy, accept="application/rss+xml, application/atom+xml, */*;q=0.5")
    if reply.status != 200:
        return _unread(url, "feed", how, reply, guessed=guessed)
    try:
        feed = await asyncio.to_thread(
            parse_feed, decode(reply.body).data, reply.final_url or url, reply.headers.get("content-type")
        )
    except NotAFeed as error:
        return Found(url, "feed", how, verdict=str(error), guessed=guessed)
    return Found(url, "feed", how, size=feed.size, form=feed.format, title=feed.title, guessed=guessed)


def _unread(url: str, kind: SourceKind, how: str, reply: Reply, *, guessed: bool) -> Found:
    transient = not guessed and (reply.status is None or reply.status == 429 or reply.status >= 500)
    return Found(url, kind, how, verdict=describe(reply), guessed=guessed, transient=transient)


def _unique(named: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first of each address, at most 200: a page could name a million."""
    seen: set[str] = set()
    kept = []
    for url, how in named:
        key = page_key(url)
        if key not in seen:
            seen.add(key)
            kept.append((url, how))
    return kept[:200]
