"""The battery: what each kind of sitemap, whole or broken, must be read as."""

from __future__ import annotations

import codecs
import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest

from monitor.core.sitemap import parse_sitemap
from monitor.model import Alternate, Image, News, NotASitemap, Sitemap

URL = "https://h.example/maps/sitemap.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
OPEN = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
A = "<url><loc>https://h.example/a</loc><lastmod>2024-05-06</lastmod></url>"
B = "<url><loc>https://h.example/b</loc></url>"
AB = ["https://h.example/a", "https://h.example/b"]


def urlset(*rows: str) -> bytes:
    return f"{HEAD}{OPEN}{''.join(rows)}</urlset>".encode()


def loc(text: str) -> bytes:
    return urlset(f"<url><loc>{text}</loc></url>")


def read(data: bytes) -> Sitemap:
    return parse_sitemap(data, URL)


def urls(sitemap: Sitemap) -> list[str]:
    return [row.url for row in sitemap.rows]


def rules(sitemap: Sitemap) -> list[str]:
    return [problem.rule for problem in sitemap.problems]


FLOOD = " ".join(f"a{i}=''" for i in range(100_000))

# name: bytes, addresses, complete, rules
WHOLE: dict[str, tuple[bytes, list[str], list[str]]] = {
    "plain": (urlset(A, B), AB, []),
    "no namespace, no declaration": (f"<urlset>{A}{B}</urlset>".encode(), AB, []),
    "wrong namespace": (urlset(A, B).replace(b"www.sitemaps.org", b"www.google.com"), AB, []),
    "prefixed": (b'<s:urlset xmlns:s="x"><s:url><s:loc>https://h.example/a</s:loc></s:url></s:urlset>', AB[:1], []),
    "prefix undeclared": (urlset(A.replace("</url>", "<news:x>1</news:x></url>"), B), AB, ["xml.prefix"]),
    "attribute prefix undeclared": (urlset(A, B).replace(b"<urlset ", b'<urlset x:y="z" '), AB, ["xml.prefix"]),
    "namespace declared twice": (
        urlset(A, B).replace(b"<urlset ", b'<urlset xmlns:x="a" xmlns:x="b" '),
        AB,
        ["xml.root"],
    ),
    "upper case": (
        urlset(A, B)
        .replace(b"url", b"URL")
        .replace(b"loc>", b"LOC>")
        .replace(b"lastmod", b"LASTMOD")
        .replace(b"set", b"SET"),
        AB,
        ["xml.case"],
    ),
    "opened in upper, closed in lower case": (urlset(A.replace("<loc>", "<LOC>"), B), AB, ["xml.root", "xml.case"]),
    "CDATA": (loc("<![CDATA[https://h.example/?a=1&b=2]]>"), ["https://h.example/?a=1&b=2"], []),
    "unescaped once": (loc("https://h.example/?a=1&amp;copy=2"), ["https://h.example/?a=1&copy=2"], []),
    "escaped twice": (loc("https://h.example/?a&amp;amp;b"), ["https://h.example/?a&amp;b"], []),
    "bare ampersand": (loc("https://h.example/?a=1&copy=2"), ["https://h.example/?a=1&copy=2"], ["xml.entity"]),
    "entity of HTML": (loc("https://h.example/caf&eacute;"), ["https://h.example/café"], ["xml.entity"]),
    "unknown entity": (loc("https://h.example/?a&nosuch;b"), ["https://h.example/?a&nosuch;b"], ["xml.entity"]),
    "forbidden character by number": (loc("https://h.example/&#0;a"), AB[:1], ["xml.entity"]),
    "characters by number": (loc("https://h.example&#x2F;&#97;"), AB[:1], []),
    "BOM and blank lines": (codecs.BOM_UTF8 + b"\n\n" + urlset(A, B), AB, ["xml.blank"]),
    "30 spaces": (b" " * 30 + urlset(A, B), AB, ["xml.blank"]),
    "UTF-16 with BOM": (urlset(A, B).decode().replace("UTF-8", "UTF-16").encode("utf-16"), AB, []),
    "UTF-16 without BOM": (urlset(A, B).decode().replace("UTF-8", "UTF-16").encode("utf-16-le"), AB, []),
    "UTF-16 big endian": (urlset(A, B).decode().encode("utf-16-be"), AB, []),
    "UTF-16 in name only": (urlset(A, B).replace(b"UTF-8", b"UTF-16"), AB, ["encoding.wrong"]),
    "no such encoding": (urlset(A, B).replace(b"UTF-8", b"unicode_escape"), AB, ["encoding.wrong"]),
    "ISO-8859-1": (
        loc("https://h.example/é").decode().replace("UTF-8", "ISO-8859-1").encode("latin-1"),
        ["https://h.example/é"],
        [],
    ),
    "cp1252 as UTF-8": (
        loc("https://h.example/–é").decode().encode("cp1252"),
        ["https://h.example/–é"],
        ["encoding.wrong"],
    ),
    "cp1252 in part": (
        loc("https://h.example/é").replace(b"</url>", b"</url><url><loc>https://h.example/\xe9</loc></url>"),
        ["https://h.example/é"] * 2,
        ["encoding.wrong"],
    ),
    "empty": (urlset(), [], []),
    "empty, closed in itself": (b"<urlset/>", [], []),
    "image before loc": (
        urlset(B.replace("<loc>", "<i:image xmlns:i='google/image'><i:loc>https://i.example/1</i:loc></i:image><loc>")),
        AB[1:],
        [],
    ),
    "stray image loc": (
        urlset(B.replace("<loc>", "<i:loc xmlns:i='google/image'>https://i.example/1</i:loc><loc>")),
        AB[1:],
        [],
    ),
    "U+000B": (urlset(A, B.replace("</url>", "<title>a\vb</title></url>")), AB, ["xml.control"]),
    "U+FFFF": (urlset(A, B.replace("</url>", "<title>a\uffffb</title></url>")), AB, ["xml.control"]),
    "two locs": (loc("https://h.example/a</loc><loc>https://h.example/b"), AB, ["row.locs"]),
    "the same loc twice": (loc("https://h.example/a</loc><loc>https://h.example/a"), AB[:1], ["row.locs"]),
    "comment in loc": (loc("https://h.example/<!-- x -->a"), AB[:1], []),
    "row in a comment": (urlset(A, f"<!-- {B} -->"), AB[:1], []),
    "comment with hyphens": (urlset("<!-- a -- b -->", A, B), AB, ["xml.root"]),
    "row within a row": (urlset(f"<url>{A}</url>", B), AB, ["row.loc"]),
    "loc wrapped": (loc("<url>https://h.example/a</url>"), AB[:1], ["row.markup"]),
    "no loc": (urlset("<url><lastmod>2024</lastmod></url>", B), AB[1:], ["row.loc"]),
    "empty loc": (urlset("<url><loc> </loc></url>", B), AB[1:], ["row.loc"]),
    "no address": (urlset("<url><loc>javascript:1</loc></url>", B), AB[1:], ["row.address"]),
    "relative": (loc("/a"), AB[:1], ["row.relative"]),
    "all spaces of Unicode": (loc("\u00a0\u200b\n https://h.example/a \u3000\ufeff"), AB[:1], []),
    "trailing comment and zero bytes": (urlset(A, B) + b"\n<!-- cached -->\0\0", AB, ["xml.control"]),
    "DOCTYPE": (urlset(A, B).replace(b"<urlset", b'<!DOCTYPE urlset SYSTEM "x.dtd" [ <!-- ]> " --> ]><urlset'), AB, []),
    "CRLF": (urlset(A, B).replace(b">", b">\r\n"), AB, []),
    "gzip": (gzip.compress(urlset(A, B)), AB, []),
    "gzip twice": (gzip.compress(gzip.compress(urlset(A, B))), AB, []),
    "url in an index": (f"<sitemapindex>{A}{B}</sitemapindex>".encode(), AB, ["rows.mixed"]),
    "text": (b"\xef\xbb\xbfhttps://h.example/a\r\nhttps://h.example/b", AB, []),
    "text, Mac": (b"https://h.example/a\rhttps://h.example/b\r", AB, []),
    "text in UTF-16": ("https://h.example/a\nhttps://h.example/b".encode("utf-16"), AB, []),
    "text with more than addresses": (
        b"https://h.example/a\nhttps://h.example/c\t2024\nhttps://h.example/b",
        AB,
        ["row.address"],
    ),
    "RSS": (
        b"<rss><channel><link>/</link><image><url>/i</url></image><item><link>https://h.example/a</link></item>"
        b"<item><guid>https://h.example/b</guid></item></channel></rss>",
        AB,
        [],
    ),
    "guid that is no link": (
        b'<rss><item><link>https://h.example/a</link></item><item><guid isPermaLink="false">https://h.example/b</guid></item></rss>',
        AB[:1],
        ["row.loc"],
    ),
    "Atom": (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><entry><link rel="edit" href="/e"/>'
        b'<link rel="alternate" href="https://h.example/a"/></entry>'
        b'<entry><link rel="alternate" href="/x"/><link href="https://h.example/b"/></entry></feed>',
        AB,
        [],
    ),
    "RDF": (
        b'<rdf:RDF xmlns:rdf="r" xmlns="s"><channel><items/></channel><item><link>https://h.example/a</link></item>'
        b"<item><link>https://h.example/b</link></item></rdf:RDF>",
        AB,
        [],
    ),
}

