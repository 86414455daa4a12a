"""Feeds that are cut, damaged, sloppy or meant to do harm: bounded, told, and never an exception but NotAFeed."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.core import feed as feed_module
from monitor.core.feed import parse_feed
from monitor.core.feed_scan import scan
from monitor.model import Feed, NotAFeed
from tests.corpus import members

URL = "https://news.example/feed.xml"
ITEM = b"<item><guid isPermaLink='false'>%d</guid><title>Story %d</title><link>https://news.example/%d</link></item>"
ITEMS = b"".join(ITEM % (number, number, number) for number in range(5))
WHOLE = b'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>' + ITEMS + b"</channel></rss>"


def rules(feed: Feed) -> set[str]:
    return {problem.rule for problem in feed.problems}


def test_every_cut_is_told_and_shows_whole_entries_only() -> None:
    whole = parse_feed(WHOLE, URL)
    assert whole.complete
    assert whole.problems == ()
    for length in range(WHOLE.index(b"<channel>"), len(WHOLE) - 1):
        cut = parse_feed(WHOLE[:length], URL)
        assert not cut.complete
        assert "xml.cut" in rules(cut)
        assert cut.entries == whole.entries[: WHOLE[:length].count(b"</item>")]


def test_cut_document_skips_known_entries_too() -> None:
    feed = parse_feed(WHOLE[:-40], URL, known=frozenset({"0", "1"}))
    assert [entry.id for entry in feed.entries] == ["2", "3"]
    assert feed.ids == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Story 2", b"R&D, Q&A &amp; caf&eacute;&nbsp;society"),
        (b"Story 2", b"tab\x0bbed\x00"),
        (b"Story 2", b"bad reference &#0; &#99999999; &#xD800;"),
        (b"Story 2", b"caf\xe9"),
        (b"<title>Story 2", b"<media:thumbnail url='x'/><title>Story 2"),
        (b"</channel>", b"<!-- a -- b --></channel>"),
        (b"<title>Story 2", b"<description>a<br>b</description><title>Story 2"),
    ],
)
def test_sloppy_feed_that_was_read_whole_is_complete(old: bytes, new: bytes) -> None:
    feed = parse_feed(WHOLE.replace(old, new), URL)
    assert feed.complete
    assert feed.ids == ("0", "1", "2", "3", "4")
    assert feed.problems
    assert feed.entries[3].title == "Story 3"


def test_references_that_xml_does_not_know_are_read_as_meant() -> None:
    feed = parse_feed(WHOLE.replace(b"Story 2", b"R&D, Q&A &amp; caf&eacute;&nbsp;&#146;s"), URL)
    assert feed.entries[2].title == "R&D, Q&A & caf\u00e9 \u2019s"


def test_hole_in_the_middle_is_not_complete() -> None:
    damaged = WHOLE[: WHOLE.index(b"Story 1")] + WHOLE[WHOLE.index(b"Story 3") :]
    feed = parse_feed(damaged, URL)
    assert parse_feed(WHOLE.replace(b"</item><item>", b"<item>", 1), URL).complete is False
    assert feed.complete  # nothing tells that entries are missing: item 1 became item 3
    assert feed.size == 3


def test_text_around_the_document_is_tolerated_and_told() -> None:
    feed = parse_feed(
        b"<br />\n<b>Warning</b>: include() failed in /index.php\n" + WHOLE + b"<script>x()</script>", URL
    )
    assert feed.size == 5
    assert feed.complete
    assert {"xml.before", "xml.after"} <= rules(feed)
    assert rules(parse_feed(b"\n\n " + WHOLE, URL)) == {"xml.before"}
    assert parse_feed(WHOLE + b"\n<!-- cached 12:00 -->\n", URL).problems == ()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "The body is empty."),
        (b" \r\n\t", "The body is empty."),
        (
            b"<!DOCTYPE html><html><head><title>Oops</title></head></html>",
            'The body is an HTML page titled "Oops", not a feed.',
        ),
        (
            b'<html><head><base href="/x/"><link rel="alternate" type="application/rss+xml" href="rss"></head></html>',
            "The body is an HTML page, not a feed; it names a feed at https://news.example/x/rss.",
        ),
        (
            b'<?xml version="1.0"?><urlset><url><loc>https://a.example/</loc></url></urlset>',
            "The body is a sitemap (urlset), not a feed.",
        ),
        (b"<sitemapindex/>", "The body is a sitemap index, not a feed."),
        (b"<opml version='2.0'><body/></opml>", "The body is an OPML subscription list, not a feed."),
        (
            b"<Error><Code>AccessDenied</Code></Error>",
            'The body is an XML document of root <Error> ("AccessDenied"), not a feed.',
        ),
        (b"\x89PNG\r\n\x1a\n....", "The body is a PNG image, not a feed."),
        (bytes(range(1, 32)) * 10, "The body is binary data, not a feed."),
        (b"service unavailable", 'The body is text, not a feed: "service unavailable".'),
        (b'<rdf:RDF xmlns:rdf="x"><foaf:Person/></rdf:RDF>', "The body is an XML document of root <RDF>, not a feed."),
    ],
)
def test_what_is_no_feed_is_refused_with_a_sentence(body: bytes, sentence: str) -> None:
    with pytest.raises(NotAFeed) as caught:
        parse_feed(body, URL)
    assert str(caught.value) == sentence


def test_empty_feed_is_a_complete_feed() -> None:
    feed = parse_feed(b'<rss version="2.0"><channel><title>Quiet</title></channel></rss>', URL)
    assert (feed.size, feed.complete, feed.problems) == (0, True, ())


def test_body_that_is_a_path_is_not_opened() -> None:
    with pytest.raises(NotAFeed, match="text, not a feed"):
        parse_feed(__file__.encode(), URL)


def test_entities_neither_expand_nor_reach_outside() -> None:
    layers = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    laughs = f'<!DOCTYPE rss [<!ENTITY a "ha">{layers}]><rss><channel><item><title>&j;</title></item></channel></rss>'
    outside = '<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/hostname">]><rss><channel><item><title>&a;</title></item></channel></rss>'
    for text, name in ((laughs, "j"), (outside, "a")):
        feed = parse_feed(text.encode(), URL)
        assert feed.entries[0].title == f"&{name};"
        assert "xml.entities" in rules(feed)
    long = f'<!DOCTYPE rss [<!ENTITY a "{"x" * 200}">]><rss><channel><title>{"&a;" * 10_000}</title></channel></rss>'
    assert "xml.entities" in rules(parse_feed(long.encode(), URL))
    plain = '<!DOCTYPE rss [<!ENTITY copy2 "(C)"><!ENTITY eu "&#8364;">]>'
    plain += "<rss><channel><title>&copy2; 5 &eu;</title></channel></rss>"
    assert parse_feed(plain.encode(), URL).title == "(C) 5 \u20ac"


def test_depth_attributes_and_entries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = parse_feed(WHOLE.replace(b"</channel>", b"<a>" * 1_000_000), URL)
    assert (deep.size, deep.complete) == (5, False)
    assert "xml.excess" in rules(deep)
    many = b"".join(b' a%d="1"' % number for number in range(10_000))
    assert "xml.excess" in rules(parse_feed(WHOLE.replace(b"<item>", b"<item" + many + b">", 1), URL))
    monkeypatch.setattr(feed_module, "MAX_ENTRIES", 3)
    for body in (WHOLE, WHOLE.replace(b"Story 4", b"<b>")):
        feed = parse_feed(body, URL)
        assert (feed.ids, feed.complete) == (("0", "1", "2"), False)
        assert "feed.too-many" in rules(feed)
        assert [entry.id for entry in parse_feed(body, URL, known=frozenset({"0"})).entries] == ["1", "2"]


def test_endless_words_do_not_hold_up_the_parser() -> None:
    body = b"<rss><channel><item><guid>1</guid><author>" + b"a" * 2_000_000 + b"</author></item></channel></rss>"
    assert parse_feed(body, URL).ids == ("1",)


def test_misplaced_extension_costs_no_entry() -> None:
    """feedparser fails with an exception on an end tag that it does not expect."""
    body = WHOLE.replace(b"<rss ", b"<rss xmlns:gml='http://www.opengis.net/gml' ")
    body = body.replace(b"<title>Story 2", b"<gml:pos>1 2 3</gml:pos><title>Story 2")
    feed = parse_feed(body, URL)
    assert rules(feed) == {"parser.failed"}
    assert [entry.title for entry in feed.entries] == [f"Story {number}" for number in range(5)]


def test_gzip_is_peeled() -> None:
    packed = gzip.compress(WHOLE)
    assert parse_feed(packed, URL) == parse_feed(WHOLE, URL)
    assert parse_feed(packed[:-8], URL).complete is False


@cache
def documents() -> tuple[bytes, ...]:
    """Small documents of every format, from two suites."""
    archives = ("suites/gofeed.tar.gz", "feeds/laminas-feed.tar.gz")
    files = [data for archive in archives for name, data in members(archive) if name.endswith((".xml", ".rss"))]
    return tuple(sorted({data for data in files if len(data) < 4000}, key=len))


MARKS = (
    b'< > & " ]]> <![CDATA[ <!-- \x00 \xff <item> </item> <entry> </entry> <guid> <source> </author> <image> '
    b' <svg> </rss> &#xD800; xml:base="http://[" <link>http://[x</link> <pubDate>0001-01-01</pubDate> </gml:pos>'
    b" <updated>9999-12-31T23:59:59-14:00</updated> <georss:point>1</georss:point> </media:credit> encoding='utf-7'"
)
SPLICES = st.sampled_from([*MARKS.split(), b"&#" + b"9" * 5000 + b";"])
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), SPLICES | st.binary(max_size=8)), max_size=6)


def hold(data: bytes, content_type: str | None = None) -> None:
    """Whatever the bytes: no other exception, distinct ids, dates in UTC, and known entries change nothing."""
    try:
        full = parse_feed(data, URL, content_type)
    except NotAFeed:
        return
    assert len(full.ids) == len(set(full.ids)) <= full.size
    assert all(full.ids)
    for entry in full.entries:
        texts = (entry.id, entry.url or "", entry.title or "", entry.summary or "", *entry.authors, *entry.tags)
        assert "\x00" not in "".join(texts)
        "".join(texts).encode()
    for date in full.dates:
        assert date.utcoffset() is not None
    known = frozenset(full.ids[::2])
    part = parse_feed(data, URL, content_type, known=known)
    fresh = tuple(entry for entry in full.entries if entry.id not in known)
    assert replace(part, problems=()) == replace(full, entries=fresh, problems=())


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=400), st.sampled_from([None, "text/html", "application/xml; charset=utf-7", "x; charset=idna"])
)
def test_arbitrary_bytes(data: bytes, content_type: str | None) -> None:
    hold(data, content_type)
    hold(b"<rss><channel><item>" + data, content_type)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.integers(0, 10_000), EDITS)
def test_mutated_feeds(index: int, edits: list[tuple[float, int, bytes]]) -> None:
    chosen = documents()
    data = chosen[index % len(chosen)]
    for place, length, splice in edits:
        start = int(place * len(data))
        data = data[:start] + splice + data[start + length :]
    hold(data)


def test_scan_knows_where_entries_stand() -> None:
    found = scan(WHOLE)
    assert found.error is None
    assert not found.odd
    assert b"".join(WHOLE[item.start : item.end] for item in found.items) == ITEMS
    assert [item.guid for item in found.items] == ["0", "1", "2", "3", "4"]
