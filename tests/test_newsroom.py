"""The simulated newsroom is itself an oracle for other tests, so its documents and its HTTP are held to the letter."""

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import httpx
import pytest
from lxml import etree, html

from monitor.newsroom import Newsroom, serve_in_thread

START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
LISTINGS = ["/", "/feed.xml", "/feeds/sport.xml", "/feed.json", "/sitemap_index.xml", "/news-sitemap.xml"]
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
NEWS = "{http://www.google.com/schemas/sitemap-news/0.9}"
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def room() -> Iterator[Newsroom]:
    with serve_in_thread(Newsroom(start=START)) as served:
        yield served


@pytest.fixture
def client(room: Newsroom) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=room.url, timeout=10) as opened:
        yield opened


def xml(data: bytes) -> Any:
    """The root element; Any, as a missing element fails the test anyhow."""
    return etree.fromstring(data)


def markup(text: bytes | str) -> Any:
    return html.fromstring(text)


def body_of(client: httpx.Client, path: str) -> bytes:
    response = client.get(path)
    assert response.status_code == 200, path
    return gzip.decompress(response.content) if path.endswith(".gz") else response.content


def rows(client: httpx.Client, path: str) -> dict[str, str]:
    """loc -> lastmod of a sitemap file or index."""
    root = xml(body_of(client, path))
    return {row.findtext(f"{SITEMAP}loc"): row.findtext(f"{SITEMAP}lastmod") for row in root}


def feed_links(client: httpx.Client) -> list[str]:
    return [link.text for link in xml(body_of(client, "/feed.xml")).iterfind("channel/item/link")]


def sitemap_urls(client: httpx.Client) -> set[str]:
    return {loc for child in rows(client, "/sitemap_index.xml") for loc in rows(client, child)}


def where(client: httpx.Client, url: str) -> set[str]:
    """The listings that show a URL."""
    found = {"feed": feed_links(client), "news": rows(client, "/news-sitemap.xml"), "sitemap": sitemap_urls(client)}
    return {name for name, urls in found.items() if url in urls}


# Documents


def test_robots_names_both_sitemaps(client: httpx.Client, room: Newsroom) -> None:
    lines = body_of(client, "/robots.txt").decode().splitlines()
    assert f"Sitemap: {room.url}sitemap_index.xml" in lines
    assert f"Sitemap: {room.url}news-sitemap.xml" in lines


def test_home_page_leads_to_feeds_and_articles(client: httpx.Client, room: Newsroom) -> None:
    page = markup(body_of(client, "/"))
    feeds = {link.get("href"): link.get("type") for link in page.iterfind(".//link[@rel='alternate']")}
    assert feeds == {
        f"{room.url}feed.xml": "application/rss+xml",
        f"{room.url}feed.json": "application/feed+json",
        **{f"{room.url}feeds/{name}.xml": "application/atom+xml" for name in room.sections},
    }
    for address, kind in feeds.items():
        assert client.get(address).headers["content-type"].startswith(kind)
    assert [link.get("href") for link in page.iterfind(".//li/a")] == [article.path for article in room.live]


def test_feeds_show_the_newest_window_and_agree(client: httpx.Client, room: Newsroom) -> None:
    room.publish("Bread & <circuses>", section="sport")
    expected = [(article.guid, article.title) for article in room.articles[: room.window]]
    channel = xml(body_of(client, "/feed.xml")).find("channel")
    assert [(item.findtext("guid"), item.findtext("title")) for item in channel.iterfind("item")] == expected
    assert expected[0][1] == "Bread & <circuses>"
    dates = [parsedate_to_datetime(item.findtext("pubDate")) for item in channel.iterfind("item")]
    assert dates == sorted(dates, reverse=True)
    feed = json.loads(body_of(client, "/feed.json"))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert [(item["id"], item["title"]) for item in feed["items"]] == expected
    entries = xml(body_of(client, "/feeds/sport.xml")).findall(f"{ATOM}entry")
    sport = [(article.guid, article.title) for article in room.articles if article.section == "sport"]
    assert [(entry.findtext(f"{ATOM}id"), entry.findtext(f"{ATOM}title")) for entry in entries] == sport[:20]
    for entry in entries:
        assert markup(entry.findtext(f"{ATOM}content")).text_content()


