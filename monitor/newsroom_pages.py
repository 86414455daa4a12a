"""The documents of the simulated newsroom: values in, bytes out.

Each writer takes the articles it lists, in the order it lists them, and gives back a whole document in UTF-8. What
is published follows RSS 2.0, RFC 4287 (Atom), JSON Feed 1.1, sitemaps.org 0.9 and Google's news sitemap schema.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import partial
from html import escape
from itertools import islice
from random import Random
from typing import Literal

Listing = Literal["feed", "news", "sitemap"]

SITE_NAME = "The Ellery Courier"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_ATOM = "http://www.w3.org/2005/Atom"
_SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
_NEWS = "http://www.google.com/schemas/sitemap-news/0.9"


@dataclass(frozen=True, slots=True)
class Article:
    """One article as it stands. A change makes a new value; `number` stays, and names it to every method.

    `url` is absolute and without trackers. `lists` are the listings it was published in, `hidden` those it was taken
    out of since. `status` is what its page answers: 200, an error, or a redirect to `location`. `child` is the number
    of the sitemap file that holds it. `utm` is True where its feed links carry trackers.
    """

    number: int
    path: str
    url: str
    title: str
    body: str
    section: str
    author: str
    published: datetime
    modified: datetime
    lists: frozenset[Listing]
    child: int
    utm: bool = False
    hidden: frozenset[Listing] = frozenset()
    status: int = 200
    location: str | None = None

    @property
    def listed(self) -> frozenset[Listing]:
        """The listings that may show it now; none while it is withdrawn. Windows and ages cut further."""
        return self.lists - self.hidden if self.status == 200 else frozenset()

    @property
    def guid(self) -> str:
        """Its tag URI (RFC 4151), the same in every feed and after every edit."""
        return f"tag:courier.example,2026:{self.number}"


@dataclass(frozen=True, slots=True)
class Build:
    """How a listing was built: at which instant, and as which build. A new `number` alone makes new bytes."""

    at: datetime
    number: int


@dataclass(frozen=True, slots=True)
class Site:
    """The whole site at one moment: `articles` newest first, `base` its address with a slash at the end.

    `child_changed` tells of each sitemap file, by number, when it changed. The other fields are those of `Newsroom`.
    """

    base: str
    sections: tuple[str, ...]
    articles: tuple[Article, ...]
    window: int
    news_hours: float
    now: datetime
    build: Build
    child_changed: Mapping[int, datetime]
    generation_time_lastmod: bool

    def listed(self, listing: Listing) -> Iterator[Article]:
        """The articles that `listing` may show, newest first."""
        return (article for article in self.articles if listing in article.listed)

    def shown(self, section: str | None = None) -> tuple[list[Article], Build]:
        """What the feed of a section, or that of all, shows, and its build: as late as its latest change."""
        wanted = (article for article in self.listed("feed") if section in (None, article.section))
        articles = list(islice(wanted, self.window))
        return articles, self.built(articles)

    def built(self, articles: Iterable[Article]) -> Build:
        """The build of a listing of `articles`."""
        return replace(self.build, at=max([self.build.at, *(article.modified for article in articles)]))

    @property
    def generated(self) -> datetime | None:
        """The instant that stands for every lastmod, None where each has its own."""
        return self.now if self.generation_time_lastmod else None


def listing(site: Site, path: str) -> tuple[bytes, str] | None:
    """The listing (or robots.txt, or home page) at `path` and its content type; None where there is none."""
    base = site.base
    found: dict[str, tuple[Callable[[], bytes], str]] = {
        "/": (partial(_home, site), "text/html; charset=utf-8"),
        "/robots.txt": (partial(robots, base), "text/plain; charset=utf-8"),
        "/feed.xml": (lambda: rss(base, *site.shown()), "application/rss+xml; charset=utf-8"),
        "/feed.json": (lambda: json_feed(base, *site.shown()), "application/feed+json"),
        "/news-sitemap.xml": (partial(_news_sitemap, site), "application/xml"),
        "/sitemap_index.xml": (partial(_sitemap_index, site), "application/xml"),
    }
    for name in site.sections:
        found[f"/feeds/{name}.xml"] = (partial(_section_feed, site, name), "application/atom+xml; charset=utf-8")
    for child in site.child_changed:
        found[f"/sitemaps/pages-{child}.xml.gz"] = (partial(_child, site, child), "application/gzip")
    if path not in found:
        return None
    write, content_type = found[path]
    return write(), content_type


def _home(site: Site) -> bytes:
    newest = [article for article in site.articles if article.status == 200][:200]
    return home(site.base, site.sections, newest, site.built(newest))


def _section_feed(site: Site, section: str) -> bytes:
    return atom(site.base, section, *site.shown(section))


def _news_sitemap(site: Site) -> bytes:
    youngest = site.now - timedelta(hours=site.news_hours)
    fresh = (article for article in site.listed("news") if article.published > youngest)
    # Google reads 1,000 news entries of a file at most.
    return urlset(islice(fresh, 1000), site.build, lastmod=site.generated, news=True)


def _sitemap_index(site: Site) -> bytes:
    changed = site.child_changed.items()
    files = {f"{site.base}sitemaps/pages-{number}.xml.gz": site.generated or at for number, at in changed}
    return sitemap_index(files, site.build)


def _child(site: Site, child: int) -> bytes:
    rows = (article for article in site.listed("sitemap") if article.child == child)
    return gzip.compress(urlset(rows, site.build, lastmod=site.generated), mtime=0)


def rfc3339(instant: datetime) -> str:
    """An instant in UTC as ``2026-12-01T09:00:03Z`` (RFC 3339; also a W3C-DTF date to the second)."""
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def feed_link(article: Article, medium: str) -> str:
    """The article's address as a feed gives it: with trackers naming the feed's format where it has `utm`."""
    return f"{article.url}?utm_source={medium}&utm_medium=feed" if article.utm else article.url


def _paragraphs(article: Article) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in article.body.split("\n\n"))


def _summary(article: Article) -> str:
    return article.body.split("\n\n")[0]


def rss(base: str, articles: Sequence[Article], build: Build) -> bytes:
    """RSS 2.0 of all sections. `base` is the site's address with its slash. An edited item has an `atom:updated`."""
    items = []
    for article in articles:
        edited = article.modified != article.published
        updated = f"<atom:updated>{rfc3339(article.modified)}</atom:updated>" if edited else ""
        items.append(
            f'<item><guid isPermaLink="false">{article.guid}</guid><title>{escape(article.title)}</title>'
            f"<link>{escape(feed_link(article, 'rss'))}</link><description>{escape(_summary(article))}</description>"
            f"<dc:creator>{escape(article.author)}</dc:creator><category>{escape(article.section)}</category>"
            f"<pubDate>{format_datetime(article.published, usegmt=True)}</pubDate>{updated}</item>\n"
        )
    return (
        f'{_DECLARATION}<!-- build {build.number} -->\n<rss version="2.0" xmlns:atom="{_ATOM}" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>{SITE_NAME}</title><link>{base}</link>'
        f"<description>All the news of {SITE_NAME}</description><language>en</language>"
        f'<atom:link href="{base}feed.xml" rel="self" type="application/rss+xml"/>'
        f"<lastBuildDate>{format_datetime(build.at, usegmt=True)}</lastBuildDate>\n{''.join(items)}</channel></rss>\n"
    ).encode()


