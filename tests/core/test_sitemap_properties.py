"""What holds for every sitemap: cuts and damage never make a URL, the fast way finds what a parser finds."""

from __future__ import annotations

import gzip
import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.sitemap import parse_sitemap
from monitor.core.sitemap_plain import read_plain
from monitor.model import NotASitemap, Sitemap

URL = "https://h.example/sitemap.xml"
RICH = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!-- by hand -->\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" '
    'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n'
    "<url><loc>https://h.example/é/1?a=1&amp;b=2</loc><lastmod>2024-05-06</lastmod>"
    "<news:news><news:title>A &gt; B</news:title></news:news></url>\n"
    "<!-- <url><loc>https://h.example/hidden</loc></url> -->\n"
    "<url><image:image><image:loc>https://i.example/1</image:loc></image:image>"
    "<loc><![CDATA[https://h.example/2]]></loc></url>\n"
    "<URL><LOC>\n  https://h.example/3\n</LOC></URL><url><loc>https://h.example/4</loc></url>\n</urlset>\n"
).encode()
FEED = (
    b'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>x</title><link>https://h.example/</link>'
    b"<item><title>1</title><link>https://h.example/1</link></item>\n"
    b"<item><guid>https://h.example/2</guid></item></channel></rss>"
)
INDEX = (
    b"<sitemapindex><sitemap><loc>https://h.example/1.xml</loc><lastmod>2024</lastmod></sitemap>"
    b"<sitemap><loc>https://h.example/2.xml</loc></sitemap></sitemapindex>"
)

MARKUP = (
    "<urlset>|</urlset>|<URL>|</URL>|<url>|</url>|<loc>|</loc>|<lastmod>|</lastmod>|<s:url>|<news:news>|</news:news>|"
    "<sitemapindex>|<rss>|<item>|</item>|<link>|</link>|<br />|é|<![CDATA[|]]>|<!--|-->|&|&amp;|&eacute;|&#1;|<?x|?>|"
    "<!DOCTYPE|[|]>|\"|'|https://h.example/a|/b|2024-05-06| |\x0b|\0"
)


def attempt(data: bytes, *, whole: bool = True) -> Sitemap | None:
    try:
        return parse_sitemap(data, URL, whole=whole)
    except NotASitemap:
        return None


@pytest.mark.parametrize("document", [RICH, FEED, INDEX], ids=["urlset", "feed", "index"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_cut_anywhere_gives_a_beginning_of_the_rows(document: bytes, encoding: str) -> None:
    text = document.decode()
    data = text.replace("UTF-8", encoding).encode(encoding)
    whole = parse_sitemap(data, URL)
    assert whole.complete
    end = len(text.rstrip().encode(encoding))
    for cut in range(end):
        sitemap = attempt(data[:cut])
        if sitemap is not None:
            assert sitemap.rows == whole.rows[: len(sitemap.rows)], cut
            assert not sitemap.complete, cut


def test_a_cut_of_the_compressed_bytes_gives_a_beginning_of_the_rows() -> None:
    packed = gzip.compress(RICH)
    whole = parse_sitemap(packed, URL)
    for cut in range(len(packed)):
        sitemap = attempt(packed[:cut])
        if sitemap is not None:
            assert sitemap.rows == whole.rows[: len(sitemap.rows)]
            assert not sitemap.complete


def test_a_cut_of_a_text_list_makes_no_address() -> None:
    lines = "https://h.example/1\nhttps://h.example/é\r\n\nhttps://h.example/333".encode()
    rows = parse_sitemap(lines, URL).rows
    for cut in range(len(lines)):
        for sitemap in (attempt(lines[:cut], whole=False), attempt(gzip.compress(lines[:cut])[:-1])):
            if sitemap is not None:
                assert sitemap.rows == rows[: len(sitemap.rows)], cut
                assert not sitemap.complete


@pytest.mark.parametrize("document", [RICH, INDEX], ids=["urlset", "index"])
@pytest.mark.parametrize(
    "junk", ["<", ">", "<br>", "<!--", "-->", "<loc>", "</loc>", "<url><loc>", "Notice: x\n", "\0"]
)
def test_junk_anywhere_costs_no_row_of_what_is_complete(document: bytes, junk: str) -> None:
    """What a server prints into a sitemap spoils at most the address that it stands in, or the read is not complete."""
    document = re.sub(rb"<!--.*?-->", b"", document)  # whose end would end a comment that the junk begins
    known = [row.url for row in parse_sitemap(document, URL).rows]
    addresses = [found.span(1) for found in re.finditer(rb"<loc>\s*(.*?)</loc>", document, re.I | re.S)]
    for at in range(len(document)):
        sitemap = attempt(document[:at] + junk.encode() + document[at:])
        inside = any(start < at <= end for start, end in addresses)
        if sitemap is None or not sitemap.complete or inside:
            continue
        assert {row.url for row in sitemap.rows} >= set(known), at


@settings(max_examples=300)
@given(st.data())
def test_bytes_lost_from_tags_make_no_address(data: st.DataObject) -> None:
    """Markup lost or doubled anywhere costs rows, but no address holds what did not stand in one `loc`."""
    tags = re.split(rb"(</?[A-Za-z][^>]*>)", RICH)
    at = 2 * data.draw(st.integers(0, len(tags) // 2 - 1)) + 1
    damaged = b"".join(tags[:at] + [tags[at]] * data.draw(st.sampled_from([0, 2])) + tags[at + 1 :])
    sitemap = attempt(damaged)
    allowed = {row.url for row in parse_sitemap(RICH, URL).rows} | {"https://h.example/hidden"}
    if sitemap is not None:
        assert {row.url for row in sitemap.rows} <= allowed


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(MARKUP.split("|")),
        max_size=40,
    )
)
def test_arbitrary_markup_never_raises(parts: list[str]) -> None:
    for head in ("", "<urlset>"):
        sitemap = attempt((head + "".join(parts)).encode())
        if sitemap is not None:
            assert all(row.url.startswith(("http://", "https://")) for row in sitemap.rows)


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"<urlset>", b"\xff\xfe", b"\xef\xbb\xbf", b"https://h.example/\n", b"\x1f\x8b\x08\0"]),
)
def test_arbitrary_bytes_never_raise(data: bytes, head: bytes) -> None:
    attempt(head + data)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20)