def test_sitemap_children_partition_all_pages(client: httpx.Client, room: Newsroom) -> None:
    index = rows(client, "/sitemap_index.xml")
    assert list(index) == [f"{room.url}sitemaps/pages-{n}.xml.gz" for n in (1, 2, 3)]
    listed = [loc for child in index for loc in rows(client, child)]
    assert len(listed) == len(set(listed)) == 35
    assert set(listed) == {article.url for article in room.articles}
    assert all(rows(client, child) for child in index)


def test_news_sitemap_holds_the_last_48_hours_by_the_clock(client: httpx.Client, room: Newsroom) -> None:
    def expected() -> list[str]:
        return [each.url for each in room.articles if each.published > room.now - timedelta(hours=48)]

    before = list(rows(client, "/news-sitemap.xml"))
    assert before == expected()
    assert 0 < len(before) < 35
    block = xml(body_of(client, "/news-sitemap.xml"))[0].find(f"{NEWS}news")
    assert block.findtext(f"{NEWS}title") == room.articles[0].title
    assert block.findtext(f"{NEWS}publication/{NEWS}name")
    assert block.findtext(f"{NEWS}publication/{NEWS}language") == "en"
    assert datetime.fromisoformat(block.findtext(f"{NEWS}publication_date")) == room.articles[0].published
    room.advance(24 * 3600)
    assert list(rows(client, "/news-sitemap.xml")) == expected() == before[: len(expected())]
    assert len(expected()) < len(before)
    room.advance(24 * 3600)
    assert rows(client, "/news-sitemap.xml") == {}


def test_article_page_says_what_it_is(client: httpx.Client, room: Newsroom) -> None:
    article = room.publish('Said: "a < b" </script> & more')
    page = markup(body_of(client, article.path))
    assert page.find(".//link[@rel='canonical']").get("href") == article.url
    data = json.loads(page.findtext(".//script[@type='application/ld+json']"))
    assert data["headline"] == page.findtext(".//h1") == article.title
    assert datetime.fromisoformat(data["datePublished"]) == article.published
    assert datetime.fromisoformat(data["dateModified"]) == article.modified


def test_page_noise_rotates_by_the_hour_and_leaves_the_text(client: httpx.Client, room: Newsroom) -> None:
    article = room.articles[0]

    def parts() -> tuple[list[str], str, str]:
        page = markup(body_of(client, article.path))
        text = [paragraph.text_content() for paragraph in page.iterfind(".//article/p")]
        return text, page.find(".//article/aside").get("data-ad-id"), page.findtext(".//header/span")

    first = parts()
    room.advance(60)
    assert parts() == first
    room.advance(3600)
    text, advert, views = parts()
    assert text == first[0]
    assert advert != first[1]
    assert views != first[2]


def test_one_seed_one_site() -> None:
    first, second, other = Newsroom(3, start=START), Newsroom(3, start=START), Newsroom(4, start=START)
    assert first.articles == second.articles
    assert first.articles != other.articles
    assert first.publish() == second.publish()


@pytest.mark.parametrize("count", [0, 1, 5, 500])
def test_any_number_of_old_pages(count: int) -> None:
    room = Newsroom(old_pages=count, start=START)
    assert len(room.articles) == count
    assert all(START - timedelta(days=121) < article.published < START for article in room.articles)
    assert {article.child for article in room.articles} <= {1, 2, 3}
    assert len({article.path for article in room.articles}) == count


def test_zones_are_understood_and_naive_clocks_refused() -> None:
    room = Newsroom(old_pages=0, start=START.astimezone(timezone(timedelta(hours=5))))
    assert room.now == START
    assert room.now.utcoffset() == timedelta(0)
    with pytest.raises(ValueError, match="zone"):
        Newsroom(start=datetime(2026, 12, 1))
    with pytest.raises(ValueError, match="section"):
        Newsroom(start=START, sections=("Top stories",))


# Changes


def test_publish_reaches_exactly_the_asked_listings(client: httpx.Client, room: Newsroom) -> None:
    assert where(client, room.publish().url) == {"feed", "news", "sitemap"}
    assert where(client, room.publish(in_feed=False).url) == {"news", "sitemap"}
    assert where(client, room.publish(in_news=False).url) == {"feed", "sitemap"}
    hidden = room.publish(in_feed=False, in_news=False, in_sitemap=False)
    assert where(client, hidden.url) == set()
    assert client.get(hidden.url).status_code == 200


def test_publish_with_trackers_and_with_a_date(client: httpx.Client, room: Newsroom) -> None:
    article = room.publish(utm=True)
    assert feed_links(client)[0] == f"{article.url}?utm_source=rss&utm_medium=feed"
    assert article.url in sitemap_urls(client)
    assert client.get(feed_links(client)[0]).status_code == 200
    late = room.publish(at=START - timedelta(days=90))
    assert where(client, late.url) == {"sitemap"}
    assert late.published == late.modified == START - timedelta(days=90)


