"""One rule of the field a test: identity, links, dates, texts, hashes, what a feed says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.core.feed import parse_feed
from monitor.core.feed_text import content_hash, reader_text
from monitor.model import Entry, Feed

URL = "https://news.example/feeds/main.xml"


def rss(items: str, channel: str = "<title>News</title>", attributes: str = "") -> Feed:
    return parse_feed(f'<rss version="2.0" {attributes}><channel>{channel}{items}</channel></rss>'.encode(), URL)


def item(*parts: str, **elements: str) -> str:
    return f"<item>{''.join(f'<{name}>{text}</{name}>' for name, text in elements.items())}{''.join(parts)}</item>"


def atom(entries: str, feed: str = "", attributes: str = "") -> Feed:
    body = f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}>{feed}{entries}</feed>'
    return parse_feed(body.encode(), URL)


def only(feed: Feed) -> Entry:
    assert len(feed.entries) == 1
    return feed.entries[0]


def marks(feed: Feed) -> list[tuple[str, str]]:
    return [(entry.id, entry.id_kind) for entry in feed.entries]


# Identity


def test_id_is_guid_then_link_then_hash() -> None:
    feed = rss(
        item(guid="tag:1", link="https://news.example/1", title="One")
        + item(link="/2", title="Two")
        + item(title="Three", pubDate="Tue, 01 Dec 2026 09:00:00 GMT")
    )
    assert marks(feed)[:2] == [("tag:1", "guid"), ("https://news.example/2", "link")]
    assert feed.entries[2].id_kind == "hash"
    assert feed.entries[2].id.startswith("hash:")
    assert feed.ids == tuple(entry.id for entry in feed.entries)


def test_hash_identity_holds_when_the_text_is_edited_or_the_date_rewritten() -> None:
    before = rss(item(title="Three", pubDate="Tue, 01 Dec 2026 09:00:00 GMT", description="a"))
    after = rss(item(title="Three", pubDate="Tue, 01 Dec 2026 10:00:00 +0100", description="b"))
    other = rss(item(title="Three", pubDate="Wed, 02 Dec 2026 09:00:00 GMT", description="a"))
    assert before.ids == after.ids != other.ids
    assert rss(item(description="a")).ids != rss(item(description="b")).ids


def test_guid_of_entries_that_differ_is_no_identity() -> None:
    shared = rss(
        item(guid="x", link="https://news.example/1", title="One")
        + item(guid="x", link="https://news.example/2", title="Two")
        + item(guid="y", link="https://news.example/3", title="Three")
    )
    assert marks(shared) == [
        ("https://news.example/1", "link"),
        ("https://news.example/2", "link"),
        ("y", "guid"),
    ]
    assert [problem.rule for problem in shared.problems] == ["entry.guid-repeated"]
    same_link = rss(item(guid="x", link="/live", title="One") + item(guid="x", link="/live", title="Two"))
    assert [entry.id_kind for entry in same_link.entries] == ["hash", "hash"]
    assert len(set(same_link.ids)) == 2


def test_exact_repetitions_are_one_entry() -> None:
    one = item(guid="x", link="https://news.example/1", title="One")
    feed = rss(one + item(guid="y", title="Two") + one)
    assert feed.ids == ("x", "y")
    assert feed.size == 3
    assert feed.problems == ()


def test_link_that_is_another_entrys_guid_is_not_taken_twice() -> None:
    feed = rss(item(guid="https://news.example/1", title="One") + item(link="https://news.example/1", title="Two"))
    assert [kind for _, kind in marks(feed)] == ["guid", "hash"]


def test_guid_stays_as_published_whatever_the_feeds_address() -> None:
    body = b"<rss><channel><item><guid>12345</guid><title>A</title></item></channel></rss>"
    first, second = (parse_feed(body, url) for url in (URL, "http://other.example/rss"))
    assert first.ids == second.ids == ("12345",)
    assert only(first).url is None
    based = atom("<entry><id>t3_42</id><title>A</title></entry>", attributes='xml:base="https://other.example/"')
    assert based.ids == ("t3_42",)


def test_rdf_about_is_the_id() -> None:
    body = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="c"><title>N</title></channel>'
        '<item rdf:about="https://news.example/1"><title>One</title><link>https://news.example/one</link>'
        "<dc:date>2026-12-01T10:00:00+01:00</dc:date></item></rdf:RDF>"
    )
    feed = parse_feed(body.encode(), URL)
    entry = only(feed)
    assert (feed.format, entry.id, entry.url) == ("rdf", "https://news.example/1", "https://news.example/one")
    assert entry.published == datetime(2026, 12, 1, 9, tzinfo=UTC)
    assert parse_feed(body.encode(), URL, known=frozenset(feed.ids)).dates == feed.dates


# Links


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ("<link> https://news.example/a?b=1&amp;c=2 </link>", "https://news.example/a?b=1&c=2"),
        ("<link>story.html</link>", "https://news.example/feeds/story.html"),
        ("<link>//cdn.example/x</link>", "https://cdn.example/x"),
        ("<link>https://news.example/a b</link>", "https://news.example/a%20b"),
        ("<link>https://news.example/a\n  b</link>", "https://news.example/ab"),
        ("<guid>https://news.example/g</guid>", "https://news.example/g"),
        ("<guid isPermaLink='false'>https://news.example/g</guid>", None),
        ("<guid isPermaLink='true'>7</guid>", None),
        ("<link>javascript:alert(1)</link>", None),
        ("<link>https://[bad</link>", None),
        ("<enclosure url='https://news.example/a.mp3' type='audio/mpeg' length='1'/>", "https://news.example/a.mp3"),
        ("<link uri='at://did/app/1'>https://news.example/at</link>", "https://news.example/at"),
    ],
)
def test_url_is_the_link_as_published_and_absolute(parts: str, url: str | None) -> None:
    assert only(rss(f"<item><title>A</title>{parts}</item>")).url == url


def test_link_that_is_none_is_told() -> None:
    feed = rss(item(guid="1", link="ftp://news.example/a"))
    assert [(problem.rule, problem.place) for problem in feed.problems] == [("entry.link", "entry 1")]


def test_atom_links() -> None:
    links = (
        '<link rel="self" href="https://news.example/self"/><link rel="enclosure" href="https://news.example/a.mp3"/>'
        '<link href="story"/>'
    )
    feed = atom(f'<entry xml:base="sub/"><id>urn:1</id>{links}</entry>', attributes='xml:base="https://b.example/x/"')
    assert only(feed).url == "https://b.example/x/sub/story"
    only_self = atom('<entry><id>urn:1</id><link rel="self" href="/self"/></entry>')
    assert only(only_self).url == "https://news.example/self"


def test_original_link_of_a_feed_proxy() -> None:
    feed = rss(
        item("<feedburner:origLink>https://news.example/1</feedburner:origLink>", link="https://proxy.example/~r/1"),
        attributes='xmlns:feedburner="http://rssnamespace.org/feedburner/ext/1.0"',
    )
    entry = only(feed)
    assert (entry.url, entry.original_url) == ("https://proxy.example/~r/1", "https://news.example/1")


# Dates


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("Tue, 01 Dec 2026 10:30:00 +0130", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("Tue, 01 Dec 2026 10:00:00 CET", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01T09:00:00Z", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("0001-01-01T00:00:00Z", None),
        ("soon", None),
    ],
)
def test_dates_are_utc_or_none(text: str, instant: datetime | None) -> None:
    feed = rss(item(guid="1", pubDate=text))
    assert only(feed).published == instant
    assert feed.dates == (() if instant is None else (instant,))
    assert [problem.rule for problem in feed.problems] == ([] if instant else ["entry.date"])


def test_dates_of_known_entries_count_in_document_order() -> None:
    items = "".join(item(guid=str(day), pubDate=f"0{day} Dec 2026 09:00:00 GMT") for day in (3, 2, 1))
    data = f"<rss><channel>{items}</channel></rss>".encode()
    feed = parse_feed(data, URL, known=frozenset({"3", "1"}))
    assert [date.day for date in feed.dates] == [3, 2, 1]
    assert (feed.size, feed.ids, [entry.id for entry in feed.entries]) == (3, ("3", "2", "1"), ["2"])


def test_atom_keeps_published_and_updated_apart() -> None:
    dates = "<published>2026-12-01T09:00:00Z</published><updated>2026-12-02T09:00:00Z</updated>"
    entry = only(atom(f"<entry><id>1</id>{dates}</entry>"))
    assert (entry.published, entry.updated) == (
        datetime(2026, 12, 1, 9, tzinfo=UTC),
        datetime(2026, 12, 2, 9, tzinfo=UTC),
    )
    updated_only = only(atom("<entry><id>1</id><updated>2026-12-02T09:00:00Z</updated></entry>"))
    assert updated_only.published is None


def test_dates_of_an_entrys_source_are_not_its_own() -> None:
    source = "<source><id>urn:other</id><updated>2001-01-01T00:00:00Z</updated></source>"
    body = f"<entry><id>urn:1</id><updated>2026-12-01T09:00:00Z</updated>{source}</entry>"
    feed = atom(body)
    assert (feed.ids, [date.year for date in feed.dates]) == (("urn:1",), [2026])
    wrapped = f'<feed xmlns="http://www.w3.org/2005/Atom">{body}</feed>'.encode()
    assert parse_feed(wrapped, URL, known=frozenset({"urn:1"})).dates == feed.dates


# Texts


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("Fish &amp; chips", "Fish & chips"),
        ("Fish &amp;amp; chips", "Fish & chips"),
        ("<![CDATA[The &#8216;best&#8217; <em>news</em>]]>", "The \u2018best\u2019 news"),
        ("  A\n  headline\t here ", "A headline here"),
        ("5 &lt; 6", "5 < 6"),
        ("R&D spending", "R&D spending"),
        ("caf&eacute;", "caf\u00e9"),
    ],
)
def test_title_is_what_a_reader_sees(markup: str, title: str) -> None:
    assert only(rss(f"<item><guid>1</guid><title>{markup}</title></item>")).title == title


def test_atom_title_of_plain_text_keeps_its_brackets() -> None:
    assert only(atom('<entry><id>1</id><title type="text">The &lt;b&gt; tag</title></entry>')).title == "The <b> tag"
    assert (
        only(atom('<entry><id>1</id><title type="html">The &lt;b&gt;new&lt;/b&gt; tag</title></entry>')).title
        == "The new tag"
    )


def test_summary_authors_and_tags() -> None:
    entry = only(
        rss(
            item(
                "<category>World</category><category>World</category><category>Art &amp;amp; Life</category>",
                "<dc:creator>Ann Lee</dc:creator><dc:creator>Bo Ek</dc:creator>",
                guid="1",
                description="&lt;p&gt;One &lt;a href='x'&gt;link&lt;/a&gt;.&lt;/p&gt;&lt;p&gt;Two&lt;/p&gt;"
                "&lt;script&gt;x()&lt;/script&gt;",
            ),
            attributes='xmlns:dc="http://purl.org/dc/elements/1.1/"',
        )
    )
    assert (entry.summary, entry.authors, entry.tags) == (
        "One link. Two",
        ("Ann Lee", "Bo Ek"),
        ("World", "Art & Life"),
    )


def test_reader_text_parts_blocks_but_not_words() -> None:
    assert reader_text("<b>H</b>ello<br>you<!-- no --><p>x</p>&amp;amp;", True) == "Hello you x &amp;"
    assert reader_text("a <b> c", False) == "a <b> c"


# Hash

STORY = "<p>The council met on 3 May and 12 people spoke.</p>"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<p>On 3 May <b>he</b> spoke</p>", "<div>On 3&nbsp;May\nhe spoke</div><!-- built 12:01 -->"),
        ('<img src="https://t.example/pixel?t=123">', '<img src="https://t.example/pixel?t=456">'),
        ("<p>1 comment</p>", "<p>14 comments</p>"),
        ("<span>(1,204)</span>", "<span>(1,305)</span>"),
        ("<p>Views: 987</p>", "<p>Views: 3.4k</p>"),
        ("<p>\u2605 512</p>", "<p>\u2605 513</p>"),
        ("<p>512 stars today</p>", "<p>7 stars today</p>"),
        ("<p>posted 5 minutes ago</p>", "<p>posted an hour ago</p>"),
        ("<p>vor 3 Stunden</p>", "<p>vor einem Tag</p>"),
        ("<p>as of 2026-12-01T09:00:00Z</p>", "<p>as of 2026-12-01T10:00:00.5+00:00</p>"),
        ("<p>Tue, 01 Dec 2026 09:00:00 GMT</p>", "<p>Wed, 02 Dec 2026 09:00:00 GMT</p>"),
        ("see https://news.example/a?utm=1", "see https://news.example/a?utm=2"),
    ],
)
def test_hash_is_not_moved_by_noise(first: str, second: str) -> None:
    """lemon24/reader 225: star counts and rotating time stamps made endless updates."""
    assert content_hash("T", [(STORY + first, True)]) == content_hash("T", [(STORY + second, True)])


@pytest.mark.parametrize(
    ("title", "body"),
    [("T.", STORY), ("T", STORY.replace("12 people", "15 people")), ("T", STORY.replace("met", "sat")), ("T", "")],
)
def test_hash_is_moved_by_an_edit(title: str, body: str) -> None:
    assert content_hash("T", [(STORY, True)]) != content_hash(title, [(body, True)])


def test_hash_of_an_entry_ignores_build_dates_but_not_content() -> None:
    def read(build: str, content: str) -> str:
        channel = f"<title>N</title><lastBuildDate>{build}</lastBuildDate>"
        body = item(f"<content:encoded>{content}</content:encoded>", guid="1", title="T", pubDate=build)
        attributes = 'xmlns:content="http://purl.org/rss/1.0/modules/content/"'
        return only(rss(body, channel, attributes)).content_hash

    first = read("Tue, 01 Dec 2026 09:00:00 GMT", "text")
    assert first == read("Tue, 01 Dec 2026 10:00:00 GMT", "text")
    assert first != read("Tue, 01 Dec 2026 09:00:00 GMT", "another text")


# The feed


def test_what_a_feed_says_of_itself() -> None:
    channel = (
        "<title>News &amp; more</title><link>/</link><language>en-gb</language><ttl>30</ttl>"
        "<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>"
        "<skipHours><hour>0</hour><hour>24</hour><hour>5</hour><hour>99</hour></skipHours>"
        "<skipDays><day>Sunday</day><day>monday</day></skipDays>"
        '<atom:link rel="hub" href="https://hub.example/"/><atom:link rel="self" href="https://news.example/rss"/>'
        '<atom:link rel="next" href="?page=2"/>'
    )
    names = 'xmlns:sy="http://purl.org/rss/1.0/modules/syndication/" xmlns:atom="http://www.w3.org/2005/Atom"'
    feed = rss(item(guid="1"), channel, names)
    assert (feed.format, feed.title, feed.language) == ("rss20", "News & more", "en-gb")
    assert (feed.home_url, feed.self_url, feed.hub) == (
        "https://news.example/",
        "https://news.example/rss",
        "https://hub.example/",
    )
    assert feed.next_archive == "https://news.example/feeds/main.xml?page=2"
    assert (feed.ttl, feed.update_period) == (1800.0, 21600.0)
    assert (feed.skip_hours, feed.skip_days) == (frozenset({0, 5}), frozenset({0, 6}))


def test_an_archive_goes_before_the_next_page() -> None:
    links = '<link rel="next" href="/2"/><link rel="prev-archive" href="/2025"/>'
    assert atom("", links).next_archive == "https://news.example/2025"


@pytest.mark.parametrize("ttl", ["", "0", "-5", "soon", "9" * 400])
def test_useless_ttl_is_none(ttl: str) -> None:
    assert rss("", f"<ttl>{ttl}</ttl>").ttl is None


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('<rss version="2.0"><channel/></rss>', "rss20"),
        ('<rss version="2.0.1"><channel/></rss>', "rss20"),
        ("<rss><channel/></rss>", "rss20"),
        ('<RSS VERSION="2.0"><CHANNEL/></RSS>', "rss20"),
        ('<rss version="0.91"><channel/></rss>', "rss091"),
        ('<rss version="0.92"><channel/></rss>', "rss092"),
        ('<a:feed xmlns:a="http://www.w3.org/2005/Atom"/>', "atom10"),
        ('<feed version="0.3" xmlns="http://purl.org/atom/ns#"/>', "atom03"),
        ('<channel href="https://news.example/"><item href="/1"><title>A</title></item></channel>', "cdf"),
        ('<rdf:RDF xmlns:rdf="r" xmlns="http://my.netscape.com/rdf/simple/0.9/"></rdf:RDF>', "rdf"),
    ],
)
def test_formats(body: str, name: str) -> None:
    feed = parse_feed(body.encode(), URL)
    assert (feed.format, feed.complete) == (name, True)


# Encodings


@pytest.mark.parametrize(
    ("encoding", "declared", "header", "problems"),
    [
        ("utf-8", None, None, set()),
        ("utf-8", "utf-8", "application/xml; charset=iso-8859-1", set()),
        ("utf-8", "iso-8859-1", None, {"encoding.label"}),
        ("utf-8", "no-such-thing", None, {"encoding.unknown"}),
        ("windows-1252", "windows-1252", None, set()),
        ("windows-1252", "iso-8859-1", None, set()),
        ("windows-1252", None, "text/xml; charset=windows-1252", set()),
        ("windows-1252", None, None, {"encoding.label"}),
        ("windows-1252", "utf-8", None, {"encoding.label"}),
        ("utf-8-sig", "us-ascii", None, set()),
        ("utf-16", "utf-16", None, set()),
        ("utf-16-le", "utf-16", None, set()),
        ("utf-32-be", "utf-32", None, set()),
    ],
)
def test_bytes_decide_the_encoding(encoding: str, declared: str | None, header: str | None, problems: set[str]) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else '<?xml version="1.0"?>'
    text = (
        f'{declaration}<rss version="2.0"><channel><title>Fu\u00dfg\u00e4nger \u2013 caf\u00e9</title></channel></rss>'
    )
    feed = parse_feed(text.encode(encoding), URL, header)
    assert feed.title == "Fu\u00dfg\u00e4nger \u2013 caf\u00e9"
    assert {problem.rule for problem in feed.problems} == problems
    assert feed.complete


def test_one_bad_byte_spoils_one_character() -> None:
    data = "<rss><channel><title>na\u00efve caf\u00e9</title></channel></rss>".encode().replace(b"\xc3\xaf", b"\xc3")
    feed = parse_feed(data, URL)
    assert feed.title == "na\ufffdve caf\u00e9"
    assert [problem.rule for problem in feed.problems] == ["encoding.invalid"]


def test_content_type_is_told_not_believed() -> None:
    feed = parse_feed(b"<rss><channel/></rss>", URL, "text/html; charset=utf-8")
    assert [problem.rule for problem in feed.problems] == ["http.content-type"]
