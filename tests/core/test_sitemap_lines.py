"""The fastest way through a sitemap finds what the parser finds, or stands back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.listing import Pages
from monitor.core.reconcile import Scope
from monitor.core.sitemap import parse_sitemap
from monitor.core.sitemap_lines import read_lines
from monitor.core.url import page_key
from monitor.model import NotASitemap, Row

URL = "https://h.example/sitemap.xml"
OPENING = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
LOC = "  <url>\n    <loc>https://h.example/{}</loc>\n    <lastmod>2024-05-06</lastmod>\n  </url>\n"
THREE = f"{OPENING}\n{''.join(map(LOC.format, 'abc'))}</urlset>\n"


def agrees(data: bytes) -> bool:
    """Whether the fast way was taken; it must then say just what the parser says."""
    found = read_lines(data)
    if found is None:
        return False
    lines = found.text
    sitemap = parse_sitemap(data, URL)
    assert lines == "".join(f"{row.url}\t{row.lastmod_text or ''}\n" for row in sitemap.rows)
    assert sitemap.complete
    assert (sitemap.kind, sitemap.is_news, sitemap.problems) == ("urlset", False, ())
    if found.own_keys:
        assert all(page_key(row.url) == row.url for row in sitemap.rows)
    if found.origin is not None:
        assert all(row.url.startswith(f"{found.origin}/") for row in sitemap.rows)
    # Rows made of lines are the rows that were parsed.
    pages = Pages(Scope(frozenset({"h.example"}))).plain(found)
    unique: dict[str, Row] = {}
    for row in sitemap.rows:
        unique.setdefault(page_key(row.url), row)
    assert [pages.row(place) for place in range(len(pages.lines))] == _ours(list(unique.values()))
    return True


def _ours(rows: list[Row]) -> list[Row]:
    return [row for row in rows if re.match(r"https?://(www\.)?h\.example(:\d+)?(/|$)", row.url)]


@pytest.mark.parametrize(
    "document",
    [
        THREE,
        THREE.replace("\n", "").replace("  ", ""),
        THREE.replace("\n", "\r\n"),
        re.sub(r"\s*<lastmod>.*?</lastmod>", "", THREE),
        THREE.replace("</lastmod>", "</lastmod><changefreq>daily</changefreq><priority>0.5</priority>"),
        THREE.replace("2024-05-06", "2024-05-06T10:11:12.123+02:00"),
        THREE.replace("/a", "/a?b=1;c=%20&amp;".removesuffix("&amp;")),
        THREE.replace("/b", "/x/../b"),
        THREE.replace("https://h.example", "http://127.0.0.1:8080"),
        THREE.replace("https://h.example", "https://h.example:443"),
        OPENING.replace("xmlns", "x='y' xmlns") + LOC.format("a") + "</urlset>",
    ],
)
def test_plain_documents_are_read_fast(document: str) -> None:
    assert agrees(document.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/b<", "/b&amp;c<"),
        ("/b<", "/é<"),
        ("/b<", "/b c<"),
        ("/b<", "/b\t<"),
        ("/b<", "/b\nhttps://h.example/d<"),
        ("/b<", f"/{'b' * 3000}<"),
        ("https://h.example/b", ""),
        ("https://h.example/b", "/b"),
        ("https://h.example/b", "https://h.example"),
        ("https://h.example/b", "https://user@h.example/b"),
        ("https://h.example/", "https://1.2.3.4.5/"),
        ("https://h.example/", "https://h.example:99999/"),
        ("https://h.example/b", "<!-- https://h.example/b -->"),
        ("2024-05-06", "2024-02-30"),
        ("2024-05-06", "06.05.2024"),
        ("2024-05-06", "1970-01-01"),
        ("2024-05-06", "2024-05-06T25:00:00Z"),
        ("<lastmod>2024-05-06</lastmod>", "<lastmod/>"),
        ("</url>\n</urlset>", "</url>\n<url></url></urlset>"),
        ("</url>\n</urlset>", "</url>\n<!-- end --></urlset>"),
        ("</urlset>", ""),
        ("</urlset>", "</urlset><!-- 0.2 s -->"),
        ("<urlset ", "<urlset x:y='z' "),
        ("UTF-8", "UTF-16"),
        ("UTF-8", "cp037"),
        ("<url>", "<URL>"),
        ("</loc>", "</loc><loc>https://h.example/z</loc>"),
        ("</loc>", "</lastmod>"),
    ],
)
def test_anything_else_is_left_to_the_parser(old: str, new: str) -> None:
    assert old in THREE
    assert not agrees(THREE.replace(old, new).encode())
    assert not agrees(THREE.replace(old, new, 1).encode())


_ADDRESS = st.from_regex(r"https?://(www\.)?h\.example(:80)?/[a-zA-Z0-9/._~%?=;:@+!-]{0,12}", fullmatch=True)
_DATES = ["2024-05-06", "2024-12-31T23:59Z", "2024-05-06T10:11:12+02:00", "2024-06-31", "2099-01-01", ""]


@settings(max_examples=300)
@given(st.lists(st.tuples(_ADDRESS, st.sampled_from(_DATES)), min_size=1, max_size=6), st.data())
def test_generated_and_damaged_documents(rows: list[tuple[str, str]], data: st.DataObject) -> None:
    space = data.draw(st.sampled_from(["", "\n", "\r\n  "]))
    text = space.join(
        f"<url>{space}<loc>{url}</loc>{space}<lastmod>{date}</lastmod>{space}</url>" for url, date in rows
    )
    document = f"{OPENING}{space}{text}{space}</urlset>".encode()
    agrees(document)
    at = data.draw(st.integers(0, len(document)))
    junk = data.draw(st.sampled_from([b"", b"<", b">", b"\t", b"\n", b"</loc>", b"<loc>", b"&", b"\xff", b"]]>", b" "]))
    until = data.draw(st.integers(at, min(len(document), at + 8)))
    try:
        agrees(document[:at] + junk + document[until:])
    except NotASitemap:
        pytest.fail("the fast way read what the parser refuses")