DAMAGED: dict[str, tuple[bytes, list[str], list[str]]] = {
    "error appended": (urlset(A, B) + b"<br>Fatal error", AB, ["xml.damaged"]),
    "warning before": (b"<br />\n<b>Warning</b>: on line <b>3</b><br />\n" + urlset(A, B), AB, ["xml.leading"]),
    "text before": (b"Notice: x\n" + urlset(A, B), AB, ["xml.leading"]),
    "warning within a loc": (
        urlset("<url><loc><b>Warning</b>: https://h.example/x</loc></url>", B),
        AB[1:],
        ["row.markup", "row.loc"],
    ),
    "cut in an entry": (urlset(A, B)[:-12], AB[:1], ["xml.damaged"]),
    "cut in a loc": (urlset(A, "<url><loc>https://h.example/abc")[:-9], AB[:1], ["xml.damaged"]),
    "no end tag": (urlset(A, B)[:-9], AB, ["xml.damaged"]),
    "loc not closed": (
        urlset("<url><loc>https://h.example/x<lastmod>2024</lastmod></url>", B),
        AB[1:],
        ["xml.damaged", "row.damaged"],
    ),
    "url not closed": (urlset("<url><loc>https://h.example/x</loc>", A, B), AB, ["xml.damaged"]),
    "damage in the middle": (
        urlset(A, "<url><loc>https://h.example/x</lc></url>", B),
        AB,
        ["xml.damaged", "row.damaged"],
    ),
    "prefix undeclared and cut": (urlset(A, "<news:x/>", B)[:-9], AB, ["xml.damaged"]),
    "comment not closed": (urlset(A, "<!-- x", B), AB[:1], ["xml.damaged"]),
    "two documents": (urlset(A) + urlset(B), AB, ["xml.damaged"]),
    "own entities": (
        b'<!DOCTYPE x [<!ENTITY a "b]b"><!ENTITY b "&a;&a;">]>'
        + urlset("<url><loc>https://h.example/&b;</loc></url>", B),
        AB[1:],
        ["xml.doctype", "xml.entity", "row.entity"],
    ),
    "gzip cut": (gzip.compress(urlset(A, B) + b" " * 9)[:-4], AB, ["gzip.damaged"]),
    "text in cut gzip": (gzip.compress(b"https://h.example/a\nhttps://h.example/")[:-4], AB[:1], ["gzip.damaged"]),
    "deeper than any sitemap": (urlset(A, "<x>" * 100_000, "</x>" * 100_000, B), AB, ["xml.damaged"]),
    "attributes without end": (
        urlset(A, f"<x {FLOOD}/>", B),
        AB,
        ["xml.attributes"],
    ),
    "attributes in a row": (
        urlset(A, f"<url {FLOOD}><loc>https://h.example/x</loc></url>", B),
        AB,
        ["xml.attributes", "row.damaged"],
    ),
    "a text of 11 MB": (
        urlset(A, f"<url><loc>https://h.example/x</loc><t>{'x' * 11_000_000}</t></url>", B),
        AB,
        ["xml.damaged", "row.damaged"],
    ),
}

