"""How long a sitemap of 50,000 URLs takes: in times of lxml's bare tree, and of the standard library's ElementTree.

Run: python benchmarks/sitemap_parse.py
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from xml.etree import ElementTree

from lxml import etree

from monitor.core.sitemap import parse_sitemap

ROWS = 50_000
ADDRESS = "https://www.example.com/sitemap.xml"


def plain(rows: int = ROWS) -> bytes:
    """A urlset with a lastmod of its own in each row, about 87 bytes a row without the indentation."""
    row = "<url><loc>https://www.example.com/news/2026/{0}/an-article</loc><lastmod>2026-{1:02}-{2:02}T{3:02}:{4:02}:{5:02}+00:00</lastmod></url>\n"
    lines = (row.format(i, i % 12 + 1, i % 28 + 1, i // 7 % 24, i // 3 % 60, i % 60) for i in range(rows))
    return _urlset("".join(lines))


def news(rows: int = ROWS) -> bytes:
    """The same with a news block in each row."""
    row = (
        "<url><loc>https://www.example.com/news/2026/{0}/an-article</loc><news:news><news:publication><news:name>Example"
        "</news:name><news:language>en</news:language></news:publication><news:publication_date>2026-01-02T03:04:05Z"
        "</news:publication_date><news:title>Headline {0}</news:title></news:news></url>\n"
    )
    return _urlset("".join(row.format(i) for i in range(rows)))


def _urlset(rows: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
        f'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">\n{rows}</urlset>\n'
    ).encode()


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of CPU time of the fastest of `repeats` runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def peer(data: bytes) -> list[tuple[str | None, str | None]] | None:
    """The usual way: addresses and dates as texts, undated, unchecked, and nothing at all of a damaged document."""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        return None
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    return [(url.findtext(f"{space}loc"), url.findtext(f"{space}lastmod")) for url in root.iter(f"{space}url")]


def main() -> None:
    documents = {
        "plain": plain(),
        "plain, gzip": gzip.compress(plain()),
        "news": news(),
        "bare ampersand": plain().replace(b"an-article<", b"?a=1&b=2<", 1),
        "cut": plain()[:-40],
    }
    for name, data in documents.items():
        body = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        tree = best(lambda body=body: etree.fromstring(body, etree.XMLParser(recover=True)))  # type: ignore[misc]
        whole = best(lambda data=data: parse_sitemap(data, ADDRESS))  # type: ignore[misc]
        other = best(lambda body=body: peer(body)) if peer(body) is not None else None  # type: ignore[misc]
        against = f"{other * 1000:5.0f} ms, ratio {whole / other:4.1f}" if other is not None else "refuses it"
        rows = len(parse_sitemap(data, ADDRESS).rows)
        print(
            f"{name:16} {rows:6} rows {whole * 1000:5.0f} ms; "
            f"tree {tree * 1000:4.0f} ms, ratio {whole / tree:4.1f}; ElementTree {against}"
        )


if __name__ == "__main__":
    main()