def atom(base: str, section: str, articles: Sequence[Article], build: Build) -> bytes:
    """Atom 1.0 (RFC 4287) of one section, with full content."""
    entries = [
        f"<entry><id>{article.guid}</id><title>{escape(article.title)}</title>"
        f'<link rel="alternate" href="{escape(feed_link(article, "atom"))}"/>'
        f"<published>{rfc3339(article.published)}</published><updated>{rfc3339(article.modified)}</updated>"
        f"<author><name>{escape(article.author)}</name></author><summary>{escape(_summary(article))}</summary>"
        f'<content type="html">{escape(_paragraphs(article))}</content></entry>\n'
        for article in articles
    ]
    address = escape(f"{base}feeds/{section}.xml")
    return (
        f'{_DECLARATION}<!-- build {build.number} -->\n<feed xmlns="{_ATOM}"><id>{address}</id>'
        f"<title>{SITE_NAME}: {escape(section)}</title><updated>{rfc3339(build.at)}</updated>"
        f'<link rel="self" href="{address}"/><link rel="alternate" href="{base}"/>\n{"".join(entries)}</feed>\n'
    ).encode()


def json_feed(base: str, articles: Sequence[Article], build: Build) -> bytes:
    """JSON Feed 1.1 of all sections. The build stands in an extension object, as the format has no field for it."""
    items = [
        {
            "id": article.guid,
            "url": feed_link(article, "json"),
            "title": article.title,
            "content_html": _paragraphs(article),
            "summary": _summary(article),
            "date_published": rfc3339(article.published),
            "date_modified": rfc3339(article.modified),
            "authors": [{"name": article.author}],
            "tags": [article.section],
        }
        for article in articles
    ]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": SITE_NAME,
        "home_page_url": base,
        "feed_url": f"{base}feed.json",
        "language": "en",
        "_build": {"number": build.number, "at": rfc3339(build.at)},
        "items": items,
    }
    return json.dumps(feed, ensure_ascii=False, indent=1).encode()