NOTHING = {
    "HTML": (b"<!DOCTYPE html><html><body>Not found</body></html>", "HTML"),
    "HTML with a comment before": (b"<!-- x --><html><head><title>urlset</title></head></html>", "HTML"),
    "HTML that shows a sitemap": (b"<html><body>" + urlset(A) + b"</body></html>", "HTML"),
    "JSON": (b'{"error": 404}', "JSON"),
    "JSON array": (b"[1]", "JSON"),
    "nothing": (b"", "empty"),
    "white space": (b" \r\n", "empty"),
    "BOM alone": (codecs.BOM_UTF8, "empty"),
    "error document": (f"{HEAD}<error><code>wp_die</code></error>".encode(), "<error>"),
    "prose": (b"Not found", "neither"),
    "prose behind an address": (b"https://h.example/\nis\nnot\navailable", "most of its lines"),
    "binary": (bytes(range(256)), "neither"),
    "declaration alone": (HEAD.encode(), "neither"),
    "no row whole": (urlset("<url does not close"), "damaged"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "gzip cut at once": (gzip.compress(urlset(A))[:12], "compressed"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_documents(name: str) -> None:
    data, expected, problems = WHOLE[name]
    sitemap = read(data)
    assert urls(sitemap) == expected
    assert sitemap.complete
    assert rules(sitemap) == problems


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_documents(name: str) -> None:
    data, expected, problems = DAMAGED[name]
    sitemap = read(data)
    assert urls(sitemap) == expected
    assert not sitemap.complete
    assert rules(sitemap) == problems


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_no_sitemap(name: str) -> None:
    data, reason = NOTHING[name]
    with pytest.raises(NotASitemap, match=reason):
        read(data)


def test_kind_is_told_by_the_root_then_by_the_rows() -> None:
    child = "<sitemap><loc>https://h.example/s.xml</loc><lastmod>2024</lastmod></sitemap>"
    assert read(urlset(A)).kind == "urlset"
    assert read(urlset()).kind == "urlset"
    assert read(b"<sitemapindex/>").kind == "index"
    assert read(f"<sitemapindex>{child}</sitemapindex>".encode()).kind == "index"
    assert read(urlset(child)).kind == "index"
    mixed = read(urlset(A, child))
    assert (mixed.kind, [row.child for row in mixed.rows], rules(mixed)) == ("urlset", [False, True], ["rows.mixed"])
    assert read(b"<rss/>").kind == "feed"
    assert read(b"https://h.example/").kind == "text"


def test_an_index_entry_may_be_bare_text() -> None:
    sitemap = read(b"<sitemapindex><sitemap> https://h.example/s.xml </sitemap></sitemapindex>")
    assert [(row.url, row.child) for row in sitemap.rows] == [("https://h.example/s.xml", True)]


def test_lastmod_keeps_what_was_understood_and_does_not_leak() -> None:
    dates = ["2024", "2024-05-06T10:11Z", "2024-05-06T10:11:12", "0000-00-00", " ", None]
    rows = [f"<url><loc>/{i}</loc>{f'<lastmod>{d}</lastmod>' if d else ''}</url>" for i, d in enumerate(dates)]
    first = read(urlset(*rows)).rows
    again = read(urlset("<!-- not plain -->", *rows)).rows
    assert first == again
    assert [row.lastmod_text for row in first] == [
        "2024",
        "2024-05-06T10:11Z",
        "2024-05-06T10:11:12",
        "0000-00-00",
        None,
        None,
    ]
    assert [row.lastmod_precision for row in first] == ["year", "minute", "second", None, None, None]
    assert [row.lastmod_zone for row in first] == [False, True, False, False, True, True]
    assert [row.lastmod_problem for row in first] == [None, None, None, "sentinel", None, None]
    assert first[1].lastmod == datetime(2024, 5, 6, 10, 11, tzinfo=UTC)


NEWS = (
    '<url><loc>https://h.example/n</loc><n:news xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"><n:publication>'
    "<n:name>The Example</n:name><n:language>en</n:language></n:publication><n:access>Subscription</n:access>"
    "<n:genres>PressRelease, Blog</n:genres><n:publication_date>2024-05-06T10:11:12+02:00</n:publication_date>"
    "<n:title>A &amp; B</n:title><n:keywords>a, b,,c</n:keywords><n:stock_tickers>NASDAQ:A</n:stock_tickers>"
    "</n:news></url>"
)


def test_news() -> None:
    sitemap = read(urlset(NEWS, B))
    assert sitemap.is_news
    assert sitemap.rows[0].news == News(
        title="A & B",
        publication_date=datetime(2024, 5, 6, 8, 11, 12, tzinfo=UTC),
        publication_date_text="2024-05-06T10:11:12+02:00",
        name="The Example",
        language="en",
        access="Subscription",
        genres=("PressRelease", "Blog"),
        keywords=("a", "b", "c"),
        stock_tickers=("NASDAQ:A",),
    )
    assert sitemap.rows[1].news is None
    assert not read(urlset(B)).is_news


def test_news_blocks_in_excess() -> None:
    two = read(urlset(NEWS.replace("</url>", "<news><title>second</title></news></url>")))
    assert two.rows[0].news is not None
    assert (two.rows[0].news.title, rules(two)) == ("A & B", ["row.news"])
    assert rules(read(urlset(NEWS * 1_001))) == ["news.protocol"]


def test_images_videos_and_alternates() -> None:
    sitemap = read(
        urlset(
            '<url><loc>https://h.example/a</loc><i:image xmlns:i="image"><i:loc>https://i.example/1</i:loc><i:title>T</i:title>'
            "<i:caption>C</i:caption><i:geo_location>G</i:geo_location><i:license>L</i:license></i:image>"
            '<i:image xmlns:i="image"><i:loc>https://i.example/2</i:loc></i:image>'
            '<v:video xmlns:v="video"><v:title>V</v:title><v:description>D</v:description><v:duration>600</v:duration>'
            "<v:thumbnail_loc>https://i.example/t</v:thumbnail_loc><v:content_loc>https://i.example/c</v:content_loc>"
            "<v:player_loc>https://i.example/p</v:player_loc><v:publication_date>2024-05-06</v:publication_date>"
            "<v:tag>x</v:tag><v:tag>y</v:tag><v:price currency='EUR'/></v:video>"
            '<x:link xmlns:x="http://www.w3.org/1999/xhtml" rel="alternate" hreflang="de" href="/de"/>'
            '<x:link xmlns:x="x" rel="alternate" media="print" href="https://m.example/a"/>'
            '<x:link xmlns:x="x" rel="self" href="/"/></url>'
        )
    )
    row = sitemap.rows[0]
    assert row.images == (Image("https://i.example/1", "T", "C", "G", "L"), Image("https://i.example/2"))
    (video,) = row.videos
    assert (video.title, video.description, video.duration) == ("V", "D", 600)
    assert (video.thumbnail_url, video.content_url, video.player_url) == tuple(f"https://i.example/{x}" for x in "tcp")
    assert video.publication_date == datetime(2024, 5, 6, tzinfo=UTC)
    assert video.fields["tag"] == ("x", "y")
    assert "price" not in video.fields
    assert row.alternates == (Alternate("https://h.example/de", "de"), Alternate("https://m.example/a", None, "print"))


def test_items_of_a_feed_have_title_and_the_date_of_change() -> None:
    sitemap = read(
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title>'
        b'<link href="/a"/><published>2024-05-06</published>'
        b"<updated>2024-05-07</updated></entry></feed>"
    )
    row = sitemap.rows[0]
    assert (row.url, row.title, row.lastmod_text) == ("https://h.example/a", "T", "2024-05-07")


def test_caps_are_told_and_cost_completeness() -> None:
    for data in (urlset(A, B), urlset(A, "<!-- x -->", B), b"https://h.example/a\nhttps://h.example/b"):
        capped = parse_sitemap(data, URL, max_rows=1)
        assert (urls(capped), capped.complete, rules(capped)) == (AB[:1], False, ["rows.cap"])
        assert parse_sitemap(data, URL, max_rows=2).complete
    cut = parse_sitemap(urlset(A, B), URL, cap=len(urlset(A, B)) - 1)
    assert (urls(cut), cut.complete, rules(cut)) == (AB, False, ["size.cap", "xml.damaged"])
    assert parse_sitemap(urlset(A, B), URL, cap=len(urlset(A, B))).complete
    assert "rows.protocol" in rules(read(urlset(B * 50_001)))


def test_long_addresses() -> None:
    assert rules(read(loc("https://h.example/" + "a" * 3_000))) == ["row.length"]
    assert rules(read(loc("https://h.example/" + "a" * 30_000))) == ["row.address"]
    assert rules(read(urlset(A, f"<url><loc>https://h.example/{'a' * 3_000}</loc></url>"))) == ["row.length"]


def test_problems_are_bounded() -> None:
    sitemap = read(urlset("<url/>" * 5_000))
    assert len(sitemap.problems) <= 210
    assert sitemap.problems[7].place == "row 8"


def test_a_bomb_is_refused_within_little_memory() -> None:
    bomb = gzip.compress(urlset() + b" " * 200_000_000)
    tracemalloc.start()
    with pytest.raises(NotASitemap):
        read(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 1024 * 1024