ROW = st.tuples(
    st.one_of(st.builds("https://h.example/{}".format, TEXT), TEXT),
    st.one_of(st.none(), st.sampled_from(["2024", "2024-05-06T10:11:12Z", "x"]), TEXT),
    st.booleans(),
    st.sampled_from(["", " ", "\n  ", "\r\n\t"]),
)


@given(st.lists(ROW, max_size=8), st.sampled_from([("urlset", "url"), ("sitemapindex", "sitemap")]))
def test_the_fast_way_finds_what_a_parser_finds(
    rows: list[tuple[str, str | None, bool, str]], names: tuple[str, str]
) -> None:
    root, name = names
    lines = []
    for address, lastmod, priority, space in rows:
        fields = [f"<loc>{html.escape(address, quote=False)}</loc>"]
        if lastmod is not None:
            fields.append(f"<lastmod>{html.escape(lastmod, quote=False)}</lastmod>")
        if priority:
            fields.append("<priority>0.5</priority>")
        lines.append(space.join([f"<{name}>", *fields, f"</{name}>"]))
    body = f"<{root}>{''.join(lines)}</{root}>"
    fast = attempt(body.encode())
    slow = attempt(f"<{root}><!-- x -->{''.join(lines)}</{root}>".encode())
    assert fast is not None
    assert slow is not None
    assert (fast.rows, fast.kind, fast.complete, fast.problems) == (slow.rows, slow.kind, slow.complete, slow.problems)
    texts = "".join(f"{address}{lastmod}" for address, lastmod, _, _ in rows)
    if not set("<>") & set(texts) and all(lastmod != "" for _, lastmod, _, _ in rows):
        found = read_plain(body.encode())
        assert found is not None
        assert len(found) == len(rows)


@pytest.mark.parametrize(
    "body",
    [
        "<urlset><url><loc>a</loc></url><url></urlset>",
        "<urlset><url><loc>a</loc></url><lastmod></url></urlset>",
        "<urlset><url><loc>a</loc><lastmod><x></url></urlset>",
        "<urlset><url><loc>a&b</loc></url></urlset>",
        "<urlset><url><loc>a&amp;b&lt;</loc></url></urlset>",
        "<urlset><url><loc>a\x01</loc></url></urlset>",
        "<urlset><url><loc>a]]></loc></url></urlset>",
        "<urlset><!-- <url><loc>a</loc></url> --></urlset>",
        "<urlset><url><loc>a</loc><loc>b</loc></url></urlset>",
        "<urlset><url><loc>a</loc></url></urlset><urlset></urlset>",
        "<urlset><url><loc>a</loc></url></sitemapindex>",
        "<urlset a='1' a='2'><url><loc>a</loc></url></urlset>",
        "<urlset x:y='1'><url><loc>a</loc></url></urlset>",
        "<urlset><sitemap><loc>a</loc></sitemap></urlset>",
        "<urlset><url><loc>a</loc></url>",
    ],
)
def test_the_fast_way_refuses_what_is_not_plain(body: str) -> None:
    assert read_plain(body.encode()) is None
