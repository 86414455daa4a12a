"""Where a site's feeds and sitemaps may be: what a page's head names, and the paths that are worth a guess.

Sources: RSS autodiscovery (rssboard.org), HTML Living Standard section 4.6 (link types), WHATWG `rel=feed`. The order
of the well-known paths is that of their frequency in robots.txt files of news sites.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.core.markup import Element, is_html, read_markup
from monitor.core.page import base_url
from monitor.core.url import absolute

WELL_KNOWN_SITEMAPS = ("/sitemap.xml", "/sitemap_index.xml", "/sitemap-index.xml", "/sitemap.xml.gz")
WELL_KNOWN_FEEDS = ("/feed", "/rss", "/atom.xml", "/index.xml")
WELL_KNOWN_NEWS = (
    "/news-sitemap.xml",
    "/sitemap_news.xml",
    "/sitemap-news.xml",
    "/sitemap_google_news.xml/",
    "/googlenews.xml",
    "/feed/google-latest-news/sitemap-google-news",
    "/sitemap/news.xml",
    "/arcio/news-sitemap/",
    "/sitemaps/news.xml",
    "/sitemaps/google_news",
    "/arc/outboundfeeds/news-sitemap/?outputType=xml",
    "/tncms/sitemap/news.xml",
)

_MAKES = ("rss", "atom", "x-rss", "x-atom", "rdf")
_FEED_TYPES = frozenset(
    ["application/feed+json", "text/rss", "text/atom", "application/rss", "application/atom"]
) | frozenset(f"{kind}/{make}+xml" for kind in ("application", "text") for make in _MAKES)
_VAGUE_TYPES = frozenset(["application/xml", "text/xml", "application/json", "application/rdf", "text/rdf"])
# WordPress names each post's API document, blogs and players an oEmbed document: neither is a feed.
_NO_FEED = re.compile(r"/wp-json\b|[/?&=]oembed\b|rest_route=|\bopensearch|/rsd\.xml|/osd\.xml|/wlwmanifest", re.I)
_COMMENTS_URL = re.compile(r"(?:^|[/=_-])comments(?:[/=_.-]|$)", re.I)
_COMMENTS_TITLE = re.compile(
    r"\bcomments\b|\bkommentar(?:e|er)?(?:-feed|feed|strøm|er\b)|commentaires|comentarios|comentários|comentaris|\bcommenti\b"
    r"|komentar|reacties|reactiefeed|комментари|коментар|\byorum|コメント|评论|評論|留言|迴響|댓글",
    re.I,
)


@dataclass(frozen=True, slots=True)
class FoundLink:
    """A feed or sitemap that a page names: absolute `url`, `type` as declared (lower case, no parameters), `title`.

    `comments` is True for a feed of readers' comments, which lists no new pages.
    """

    url: str
    type: str = ""
    title: str | None = None
    comments: bool = False


def feed_links(body: bytes, url: str, content_type: str | None = None) -> tuple[FoundLink, ...]:
    """Feeds that the page at `url` names in `link` elements, each address once, in document order.

    A link counts with ``rel=alternate`` and a feed's type, or with ``rel=feed``; of the types that many things have
    (``text/xml``, ``application/json``) only what does not look like something else. Never raises.
    """
    return _links(body, url, content_type, feed=True)


def sitemap_links(body: bytes, url: str, content_type: str | None = None) -> tuple[FoundLink, ...]:
    """Sitemaps that the page at `url` names with ``link rel=sitemap``, each address once, in document order."""
    return _links(body, url, content_type, feed=False)


def _links(body: bytes, url: str, content_type: str | None, *, feed: bool) -> tuple[FoundLink, ...]:
    if not is_html(body, content_type):
        return ()
    markup = read_markup(body, content_type)
    base = base_url(markup, url)
    found: dict[str, FoundLink] = {}
    for link in markup.links:
        if not (_names_feed(link) if feed else "sitemap" in link.tokens("rel")):
            continue
        address = absolute(_web_scheme(link.get("href")), base)
        if address is not None and address not in found:
            title = link.get("title") or None
            found[address] = FoundLink(address, _type(link), title, feed and _is_comments(address, title))
    return tuple(found.values())


def _type(link: Element) -> str:
    return link.get("type").partition(";")[0].strip().lower()


def _names_feed(link: Element) -> bool:
    rel = link.tokens("rel")
    if "stylesheet" in rel or not link.get("href"):
        return False
    declared = _type(link)
    if "alternate" in rel and declared in _FEED_TYPES:
        return True
    return ("feed" in rel or ("alternate" in rel and declared in _VAGUE_TYPES)) and not _NO_FEED.search(
        link.get("href")
    )


def _web_scheme(href: str) -> str:
    """`feed://host/x` and `feed:https://host/x` are what desktop readers registered for; servers speak HTTP."""
    if href[:5].lower() != "feed:":
        return href
    return f"http:{href[5:]}" if href[5:7] == "//" else href[5:]


def _is_comments(url: str, title: str | None) -> bool:
    path = url.partition("://")[2].partition("/")[2]
    return _COMMENTS_URL.search(path) is not None or (title is not None and _COMMENTS_TITLE.search(title) is not None)
