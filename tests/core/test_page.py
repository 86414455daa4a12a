from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.page import PageFacts, page_links, read_page
from tests.corpus import members

URL = "https://www.example.com/news/a?id=1"


def facts(head: str = "", body: str = "", *, content_type: str | None = "text/html; charset=utf-8") -> PageFacts:
    text = f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>"
    return read_page(text.encode(), url=URL, content_type=content_type)


def test_reads_the_head() -> None:
    page = facts(
        "<title> A &amp; B\n c </title><link rel='canonical' href='/news/a'><link rel=amphtml href=//amp.example.com/a>"
    )
    assert page.title == "A & B c"
    assert page.canonical == "https://www.example.com/news/a"
    assert page.amp_url == "https://amp.example.com/a"
    assert page.language == "en"
    assert page.noindex is False


@pytest.mark.parametrize(
    ("head", "canonical"),
    [
        ("<LINK REL='Canonical nofollow' HREF='https://a.com/x#y'>", "https://a.com/x#y"),
        ("<link rel=canonical href='/a?x=1&amp;y=2'>", "https://www.example.com/a?x=1&y=2"),
        ("<base href=/section/><link rel=canonical href=x>", "https://www.example.com/section/x"),
        ("<link rel=canonical href='/a'><link rel=canonical href='/a'>", "https://www.example.com/a"),
        ("<link rel=canonical href='/a'><link rel=canonical href='/b'>", None),
        ("<link rel=canonical href=''>", None),
        ("<link rel=canonical href='javascript:x()'>", None),
        ("<!-- <link rel=canonical href='/a'> -->", None),
        ("<script>'<link rel=canonical href=/a>'</script>", None),
        ("", None),
    ],
)
def test_canonical(head: str, canonical: str | None) -> None:
    assert facts(head).canonical == canonical


@pytest.mark.parametrize(
    ("head", "noindex"),
    [
        ("<meta name=robots content='noindex, follow'>", True),
        ("<META NAME=GoogleBot CONTENT=NOINDEX>", True),
        ("<meta name=robots content=none>", True),
        ("<meta name=robots content='index,max-image-preview:large'>", False),
        ("<meta name=otherbot content=noindex>", False),
    ],
)
def test_noindex(head: str, noindex: bool) -> None:
    assert facts(head).noindex is noindex


LD = "<script type='application/ld+json'>{}</script>"


@pytest.mark.parametrize(
    ("head", "published", "modified"),
    [
        (
            "<meta property=article:published_time content=2024-05-06T10:00:00+02:00>"
            "<meta property=article:modified_time content=2024-05-06T11:00:00Z>",
            datetime(2024, 5, 6, 8, tzinfo=UTC),
            datetime(2024, 5, 6, 11, tzinfo=UTC),
        ),
        (
            LD.format('{"@type":["Thing","NewsArticle"],"datePublished":"2024-05-06","dateModified":"2024-05-07"}'),
            datetime(2024, 5, 6, tzinfo=UTC),
            datetime(2024, 5, 7, tzinfo=UTC),
        ),
        (
            # The comment is older and newer than the article, the page is only second to it.
            LD.format(
                '{"@graph":[{"@type":"WebPage","dateModified":"2023-01-01"},{"@type":"Comment","datePublished":"2020-01-01"},'
                '{"@type":"BlogPosting","dateModified":"2024-05-07","comment":[{"@type":"Comment","dateModified":"2025-01-01"}]}]}'
            ),
            None,
            datetime(2024, 5, 7, tzinfo=UTC),
        ),
        (
            LD.format('{"@type":"Article","dateModified":"soon"}') + "<meta itemprop=dateModified content=2024-05-06>",
            None,
            datetime(2024, 5, 6, tzinfo=UTC),
        ),
        (LD.format("{broken") + LD.format("[" * 100_000), None, None),
        (LD.format('<!--{"@type":"Report","datePublished":"2024-05-06"}-->'), datetime(2024, 5, 6, tzinfo=UTC), None),
        (LD.format('{"@type":"Article","datePublished":["2024-05-06"],"dateModified":5}'), None, None),
    ],
)  # fmt: skip
def test_dates(head: str, published: datetime | None, modified: datetime | None) -> None:
    page = facts(head)
    assert (page.published, page.modified) == (published, modified)


ARTICLE = "<article><h1>Fire at the mill</h1><p>The old mill burned down on Monday.</p></article>"

SAME_TEXT = [
    ("markup", ARTICLE.replace("<p>", "<div>").replace("old", "<b>old</b>\n\t").replace("</p>", "</div>")),
    ("case and punctuation", ARTICLE.replace("Fire at", "FIRE AT").replace("Monday.", "Monday!")),
    ("counters", ARTICLE.replace("</p>", " <span>17</span> <span>3 min</span></p>").replace(" min", "")),
    ("clock times", ARTICLE.replace("</p>", " 10:45</p>")),
    ("time element", ARTICLE.replace("<p>", "<time>two hours ago</time><p>")),
    ("around the article", f"<nav>Home News</nav><header>Breaking: other</header>{ARTICLE}<footer>Imprint</footer>"),
    ("aside", ARTICLE.replace("</article>", "<aside>Read this, too</aside></article>")),
    ("script", ARTICLE.replace("</article>", "<script>var nonce='abc'</script><style>p{}</style></article>")),
    ("form", ARTICLE.replace("</article>", "<form>Subscribe <input></form></article>")),
    ("heading in a header", ARTICLE.replace("<h1>", "<header><p>Local</p><h1>").replace("</h1>", "</h1></header>")),
    ("another teaser", f"{ARTICLE}<article>Short teaser</article>"),
    ("a comment", ARTICLE.replace("<p>", "<!-- built 2024 --><p>")),
]  # fmt: skip


