from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core import discovery
from monitor.core.discovery import FoundLink, feed_links, sitemap_links
from tests.corpus import expectations, members

URL = "https://www.example.com/news/a"
RSS = "application/rss+xml"


def feeds(head: str) -> list[str]:
    return [link.url for link in feed_links(f"<html><head>{head}".encode(), URL)]


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (f"<link rel=alternate type={RSS} href=/feed>", ["https://www.example.com/feed"]),
        (f"<LINK TYPE='{RSS.upper()}; charset=utf-8' REL=Alternate HREF='feed/'/>", ["https://www.example.com/news/feed/"]),
        ("<link rel=alternate type=application/atom+xml href=//b.com/x>", ["https://b.com/x"]),
        ("<link rel=alternate type=application/feed+json href=/f.json>", ["https://www.example.com/f.json"]),
        ("<link rel=alternate type=application/json href=/feed.json>", ["https://www.example.com/feed.json"]),
        ("<link rel=alternate type=application/rdf+xml href=/rdf>", ["https://www.example.com/rdf"]),
        ("<link rel=alternate type=text/xml href=/rss.xml>", ["https://www.example.com/rss.xml"]),
        ("<link rel='alternate feed' href=/f>", ["https://www.example.com/f"]),
        (f"<base href='https://b.com/dir/'><link rel=alternate type={RSS} href=f>", ["https://b.com/dir/f"]),
        (f"<link rel=alternate type={RSS} href='/f?a=1&amp;b=2'>", ["https://www.example.com/f?a=1&b=2"]),
        (f"<link rel=alternate type={RSS} href='feed://b.com/f'>", ["http://b.com/f"]),
        (f"<link rel=alternate type={RSS} href='feed:https://b.com/f'>", ["https://b.com/f"]),
        ("".join(f"<link rel=alternate type={RSS} href=/{number}>" for number in (2, 1, 2)),
         ["https://www.example.com/2", "https://www.example.com/1"]),
        (f"<link rel=alternate type={RSS} href=''><link rel=alternate type={RSS}>", []),
        (f"<!-- <link rel=alternate type={RSS} href=/f> -->", []),
        (f"<script>document.write('<link rel=alternate type={RSS} href=/f>')</script>", []),
        ("<link rel=alternate type=application/json href=https://b.com/wp-json/wp/v2/posts/7>", []),
        ("<link rel=alternate type=application/json+oembed href=/oembed?x>", []),
        ("<link rel=alternate type=text/xml href='/services/oembed?format=xml'>", []),
        ("<link rel=alternate hreflang=de href=/de>", []),
        ("<link rel='alternate stylesheet' type=text/xml href=/s>", []),
        (f"<link rel=stylesheet type={RSS} href=/s>", []),
    ],
)  # fmt: skip
def test_feed_links(head: str, found: list[str]) -> None:
    assert feeds(head) == found


@pytest.mark.parametrize(
    ("href", "title", "comments"),
    [
        ("/comments/feed/", "", True),
        ("/feeds/7/comments/default", "", True),
        ("/?feed=comments-rss2", "", True),
        ("/2024/a/feed/", "Site &raquo; Fire at the mill Comments Feed", True),
        ("/2024/a/feed/", "Site &raquo; Kommentar-Feed zu Feuer", True),
        ("/feed/", "Site &raquo; Feed", False),
        ("/rss/kommentare.xml", "Kommentare (RSS)", False),
        ("/comment/rss", "Comment is free", False),
        ("/commentary/feed", "Commentary", False),
    ],
)
def test_feeds_of_comments_are_marked(href: str, title: str, comments: bool) -> None:
    body = f"<head><link rel=alternate type={RSS} title='{title}' href='{href}'>".encode()
    assert [link.comments for link in feed_links(body, URL)] == [comments]


def test_a_link_keeps_what_was_declared() -> None:
    body = f"<head><link rel=alternate type='{RSS}' title='News &amp; more' href=/f>".encode()
    assert feed_links(body, URL) == (FoundLink("https://www.example.com/f", RSS, "News & more", comments=False),)


def test_sitemap_links() -> None:
    body = b"<head><link rel=Sitemap type=application/xml href=/sitemap.xml><link rel=sitemap href=/sitemap.xml>"
    assert sitemap_links(body, URL) == (FoundLink("https://www.example.com/sitemap.xml", "application/xml"),)
    assert feed_links(body, URL) == ()


def test_only_html_is_asked() -> None:
    feed = b"<?xml version='1.0'?><feed><link rel='alternate' type='application/rss+xml' href='/f'/></feed>"
    assert feed_links(feed, URL, "text/html") == ()


@given(st.binary(max_size=200), st.text(max_size=20))
def test_never_raises(body: bytes, url: str) -> None:
    head = f"<html><link rel=alternate type={RSS} href=".encode()
    assert all(link.url.startswith("http") for link in feed_links(head + body, url) + sitemap_links(head + body, url))


@pytest.mark.parametrize("name", ["WELL_KNOWN_SITEMAPS", "WELL_KNOWN_FEEDS", "WELL_KNOWN_NEWS"])
def test_guesses_are_paths_and_each_is_made_once(name: str) -> None:
    paths = getattr(discovery, name)
    assert len(set(paths)) == len(paths)
    assert all(path.startswith("/") and not path.startswith("//") for path in paths)


def test_pages_whose_origin_states_the_links() -> None:
    stated = expectations("html")
    assert stated
    for line in stated:
        body = dict(members(line["archive"]))[line["file"]]
        links = [link for link in feed_links(body, line["url"]) if not link.comments]
        assert len(links) == line["n_feed_links"], line["file"]
        assert [link.type for link in links] == line["feed_link_types"]
        assert [link.url for link in links] == line.get("feed_links", [link.url for link in links])


def test_real_heads_lose_no_feed() -> None:
    for name, body in members("html/heads.tar.gz"):
        found = {link.url for link in feed_links(body, URL)}
        text = re.sub(rb"(?is)<!--.*?-->|<script.*?</script>", b"", body).decode("utf-8", "replace")
        for tag in re.findall(r"<link\b[^>]*application/(?:rss|atom)\+xml[^>]*>", text):
            href = re.search(r"\shref=\"(https?://[^\"&\s]+)\"", tag)
            if href is not None and "alternate" in tag:
                assert href[1] in found, (name, tag)
