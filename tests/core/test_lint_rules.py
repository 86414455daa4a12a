"""Every rule of lint by the smallest document that breaks it and nothing else; and sound ones that break none."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from monitor.core import lint_rules
from monitor.core.lint_rules import RULES
from tests.core.lint_documents import (
    ENTRY,
    ITEM,
    JSON_ITEM,
    NEWS,
    NEWS_NS,
    RDF_ITEM,
    ROW,
    SITE,
    SOUND,
    atom,
    check,
    index,
    json_feed,
    news,
    rdf,
    rss,
    rules,
    urlset,
)


def row(loc: str = f"{SITE}/a", more: str = "") -> bytes:
    return urlset(f"<url><loc>{loc}</loc>{more}</url>")


def block(before: str, after: str) -> bytes:
    assert before in NEWS
    return news(NEWS.replace(before, after))


def item(before: str, after: str) -> bytes:
    assert before in ITEM
    return rss(ITEM.replace(before, after))


def entry(before: str, after: str) -> bytes:
    assert before in ENTRY
    return atom(ENTRY.replace(before, after))


def json_item(before: str, after: str) -> bytes:
    assert before in JSON_ITEM
    return json_feed(JSON_ITEM.replace(before, after))


def rows(number: int, lastmod: str = "") -> bytes:
    return urlset("".join(f"<url><loc>{SITE}/{n}</loc>{lastmod}</url>" for n in range(number)))


SITEMAPS: dict[str, bytes] = {
    "gzip.damaged": gzip.compress(urlset())[:-3],
    "gzip.layers": gzip.compress(gzip.compress(gzip.compress(gzip.compress(urlset())))),
    "gzip.trailing": gzip.compress(urlset()) + b"more",
    "gzip.bomb": gzip.compress(b" " * 17_000_000),
    "document.empty": b"  \n",
    "document.html": b"<!doctype html><html><head><title>Not found</title></head><body></body></html>",
    "document.other": b"<error><code>wp_die</code></error>",
    "encoding.utf8": urlset(declaration='<?xml version="1.0" encoding="iso-8859-1"?>').replace(b"/a<", b"/\xe9<"),
    "encoding.declared": urlset(declaration='<?xml version="1.0" encoding="iso-8859-1"?>'),
    "encoding.wrong": row(f"{SITE}/a").replace(b"/a<", b"/\xe9<"),
    "xml.leading": b"Warning: something" + urlset(declaration=""),
    "xml.blank": b"\n" + urlset(),
    "xml.case": urlset().replace(b"urlset", b"URLSET").replace(b"url>", b"URL>"),
    "xml.control": urlset().replace(b"/a<", b"/a<!-- \x0b --><"),
    "xml.entity": row(f"{SITE}/a?b=1&c=2"),
    "xml.prefix": urlset(f"<url><loc>{SITE}/a</loc><image:image/></url>"),
    "xml.root": urlset().replace(b"<urlset ", b'<urlset a="1" a="2" '),
    "xml.damaged": urlset().replace(b"</urlset>", b""),
    "row.damaged": urlset(f"{ROW}<url><loc>{SITE}/b</lok></url>"),
    "xml.attributes": urlset(f"<!-- -->{ROW}").replace(
        b"<urlset", b"<urlset " + b" ".join(b'a%d="%020d"' % (n, n) for n in range(1500))
    ),
    "xml.doctype": urlset(declaration='<!DOCTYPE urlset [<!ENTITY x "y">]>'),
    "rows.protocol": rows(50_001),
    "rows.mixed": urlset(f"{ROW}<sitemap><loc>{SITE}/1.xml</loc></sitemap>"),
    "rows.empty": urlset(""),
    "index.self": index("<sitemap><loc>https://e.example/news/map.xml</loc></sitemap>"),
    "index.nested": index(f"<sitemap><loc>{SITE}/sitemap_index.xml</loc></sitemap>"),
    "index.folder": index("<sitemap><loc>https://e.example/1.xml</loc></sitemap>"),
    "index.field": index(f"<sitemap><loc>{SITE}/1.xml</loc><priority>0.5</priority></sitemap>"),
    "namespace.missing": urlset(ns=""),
    "namespace.wrong": urlset(ns="http://www.google.com/schemas/sitemap/0.84"),
    "namespace.extension": news().replace(NEWS_NS.encode(), NEWS_NS.encode() + b"/"),
    "row.loc": urlset(f"{ROW}<url><loc> </loc></url>"),
    "row.locs": urlset(f"<url><loc>{SITE}/a</loc><loc>{SITE}/b</loc></url>"),
    "row.markup": urlset(f"<url><loc><a>{SITE}/a</a></loc></url>"),
    "row.entity": urlset(f"<url><loc>{SITE}/&x;</loc></url>", declaration='<!DOCTYPE urlset [<!ENTITY x "y">]>'),
    "row.address": row("ftp://e.example/news/a"),
    "row.relative": row("/news/a"),
    "row.encoding": row(f"{SITE}/\ufffd"),
    "row.length": row(f"{SITE}/{'a' * 2048}"),
    "row.element": row(more="<pubDate>2026-11-30</pubDate>"),
    "row.escape": row(f"{SITE}/a b"),
    "row.lastmod": row(more="<lastmod>yesterday</lastmod>"),
    "row.changefreq": row(more="<changefreq>often</changefreq>"),
    "row.priority": row(more="<priority>1.5</priority>"),
    "loc.duplicate": urlset(ROW + ROW),
    "loc.host": row("https://other.example/news/a"),
    "loc.scheme": row("http://e.example/news/a"),
    "loc.folder": row("https://e.example/sport/a"),
    "lastmod.form": row(more="<lastmod>2026-11-30 10:00:00</lastmod>"),
    "lastmod.empty": row(more="<lastmod/>"),
    "lastmod.future": row(more="<lastmod>2026-12-01T14:00:00Z</lastmod>"),
    "lastmod.identical": rows(20, "<lastmod>2026-12-01T09:00:00Z</lastmod>"),
    "lastmod.one-day": rows(20, "<lastmod>2026-11-30</lastmod>"),
    "row.news": news(NEWS + NEWS),
    "news.protocol": urlset("".join(f"<url><loc>{SITE}/{n}</loc>{NEWS}</url>" for n in range(1_001))),
    "news.empty": urlset('<!-- quiet <news: --> <x xmlns="urn:x"/>'),
    "news.publication": news(re.sub("<news:publication>.*</news:publication>", "", NEWS)),
    "news.name": block("The Example", " "),
    "news.name-suffix": block("The Example", "The Example (subscription)"),
    "news.language": block("<news:language>en</news:language>", ""),
    "news.language-code": block(">en<", ">English<"),
    "news.language-region": block(">en<", ">en-US<"),
    "news.date": block("2026-12-01T08:00:00Z", ""),
    "news.date-invalid": block("2026-12-01T08:00:00Z", "2026-12-32"),
    "news.date-form": block("2026-12-01T08:00:00Z", "Tue, 01 Dec 2026 08:00:00 GMT"),
    "news.date-future": block("2026-12-01T08:00:00Z", "2026-12-01T14:00:00Z"),
    "news.old": block("2026-12-01T08:00:00Z", "2026-11-29T11:59:59Z"),
    "news.title": block("A headline", ""),
    "news.repeated": block(
        "<news:title>A headline</news:title>", "<news:title>A</news:title><news:title>B</news:title>"
    ),
    "news.deprecated": block("<news:title>", "<news:keywords>a, b</news:keywords><news:title>"),
}

ENCLOSURE = '<enclosure url="https://e.example/a.mp3" type="audio/mpeg" length="'
FEEDS: dict[str, bytes] = {
    "encoding.label": b'<?xml version="1.0" encoding="iso-8859-1"?>' + rss().replace(b">T<", ">für alle<".encode()),
    "encoding.invalid": rss().replace(b">T<", ">Zeitung für alle, größer als nie zuvor ".encode() + b"\xff<"),
    "encoding.unknown": b'<?xml version="1.0" encoding="x-fake"?>' + rss(),
    "xml.malformed": rss().replace(b">D<", b">D & D<"),
    "xml.cut": rss(ITEM + ITEM.replace("/a", "/b")).replace(b"</channel></rss>", b""),
    "xml.excess": rss(itself='<atom:link rel="self" href="https://e.example/f"/>' + "<a>" * 600 + "</a>" * 600),
    "xml.before": b"Warning: something " + b'<?xml version="1.0"?>' + rss(),
    "xml.after": rss() + b"<!-- built --> Fatal error",
    "xml.character": rss().replace(b">D<", b">D\x0b<"),
    "xml.entities": b'<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + rss(),
    "feed.expired": json_feed(feed='"version": "https://jsonfeed.org/version/1.1", "title": "T", '
                              '"feed_url": "https://e.example/f", "expired": true'),
    "feed.empty": rss(""),
    "feed.self": rss(itself=""),
    "feed.order": rss("".join(
        ITEM.replace("/a", f"/{n}").replace("09:00", f"0{hour}:00") for n, hour in enumerate((9, 7, 8)))),
    "feed.old-format": rss(root='<rss version="0.92" xmlns:atom="http://www.w3.org/2005/Atom">'),
    "feed.date": rss(channel="<title>T</title><link>https://e.example/</link><description>D</description>"
                     "<lastBuildDate>today</lastBuildDate>"),
    "entry.date": item("Tue, 01 Dec 2026 09:00:00 GMT", "today"),
    "entry.future": item("Tue, 01 Dec 2026 09:00:00 GMT", "Tue, 01 Dec 2026 14:00:00 GMT"),
    "entry.undated": item("<pubDate>Tue, 01 Dec 2026 09:00:00 GMT</pubDate>", ""),
    "entry.identity": item("<link>https://e.example/a</link><guid>https://e.example/a</guid>", ""),
    "entry.link": item("<link>https://e.example/a</link>", "<link>mailto:a@e.example</link>"),
    "entry.id": json_item('"id": "1"', '"id": 1'),
    "entry.invalid": json_feed(f'{JSON_ITEM}, "text"'),
    "rss.version": rss(root='<rss xmlns:atom="http://www.w3.org/2005/Atom">'),
    "rss.channel": rss().replace(b"<channel>", b"").replace(b"</channel>", b""),
    "rss.channel-field": rss(channel="<title>T</title><link>https://e.example/</link>"),
    "rss.channel-blank": rss(channel="<title>T</title><link>https://e.example/</link><description/>"),
    "rss.item-text": item("<title>A</title>", ""),
    "rss.guid": item("<guid>https://e.example/a</guid>", ""),
    "rss.guid-duplicate": rss(ITEM + ITEM),
    "rss.permalink": item("<guid>https://e.example/a</guid>", "<guid>17</guid>"),
    "rss.permalink-value": item("<guid>", '<guid isPermaLink="no">'),
    "rss.date-form": item("Tue, 01 Dec 2026 09:00:00 GMT", "2026-12-01T09:00:00Z"),
    "rss.weekday": item("Tue, 01", "Mon, 01"),
    "rss.link": item("<link>https://e.example/a<", "<link>/a<"),
    "rss.enclosure": item("</item>", '<enclosure url="https://e.example/a.mp3" type="audio/mpeg"/></item>'),
    "rss.enclosure-length": item("</item>", f"{ENCLOSURE}1 MB\"/></item>"),
    "rss.enclosures": item("</item>", f"{ENCLOSURE}1\"/>{ENCLOSURE}1\"/></item>"),
    "rdf.about": rdf().replace(b'<channel rdf:about="https://e.example/">', b"<channel>"),
    "rdf.about-duplicate": rdf(RDF_ITEM + RDF_ITEM),
    "rdf.field": rdf().replace(b"<title>A</title>", b""),
    "rdf.items": rdf(RDF_ITEM + RDF_ITEM.replace("/a", "/b")),
    "dc.date-form": rdf().replace(b"2026-12-01T09:00:00Z", b"Tue, 01 Dec 2026 09:00:00 GMT"),
    "atom.namespace": atom(ns=""),
    "atom.feed-field": atom(feed="<id>https://e.example/</id><title>T</title><author><name>N</name></author>"),
    "atom.entry-field": entry("<title>A</title>", ""),
    "atom.repeated": entry("<title>A</title>", "<title>A</title><title>B</title>"),
    "atom.author": atom(feed="<id>https://e.example/</id><title>T</title><updated>2026-12-01T09:00:00Z</updated>"),
    "atom.id-uri": entry("tag:e.example,2026:1", "1"),
    "atom.id-duplicate": atom(ENTRY + ENTRY),
    "atom.date-form": entry("2026-12-01T09:00:00Z", "2026-12-01"),
    "atom.href": entry('<link href="https://e.example/a"/>', '<link href="https://e.example/a"/><link rel="via"/>'),
    "atom.relative": entry("https://e.example/a", "/a"),
    "atom.alternate": entry('<link href="https://e.example/a"/>', ""),
    "atom.alternates": entry("</entry>", '<link href="https://e.example/b"/></entry>'),
    "json.broken": json_feed()[:-2],
    "json.version": json_feed(feed='"version": "1.1", "title": "T", "feed_url": "https://e.example/f"'),
    "json.items": b'{"version": "https://jsonfeed.org/version/1.1", "title": "T", "feed_url": "https://e.example/f"}',
    "json.title": json_feed(feed='"version": "https://jsonfeed.org/version/1.1", "feed_url": "https://e.example/f"'),
    "json.id": json_item('"id": "1", ', ""),
    "json.id-duplicate": json_feed(f"{JSON_ITEM}, {JSON_ITEM}"),
    "json.content": json_item('"content_text": "A", ', ""),
    "json.date-form": json_item("2026-12-01T09:00:00Z", "2026-12-01"),
    "json.link": json_item("https://e.example/a", "/a"),
    "json.attachment": json_item('"id": "1"', '"id": "1", "attachments": [{"url": "https://e.example/a.mp3"}]'),
    "entry.guid-repeated": atom(ENTRY + ENTRY.replace("/a", "/b"), ns=' version="0.3" xmlns="http://purl.org/atom/ns#"'),
}  # fmt: skip

# What comes with it of need: a damaged document cannot be whole, a news block that is unknown is no namespace of ours.
ALSO = {
    "gzip.damaged": set(),
    "gzip.layers": set(),
    "gzip.bomb": set(),
    "xml.attributes": set(),
    "row.damaged": {"xml.damaged"},
    "row.entity": {"xml.doctype", "xml.entity"},
    "rows.mixed": set(),
    "index.self": set(),
    "rss.channel": set(),
    "entry.guid-repeated": {"feed.old-format"},
}

# Told by the answer, by size, or only where the feed parser fails: in test_lint.
ELSEWHERE = {
    "feed.damaged", "http.failure", "http.status", "http.cut", "http.redirect", "http.content-type", "http.validators",
    "encoding.header", "size.cap", "size.protocol", "gzip.cap", "rows.cap", "feed.too-many", "parser.failed",
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_document_breaks_no_rule(name: str) -> None:
    report = check(SOUND[name])
    assert report.findings == ()
    assert report.complete
    assert report.kind == {"news": "news_sitemap", "urlset": "sitemap", "index": "sitemap", "text": "sitemap"}.get(
        name, "feed"
    )


@pytest.mark.parametrize(("rule", "data"), [*SITEMAPS.items(), *FEEDS.items()])
def test_each_rule_is_found_where_it_is_broken_and_alone(rule: str, data: bytes) -> None:
    found = rules(data)
    assert rule in found
    if rule not in ALSO or ALSO[rule]:
        assert set(found) == {rule} | ALSO.get(rule, set())


def test_every_rule_of_the_table_has_a_test() -> None:
    assert set(RULES) == {*SITEMAPS, *FEEDS, *ELSEWHERE}
    assert all(rule.sentence.endswith(".") and rule.source for rule in RULES.values())


def test_the_table_knows_every_problem_of_the_parsers() -> None:
    core = Path(lint_rules.__file__).parent
    given = set()
    for path in core.glob("*.py"):
        if not path.name.startswith("lint"):
            given |= set(re.findall(r'(?:Problem\(|_note\(|append\(\()\s*"([a-z]+\.[a-z-]+)"', path.read_text()))
    assert "row.relative" in given
    assert "xml.prefix" in given
    assert given <= set(RULES)
