"""Sound documents of every kind that lint knows, to be spoilt in one place."""

from __future__ import annotations

from datetime import UTC, datetime

from monitor.core.http import Reply
from monitor.core.lint import Report, lint
from monitor.core.lint_rules import Finding

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
URL = "https://e.example/news/map.xml"
SITE = "https://e.example/news"
MAP_NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
NEWS_NS = "http://www.google.com/schemas/sitemap-news/0.9"
ROW = f"<url><loc>{SITE}/a</loc><lastmod>2026-11-30T10:00:00+01:00</lastmod></url>\n"
NEWS = (
    "<news:news><news:publication><news:name>The Example</news:name><news:language>en</news:language>"
    "</news:publication><news:publication_date>2026-12-01T08:00:00Z</news:publication_date>"
    "<news:title>A headline</news:title></news:news>"
)
ITEM = (
    "<item><title>A</title><link>https://e.example/a</link><guid>https://e.example/a</guid>"
    "<pubDate>Tue, 01 Dec 2026 09:00:00 GMT</pubDate></item>\n"
)
ENTRY = (
    "<entry><id>tag:e.example,2026:1</id><title>A</title><updated>2026-12-01T09:00:00Z</updated>"
    '<link href="https://e.example/a"/></entry>\n'
)
RDF_ITEM = (
    '<item rdf:about="https://e.example/a"><title>A</title><link>https://e.example/a</link>'
    "<dc:date>2026-12-01T09:00:00Z</dc:date></item>\n"
)
JSON_ITEM = '{"id": "1", "url": "https://e.example/a", "content_text": "A", "date_published": "2026-12-01T09:00:00Z"}'


def urlset(
    rows: str = ROW, *, declaration: str = '<?xml version="1.0" encoding="UTF-8"?>\n', ns: str = MAP_NS
) -> bytes:
    """A urlset that declares the news namespace where it uses it."""
    news = f' xmlns:news="{NEWS_NS}"' if "<news:" in rows else ""
    return f'{declaration}<urlset xmlns="{ns}"{news}>\n{rows}</urlset>'.encode()


def news(block: str = NEWS) -> bytes:
    """A news sitemap of one row."""
    return urlset(f"<url><loc>{SITE}/a</loc>{block}</url>")


def index(rows: str = f"<sitemap><loc>{SITE}/1.xml</loc></sitemap>") -> bytes:
    """A sitemap index."""
    return f'<sitemapindex xmlns="{MAP_NS}">\n{rows}</sitemapindex>'.encode()


def rss(
    items: str = ITEM,
    channel: str = "<title>T</title><link>https://e.example/</link><description>D</description>",
    root: str = '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">',
    itself: str = '<atom:link rel="self" href="https://e.example/f"/>',
) -> bytes:
    """An RSS 2.0 feed."""
    return f"{root}<channel>{channel}{itself}\n{items}</channel></rss>".encode()


def atom(
    entries: str = ENTRY,
    feed: str = "<id>https://e.example/</id><title>T</title><updated>2026-12-01T09:00:00Z</updated>"
    "<author><name>N</name></author>",
    ns: str = ' xmlns="http://www.w3.org/2005/Atom"',
    itself: str = '<link rel="self" href="https://e.example/f"/>',
) -> bytes:
    """An Atom 1.0 feed."""
    return f"<feed{ns}>{feed}{itself}\n{entries}</feed>".encode()


def rdf(
    items: str = RDF_ITEM,
    channel: str = '<channel rdf:about="https://e.example/"><title>T</title><link>https://e.example/</link>'
    '<description>D</description><items><rdf:Seq><rdf:li rdf:resource="https://e.example/a"/></rdf:Seq></items>'
    '<atom:link rel="self" href="https://e.example/f"/></channel>\n',
) -> bytes:
    """An RSS 1.0 feed."""
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom">{channel}{items}</rdf:RDF>'
    ).encode()


def json_feed(
    items: str = JSON_ITEM,
    feed: str = '"version": "https://jsonfeed.org/version/1.1", "title": "T", "feed_url": "https://e.example/f"',
) -> bytes:
    """A JSON Feed 1.1."""
    return f'{{{feed}, "items": [{items}]}}'.encode()


SOUND = {
    "urlset": urlset(),
    "news": news(),
    "index": index(),
    "text": f"{SITE}/a\n{SITE}/b\n".encode(),
    "rss": rss(),
    "atom": atom(),
    "rdf": rdf(),
    "json": json_feed(),
}
"""Documents in which there is nothing to find, not even a note."""


def check(data: bytes, url: str | None = URL, reply: Reply | None = None) -> Report:
    """Lint at a fixed time."""
    return lint(data, url, now=NOW, reply=reply)


def rules(data: bytes, url: str | None = URL) -> list[str]:
    """The rules that a document breaks, each once, sorted."""
    return sorted({finding.rule for finding in check(data, url).findings})


def only(data: bytes, rule: str, url: str | None = URL) -> Finding:
    """The one finding of `rule`."""
    found = [finding for finding in check(data, url).findings if finding.rule == rule]
    assert len(found) == 1, found
    return found[0]
