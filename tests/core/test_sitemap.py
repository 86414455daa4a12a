"""The battery: what each kind of sitemap, whole or broken, must be read as."""

from __future__ import annotations

import codecs
import gzip
import tracemalloc
import zlib

import pytest

from monitor.core.sitemap import parse_sitemap
from monitor.model import NotASitemap, Sitemap

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
    "BOM twice": (codecs.BOM_UTF8 * 2 + b"\n" + codecs.BOM_UTF8 + urlset(A, B), AB, ["xml.blank"]),
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
    "address over two lines": (loc("https://h.example/\r\n  a"), ["https://h.example/  a"], []),
    "all spaces of Unicode": (loc("\u00a0\u200b\n https://h.example/a \u3000\ufeff"), AB[:1], []),
    "trailing comment and zero bytes": (urlset(A, B) + b"\n<!-- cached -->\0\0", AB, ["xml.control"]),
    "DOCTYPE": (urlset(A, B).replace(b"<urlset", b'<!DOCTYPE urlset SYSTEM "x.dtd" [ <!-- ]> " --> ]><urlset'), AB, []),
    "CRLF": (urlset(A, B).replace(b">", b">\r\n"), AB, []),
    "gzip": (gzip.compress(urlset(A, B)), AB, []),
    "zlib": (zlib.compress(urlset(A, B)), AB, []),
    "gzip twice": (gzip.compress(gzip.compress(urlset(A, B))), AB, []),
    "url in an index": (f"<sitemapindex>{A}{B}</sitemapindex>".encode(), AB, ["rows.mixed"]),
    "text": (b"\xef\xbb\xbfhttps://h.example/a\r\nhttps://h.example/b", AB, []),
    "text, Mac": (b"https://h.example/a\rhttps://h.example/b\r", AB, []),
    "text in UTF-16": ("https://h.example/a\nhttps://h.example/b".encode("utf-16"), AB, []),
    "text with a comment": (b"https://h.example/a\n# old ones\nhttps://h.example/b", AB, ["row.address"]),
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
    "warning in plain text within a loc": (
        urlset("<url><loc>\nNotice: x in /y.php on line 3\nhttps://h.example/x</loc></url>", B),
        AB[1:],
        ["row.address"],
    ),
    "warning in plain text behind an address": (
        urlset("<url><loc>https://h.example/\nNotice: x in /y.php on line 3\n</loc></url>", B),
        AB[1:],
        ["row.address"],
    ),
    "address behind rubbish": (urlset("<url><loc>?&gt;https://h.example/x</loc></url>", B), AB[1:], ["row.address"]),
    "text with more than addresses": (
        b"https://h.example/a\nhttps://h.example/c\t2024\nhttps://h.example/b",
        AB,
        ["row.address"],
    ),
    "text with an error behind": (b"https://h.example/a\nhttps://h.example/b\n<br>Fatal error", AB, ["row.address"]),
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


def test_caps_are_told_and_cost_completeness() -> None:
    for data in (urlset(A, B), urlset(A, "<!-- x -->", B), b"https://h.example/a\nhttps://h.example/b"):
        capped = parse_sitemap(data, URL, max_rows=1)
        assert (urls(capped), capped.complete, rules(capped)) == (AB[:1], False, ["rows.cap"])
        assert parse_sitemap(data, URL, max_rows=2).complete
    cut = parse_sitemap(urlset(A, B), URL, cap=len(urlset(A, B)) - 1)
    assert (urls(cut), cut.complete, rules(cut)) == (AB, False, ["size.cap", "xml.damaged"])
    assert parse_sitemap(urlset(A, B), URL, cap=len(urlset(A, B))).complete
    assert "rows.protocol" in rules(read(urlset(B * 50_001)))


def test_a_larger_cap_reads_on_and_tells_of_the_size() -> None:
    size = 52_428_800
    large = parse_sitemap(urlset(A, B) + b" " * size, URL, cap=2 * size)
    assert (urls(large), large.complete, rules(large)) == (AB, True, ["size.protocol"])


def test_what_was_cut_before_is_not_complete() -> None:
    """A text list shows no end of its own: only who fetched it knows that its last line may be half an address."""
    lines = b"https://h.example/a\nhttps://h.example/b\nhttps://h.example/half-an-addr"
    cut = parse_sitemap(lines, URL, whole=False)
    assert (urls(cut), cut.complete) == (AB, False)
    assert not parse_sitemap(urlset(A, B), URL, whole=False).complete
    assert parse_sitemap(b"https://h.exa", URL, whole=False).rows == ()


def test_wrong_bytes_throughout_a_large_document() -> None:
    """Wherever blocks of decoding end: in a sound character, in a wrong byte, between two of them."""
    text = "".join(f"<url><loc>https://h.example/é{i}</loc></url>" for i in range(20_000))
    mixed = text.encode("utf-8").replace("é7".encode(), "é7".encode("cp1252"))
    assert mixed.count(b"\xe9") > 1_000
    for shift in range(3):
        sitemap = read(b"<urlset>" + b" " * shift + mixed + b"</urlset>")
        assert urls(sitemap) == [f"https://h.example/é{i}" for i in range(20_000)]
        assert rules(sitemap) == ["encoding.wrong"]
    every = read(b"<urlset>" + text.encode("cp1252") + b"</urlset>")
    assert urls(every) == urls(sitemap)


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
