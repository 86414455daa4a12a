"""Sitemaps of real sites: as many rows as their origins state, or as a plain count of tags finds."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from monitor.core.decode import decode
from monitor.core.sitemap import parse_sitemap
from monitor.model import NotASitemap
from tests.corpus import corpus_path, expectations, members

URL = "https://www.example.com/sitemap.xml"
TAG = re.compile(rb"<(url|sitemap|item|entry)[\s>]")
LOC = re.compile(rb"<loc>\s*([^<]*?)\s*</loc>")
FILES = ["suites/crawler-commons.tar.gz", "sitemaps/crawlers-misc.tar.gz", "sitemaps/site-repositories.tar.gz"]
# How many documents of a series to leave out between two that are read: many differ in a line or two only.
SERIES = {
    "alaska-tree": 12,
    "cemantix-news-sitemap": 1,
    "cemantix-sitemap": 7,
    "sitemap-1games-io": 1,
    "sitemap-easemate": 12,
    "sitemap-fotor": 12,
    "sitemap-heygen": 1,
    "sitemap-imagine": 12,
    "sitemap-invideo": 1,
    "sitemap-wavespeed": 12,
    "zhaoqi-atom": 9,
    "zhaoqi-baidusitemap": 3,
    "zhaoqi-post-sitemap": 1,
    "zhaoqi-rss2": 1,
    "zhaoqi-sitemap": 3,
    "zhaoqi-tag-sitemap": 1,
}


def test_files_read_as_their_origins_state() -> None:
    stated = expectations("sitemap", "sitemap_index")
    content = {(archive, name.removeprefix("./")): data for archive in FILES for name, data in members(archive)}
    assert len(stated) > 10
    for line in stated:
        data = content[line["archive"], line["file"]]
        if line.get("not_a_sitemap"):
            with pytest.raises(NotASitemap):
                parse_sitemap(data, URL)
            continue
        sitemap = parse_sitemap(data, URL)
        counts = {"n_urls": not sitemap.rows[0].child, "n_sitemaps": sitemap.rows[0].child}
        for key, right_kind in counts.items():
            if key in line:
                assert (len(sitemap.rows), right_kind) == (line[key], True), line["file"]
        assert sitemap.complete, line["file"]


@pytest.mark.parametrize("archive", FILES)
def test_every_file_has_a_row_for_each_tag(archive: str) -> None:
    seen = 0
    for name, data in members(archive):
        if not re.search(r"\.xml(\.gz)?$", name) or "error_sitemap" in name:
            continue
        sitemap = parse_sitemap(data, URL)
        body = re.sub(rb"<!--.*?-->|<image>.*?</image>", b"", decode(data).data, flags=re.DOTALL)
        assert len(sitemap.rows) == len(TAG.findall(body)), name
        assert sitemap.complete, name
        assert sitemap.is_news == (b"<news:news>" in body), name
        seen += 1
    assert seen > 5


@pytest.mark.slow
@pytest.mark.parametrize("series", SERIES)
def test_every_capture_of_a_series_has_a_row_for_each_tag(series: str) -> None:
    if not (corpus_path() / f"series/{series}.tar.xz").exists():
        pytest.skip(f"the corpus has no series {series}")
    seen = 0
    for name, data in itertools.islice(members(f"series/{series}.tar.xz"), 0, None, SERIES[series]):
        if not name.endswith(".xml") or len(data) == 0:
            continue
        try:
            ElementTree.fromstring(data)
        except ElementTree.ParseError:
            well_formed = False
        else:
            well_formed = True
        expected = len(TAG.findall(re.sub(rb"<image>.*?</image>", b"", data, flags=re.DOTALL)))
        try:
            sitemap = parse_sitemap(data, URL)
        except NotASitemap:
            assert not well_formed or not expected, name
            continue
        assert sitemap.complete or not well_formed, name  # a bare ampersand is mended, and costs nothing
        assert len(sitemap.rows) == expected if sitemap.complete else len(sitemap.rows) <= expected, name
        if sitemap.kind != "feed" and well_formed and b"&" not in data and b"<![CDATA[" not in data:
            locs = [text.decode() for text in LOC.findall(re.sub(rb"<image:loc>.*?</image:loc>", b"", data))]
            assert [row.url for row in sitemap.rows] == locs, name
        seen += 1
    assert seen > 0