@pytest.mark.parametrize("body", [body for _, body in SAME_TEXT], ids=[name for name, _ in SAME_TEXT])
def test_the_fingerprint_stays(body: str) -> None:
    assert facts(body=body).fingerprint == facts(body=ARTICLE).fingerprint


@pytest.mark.parametrize(
    "body",
    [
        ARTICLE.replace("Monday", "Tuesday"),
        ARTICLE.replace("Fire", "Blaze"),
        ARTICLE.replace("</p>", " Nobody was hurt.</p>"),
        ARTICLE.replace("<h1>Fire", "<header><h1>Blaze").replace("</h1>", "</h1></header>"),
    ],
)
def test_the_fingerprint_moves_with_the_words(body: str) -> None:
    assert facts(body=body).fingerprint != facts(body=ARTICLE).fingerprint


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    assert facts(body=ARTICLE).fingerprint == "5c9cab603d3fab5414106ee675f3c23b"
    assert facts(body=ARTICLE).text_length == len("Fire at the mill The old mill burned down on Monday.")


def test_main_and_body_stand_in_for_an_article() -> None:
    assert facts(body="<p>menu</p><main><p>one</p></main>").fingerprint == facts(body="<p>one</p>").fingerprint
    nested = facts(body="<article>teasers all around <div itemprop=articleBody>one</div></article>")
    assert nested.fingerprint == facts(body="one").fingerprint
    assert facts(body="<form><p>one</p></form>").fingerprint == facts(body="<p>one</p>").fingerprint


def test_a_page_without_text_has_no_fingerprint() -> None:
    page = facts(body="<div id=app></div><script>start()</script>")
    assert (page.fingerprint, page.text_length) == ("", 0)


def test_what_is_not_html_is_known_by_its_bytes() -> None:
    one, other = (read_page(data, url=URL, content_type="application/pdf") for data in (b"%PDF-1 a", b"%PDF-1 b"))
    assert one.fingerprint != other.fingerprint
    assert (one.title, one.text_length) == (None, 0)
    feed = read_page(
        b"<?xml version='1.0'?><rss><channel><title>t</title></channel></rss>", url=URL, content_type="text/html"
    )
    assert feed.title is None


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<title>Çé – ß</title>".encode(), None),
        ("<title>Çé – ß</title>".encode("cp1252"), None),
        ("<title>Çé – ß</title>".encode("cp1252"), "text/html; charset=iso-8859-1"),
        ("<meta charset=windows-1252><title>Çé – ß</title>".encode("cp1252"), "text/html"),
        ("\ufeff<title>Çé – ß</title>".encode("utf-16-le"), "text/html"),
        ("<title>Çé – ß</title>".encode(), "text/html; charset=punycode"),
        ("<title>Çé – ß</title>".encode() + "é".encode()[:1], "text/html"),
        (b"<title>\0" + "Çé – ß</title>".encode(), "text/html"),
    ],
)
def test_encodings(body: bytes, content_type: str | None) -> None:
    assert read_page(body, url=URL, content_type=content_type).title == "Çé – ß"


def test_a_picture_has_a_title_of_its_own() -> None:
    assert facts("", "<svg><title>logo</title></svg>").title is None
    assert facts("<title></title><meta property=og:title content='From Open Graph'>").title == "From Open Graph"


@pytest.mark.parametrize(
    "body",
    [
        b"<p>" + b"<div>" * 200_000 + b"deep",
        b"<p>" + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">x",
        b"<p " + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">x",
        b"<article>" * 100_000,
        b"<p>" + b"&lol;" * 100_000,
        b"<p>" + b"<" * 300_000,
        b"<title>" * 100_000,
        b"<!doctype html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><p>&x;",
        b"",
        b"\0" * 1000,
    ],
)
def test_hostile_pages_end_and_never_raise(body: bytes) -> None:
    page = read_page(body, url=URL, content_type="text/html")
    assert page.canonical is None
    assert "root:" not in (page.title or "")


@given(st.binary(max_size=200) | st.text("<>/ab='\"!-[]&;\0 htmlpscri", max_size=100).map(str.encode))
def test_never_raises(body: bytes) -> None:
    read_page(body, url="", content_type="text/html")
    page_links(b"<html>" + body, url="nonsense")


def test_links_of_a_page() -> None:
    page = b"""<html><base href=/dir/><a href=x>1</a><a href=x#y>2</a><area href='https://b.com/?a=1&amp;b=2'>
    <a href='mailto:a@b.com'>3</a><a href=z rel='NoFollow external'>4</a><a>5</a><a href=''>6</a><a href='#!/r'>7</a>"""
    base = "https://www.example.com/dir/"
    assert page_links(page, url=URL) == (f"{base}x", "https://b.com/?a=1&b=2", f"{base}#!/r")
    assert page_links(page + b"<meta name=robots content=nofollow>", url=URL) == ()
    assert page_links(b'{"a": "<a href=x>"}', url=URL, content_type="application/json") == ()


def test_heads_of_real_pages() -> None:
    pages = [read_page(body, url=URL) for _, body in members("html/heads.tar.gz")]
    assert len(pages) == 374
    assert sum(page.title is not None for page in pages) > 360
    assert sum(page.canonical is not None for page in pages) > 330
    assert sum(page.published is not None for page in pages) > 270