def test_edit_moves_dates_and_stays_in_place(client: httpx.Client, room: Newsroom) -> None:
    article = room.articles[5]
    room.advance(100)
    edited = room.edit(article, title="Corrected")
    assert edited.published == article.published
    assert edited.modified == room.now == room.current(article).modified
    item = xml(body_of(client, "/feed.xml")).findall("channel/item")[5]
    assert item.findtext("guid") == article.guid
    assert item.findtext("title") == "Corrected"
    assert datetime.fromisoformat(item.findtext(f"{ATOM}updated")) == room.now
    assert datetime.fromisoformat(rows(client, f"/sitemaps/pages-{article.child}.xml.gz")[article.url]) == room.now
    again = room.edit(article, body="New text.")
    assert again.modified == room.now + timedelta(seconds=1)
    assert again.title == "Corrected"
    assert "New text." in client.get(article.url).text


@pytest.mark.parametrize("status", [404, 410])
def test_withdraw_and_restore(client: httpx.Client, room: Newsroom, status: int) -> None:
    article = room.articles[3]
    everywhere = where(client, article.url)
    room.withdraw(article, status)
    assert where(client, article.url) == set()
    assert article.path not in client.get("/").text
    assert client.get(article.url).status_code == status
    assert room.withdrawn == (room.current(article),)
    room.restore(article)
    assert where(client, article.url) == everywhere == {"feed", "news", "sitemap"}
    assert client.get(article.url).status_code == 200


def test_withdraw_into_a_redirect(client: httpx.Client, room: Newsroom) -> None:
    first, second, third = room.articles[:3]
    room.withdraw(first, to=second)
    room.withdraw(third, 302)
    answer = client.get(first.url)
    assert answer.status_code == 301
    assert answer.next_request is not None
    assert str(answer.next_request.url) == second.url
    assert client.get(third.url).status_code == 302
    assert client.get(third.url).headers["location"] == "/"


def test_unlist_leaves_the_page(client: httpx.Client, room: Newsroom) -> None:
    article = room.articles[0]
    room.unlist(article, {"news"})
    assert where(client, article.url) == {"feed", "sitemap"}
    room.unlist(article, {"feed", "sitemap"})
    assert where(client, article.url) == set()
    assert client.get(article.url).status_code == 200
    room.restore(article)
    assert where(client, article.url) == {"feed", "news", "sitemap"}


def test_index_dates_only_the_child_that_changed(client: httpx.Client, room: Newsroom) -> None:
    before = rows(client, "/sitemap_index.xml")
    room.advance(60)
    room.publish()
    after = rows(client, "/sitemap_index.xml")
    changed = [loc for loc in before if before[loc] != after[loc]]
    assert changed == [f"{room.url}sitemaps/pages-3.xml.gz"]
    assert datetime.fromisoformat(after[changed[0]]) == room.now


def test_generation_time_lastmod_dates_everything_by_the_clock(client: httpx.Client, room: Newsroom) -> None:
    honest = rows(client, "/sitemaps/pages-1.xml.gz")
    room.generation_time_lastmod = True
    for seconds in (0, 3600):
        room.advance(seconds)
        for path in ("/sitemap_index.xml", "/sitemaps/pages-1.xml.gz", "/news-sitemap.xml"):
            assert {datetime.fromisoformat(date) for date in rows(client, path).values()} == {room.now}
    room.generation_time_lastmod = False
    assert rows(client, "/sitemaps/pages-1.xml.gz") == honest


def test_rebuild_changes_bytes_and_nothing_else(client: httpx.Client, room: Newsroom) -> None:
    paths = [*LISTINGS, "/sitemaps/pages-2.xml.gz"]
    tags = {path: client.get(path).headers["etag"] for path in paths}
    links, children = feed_links(client), rows(client, "/sitemap_index.xml")
    for _ in range(2):
        room.rebuild()
        renewed = {path: client.get(path).headers["etag"] for path in paths}
        assert not {path for path in paths if renewed[path] == tags[path]}
        tags = renewed
    channel = xml(body_of(client, "/feed.xml")).find("channel")
    assert channel.findtext("lastBuildDate") == format_datetime(START, usegmt=True)
    assert (feed_links(client), rows(client, "/sitemap_index.xml")) == (links, children)
