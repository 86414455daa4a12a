"""Whatever the bytes: lint returns, bounded, and its findings are sound values."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.lint_rules import MAX_PLACES
from tests.core.lint_documents import SOUND, check, urlset

PIECES = st.sampled_from(
    [
        b"<",
        b">",
        b"&",
        b"&amp;",
        b"]]>",
        b"<![CDATA[",
        b"<!--",
        b"-->",
        b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
        b"&a;",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"<?xml version='1.0' encoding='utf-16'?>",
        b"<url>",
        b"</url>",
        b"<loc>",
        b"</loc>",
        b"<item>",
        b"</item>",
        b"<entry>",
        b"<news:news>",
        b"https://e.example/",
        b"2026-13-45",
        b'"',
        b"{",
        b"}",
        b"[null]",
        b"<link/>",
        b"<guid isPermaLink=''>",
        b"\xed\xa0\x80",
        b"null",
        b"1e999",
        b"\\ud800",
    ]
)


def examine(data: bytes) -> None:
    for url in ("https://e.example/news/map.xml", None):
        report = check(data, url)
        assert len(report.findings) < 200 * MAX_PLACES
        for finding in report.findings:
            assert finding.severity in ("error", "warning", "note")
            assert finding.rule
            assert finding.place
            assert finding.message
            assert finding.source
            assert len(finding.place) + len(finding.message) < 1_500
        if report.kind is None:
            assert any(finding.severity == "error" for finding in report.findings)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_report(data: bytes) -> None:
    examine(data)


@given(
    st.sampled_from(sorted(SOUND)),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 40), PIECES), min_size=1, max_size=4),
    st.booleans(),
)
def test_any_damage_to_a_sound_document_gives_a_report(
    name: str, wounds: list[tuple[int, int, bytes]], compressed: bool
) -> None:
    data = SOUND[name]
    for start, length, piece in wounds:
        at = start % (len(data) + 1)
        data = data[:at] + piece + data[at + length :]
    examine(gzip.compress(data)[: -(len(wounds) - 1) or None] if compressed else data)


@pytest.mark.parametrize(
    "data",
    [
        urlset("<url>" * 20_000),
        urlset("<url><loc>https://e.example/a</loc>" + "<lastmod>x</lastmod>" * 20_000 + "</url>"),
        urlset("<url><loc>https://e.example/" + "a" * 3_000_000 + "</loc></url>"),
        b'<rss version="2.0"><channel>' + b"<item/>" * 4_000 + b"</channel></rss>",
        b'<rss version="2.0"><channel>' + b"<item><guid>1</guid></item>" * 4_000 + b"</channel></rss>",
        b'<rss version="2.0"><channel>' + b"<item>&nope;<guid>1</guid></item>" * 4_000 + b"</channel></rss>",
        b'<feed xmlns="http://www.w3.org/2005/Atom">' + b"<entry>" * 20_000,
        b'<feed xmlns="http://www.w3.org/2005/Atom">' + b"<link/>" * 4_000 + b"</feed>",
        b'<feed xmlns="http://www.w3.org/2005/Atom"><a '
        + b" ".join(b"a%d=''" % n for n in range(50_000))
        + b"/></feed>",
        b'{"version": "https://jsonfeed.org/version/1.1", "items": [' + b"{}," * 4_000 + b"{}]}",
        b'{"version": "https://jsonfeed.org/version/1.1", "items": ' + b"[" * 20_000,
        b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": ' + b"9" * 5_000 + b"}]}",
        b"https://e.example/a\n" * 60_000,
    ],
    ids=range(13),
)
def test_floods_are_bounded(data: bytes) -> None:
    examine(data)


def test_a_declaration_inside_of_the_root_parts_its_name_from_what_follows() -> None:
    data = b'<sitemapindex<?xml version="1.0"?>xmlns="x"><sitemap><loc>https://e.example/a.xml</loc></sitemap></sitemapindex>'
    examine(data)