def urlset(articles: Iterable[Article], build: Build, *, lastmod: datetime | None, news: bool = False) -> bytes:
    """A urlset (sitemaps.org 0.9). `lastmod`, if given, stands for every row's own; `news` adds the news blocks."""
    rows = []
    for article in articles:
        block = ""
        if news:
            block = (
                f"<news:news><news:publication><news:name>{SITE_NAME}</news:name><news:language>en</news:language>"
                f"</news:publication><news:publication_date>{rfc3339(article.published)}</news:publication_date>"
                f"<news:title>{escape(article.title)}</news:title></news:news>"
            )
        when = rfc3339(lastmod or article.modified)
        rows.append(f"<url><loc>{escape(article.url)}</loc><lastmod>{when}</lastmod>{block}</url>\n")
    names = f'xmlns="{_SITEMAP}"' + (f' xmlns:news="{_NEWS}"' if news else "")
    return f"{_DECLARATION}<!-- build {build.number} -->\n<urlset {names}>\n{''.join(rows)}</urlset>\n".encode()


def sitemap_index(children: Mapping[str, datetime], build: Build) -> bytes:
    """A sitemap index: address of each child and when that file changed, in the order given."""
    rows = "".join(
        f"<sitemap><loc>{escape(url)}</loc><lastmod>{rfc3339(changed)}</lastmod></sitemap>\n"
        for url, changed in children.items()
    )
    return (
        f'{_DECLARATION}<!-- build {build.number} -->\n<sitemapindex xmlns="{_SITEMAP}">\n{rows}</sitemapindex>\n'
    ).encode()


def robots(base: str) -> bytes:
    """robots.txt (RFC 9309) that allows all but /admin/ and names the index and the news sitemap."""
    return (
        f"User-agent: *\nDisallow: /admin/\n\nSitemap: {base}sitemap_index.xml\nSitemap: {base}news-sitemap.xml\n"
    ).encode()


def home(base: str, sections: Sequence[str], articles: Iterable[Article], build: Build) -> bytes:
    """The home page: links to the feeds in its head, to the given articles in its body."""
    feeds = [("application/rss+xml", SITE_NAME, "feed.xml"), ("application/feed+json", SITE_NAME, "feed.json")]
    feeds += [("application/atom+xml", f"{SITE_NAME}: {name}", f"feeds/{name}.xml") for name in sections]
    heads = "".join(
        f'<link rel="alternate" type="{kind}" title="{escape(title)}" href="{base}{escape(path)}">\n'
        for kind, title, path in feeds
    )
    links = "".join(f'<li><a href="{article.path}">{escape(article.title)}</a></li>\n' for article in articles)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{SITE_NAME}</title>\n{heads}</head>\n'
        f"<body><h1>{SITE_NAME}</h1>\n<ul>\n{links}</ul>\n<!-- build {build.number} --></body></html>\n"
    ).encode()


def article_page(article: Article, noise: str) -> bytes:
    """An article's page: canonical link, JSON-LD NewsArticle, the text, and what `noise` seeds.

    The noise is what no reader would call a change: an advertisement's id inside the text, a view counter beside it.
    """
    random = Random(noise)  # noqa: S311 - decoration, not a secret
    data = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": article.title,
        "datePublished": rfc3339(article.published),
        "dateModified": rfc3339(article.modified),
        "mainEntityOfPage": article.url,
        "articleSection": article.section,
        "author": [{"@type": "Person", "name": article.author}],
    }
    # "</script>" in a headline would end the block: "<" is as good escaped in JSON.
    block = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    first, *rest = (f"<p>{escape(text)}</p>\n" for text in article.body.split("\n\n"))
    advert = f'<aside class="ad" data-ad-id="{random.getrandbits(48):012x}">Advertisement</aside>\n'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(article.title)} | {SITE_NAME}'
        f'</title>\n<link rel="canonical" href="{escape(article.url)}">\n'
        f'<script type="application/ld+json">{block}</script></head>\n<body><header>{SITE_NAME} '
        f'<span class="views">{random.randrange(100, 99999)} views</span></header>\n'
        f"<main><article><h1>{escape(article.title)}</h1>\n"
        f'<p class="byline">By {escape(article.author)}, <time datetime="{rfc3339(article.published)}">'
        f"{article.published:%d %B %Y}</time></p>\n{first}{advert}{''.join(rest)}</article></main></body></html>\n"
    ).encode()
