"""What a row of a sitemap holds besides its address: dates, news, images, videos, alternates, titles."""

from __future__ import annotations

from datetime import UTC, datetime

from monitor.model import Alternate, Image, News
from tests.core.test_sitemap import B, read, rules, urlset


def test_lastmod_keeps_what_was_understood_and_does_not_leak() -> None:
    dates = ["2024", "2024-05-06T10:11Z", "2024-05-06T10:11:12", "0000-00-00", " ", None]
    rows = [f"<url><loc>/{i}</loc>{f'<lastmod>{d}</lastmod>' if d else ''}</url>" for i, d in enumerate(dates)]
    first = read(urlset(*rows)).rows
    again = read(urlset("<!-- not plain -->", *rows)).rows
    assert first == again
    assert [row.lastmod_text for row in first] == [
        "2024",
        "2024-05-06T10:11Z",
        "2024-05-06T10:11:12",
        "0000-00-00",
        None,
        None,
    ]
    assert [row.lastmod_precision for row in first] == ["year", "minute", "second", None, None, None]
    assert [row.lastmod_zone for row in first] == [False, True, False, False, True, True]
    assert [row.lastmod_problem for row in first] == [None, None, None, "sentinel", None, None]
    assert first[1].lastmod == datetime(2024, 5, 6, 10, 11, tzinfo=UTC)


NEWS = (
    '<url><loc>https://h.example/n</loc><n:news xmlns:n="http://www.google.com/schemas/sitemap-news/0.9"><n:publication>'
    "<n:name>The Example</n:name><n:language>en</n:language></n:publication><n:access>Subscription</n:access>"
    "<n:genres>PressRelease, Blog</n:genres><n:publication_date>2024-05-06T10:11:12+02:00</n:publication_date>"
    "<n:title>A &amp; B</n:title><n:keywords>a, b,,c</n:keywords><n:stock_tickers>NASDAQ:A</n:stock_tickers>"
    "</n:news></url>"
)


def test_news() -> None:
    sitemap = read(urlset(NEWS, B))
    assert sitemap.is_news
    assert sitemap.rows[0].news == News(
        title="A & B",
        publication_date=datetime(2024, 5, 6, 8, 11, 12, tzinfo=UTC),
        publication_date_text="2024-05-06T10:11:12+02:00",
        name="The Example",
        language="en",
        access="Subscription",
        genres=("PressRelease", "Blog"),
        keywords=("a", "b", "c"),
        stock_tickers=("NASDAQ:A",),
    )
    assert sitemap.rows[1].news is None
    assert not read(urlset(B)).is_news


def test_markup_within_a_text_costs_nothing_of_it() -> None:
    title = NEWS.replace("A &amp; B", "<b>A</b> and <i>B</i>, <br/>C")
    sitemap = read(urlset(title))
    assert sitemap.rows[0].news is not None
    assert (sitemap.rows[0].news.title, sitemap.rows[0].news.name) == ("A and B, C", "The Example")
    assert sitemap.complete


def test_news_blocks_in_excess() -> None:
    two = read(urlset(NEWS.replace("</url>", "<news><title>second</title></news></url>")))
    assert two.rows[0].news is not None
    assert (two.rows[0].news.title, rules(two)) == ("A & B", ["row.news"])
    assert rules(read(urlset(NEWS * 1_001))) == ["news.protocol"]


def test_images_videos_and_alternates() -> None:
    sitemap = read(
        urlset(
            '<url><loc>https://h.example/a</loc><i:image xmlns:i="image"><i:loc>https://i.example/1</i:loc><i:title>T</i:title>'
            "<i:caption>C</i:caption><i:geo_location>G</i:geo_location><i:license>L</i:license></i:image>"
            '<i:image xmlns:i="image"><i:loc>https://i.example/2</i:loc></i:image>'
            '<v:video xmlns:v="video"><v:title>V</v:title><v:description>D</v:description><v:duration>600</v:duration>'
            "<v:thumbnail_loc>https://i.example/t</v:thumbnail_loc><v:content_loc>https://i.example/c</v:content_loc>"
            "<v:player_loc>https://i.example/p</v:player_loc><v:publication_date>2024-05-06</v:publication_date>"
            "<v:tag>x</v:tag><v:tag>y</v:tag><v:price currency='EUR'/></v:video>"
            '<x:link xmlns:x="http://www.w3.org/1999/xhtml" rel="alternate" hreflang="de" href="/de"/>'
            '<x:link xmlns:x="x" rel="alternate" media="print" href="https://m.example/a"/>'
            '<x:link xmlns:x="x" rel="self" href="/"/></url>'
        )
    )
    row = sitemap.rows[0]
    assert row.images == (Image("https://i.example/1", "T", "C", "G", "L"), Image("https://i.example/2"))
    (video,) = row.videos
    assert (video.title, video.description, video.duration) == ("V", "D", 600)
    assert (video.thumbnail_url, video.content_url, video.player_url) == tuple(f"https://i.example/{x}" for x in "tcp")
    assert video.publication_date == datetime(2024, 5, 6, tzinfo=UTC)
    assert video.fields["tag"] == ("x", "y")
    assert "price" not in video.fields
    assert row.alternates == (Alternate("https://h.example/de", "de"), Alternate("https://m.example/a", None, "print"))


def test_items_of_a_feed_have_title_and_the_date_of_change() -> None:
    sitemap = read(
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title>'
        b'<link href="/a"/><published>2024-05-06</published>'
        b"<updated>2024-05-07</updated></entry></feed>"
    )
    row = sitemap.rows[0]
    assert (row.url, row.title, row.lastmod_text) == ("https://h.example/a", "T", "2024-05-07")
