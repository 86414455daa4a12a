"""The main job, end to end: a site with 35 old pages, its feeds, its sitemaps, and what happens to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.newsroom import Newsroom
from tests.scenarios.watch import START, pages, watching


def small_windows() -> Newsroom:
    """A site whose oldest pages only the sitemap lists."""
    return Newsroom(seed=7, old_pages=35, start=START, window=5)


def test_a_quiet_first_run_then_each_new_article_once(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        first = watch.once()
        assert pages(first) == []
        assert {event["type"] for event in first} == {"source.baseline"}

        articles = [watch.room.publish() for _ in range(3)]
        second = watch.once()
        assert sorted(watch.urls(second, "url.new")) == sorted(article.url for article in articles)
        assert len(pages(second)) == 3

        seen = len(watch.room.requests)
        third = watch.once()
        assert third == []
        polled = [r for r in watch.room.requests_since(seen) if r.path != "/robots.txt"]
        assert polled
        assert {r.status for r in polled} == {304}


def test_an_edited_headline_is_one_change(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        article = watch.room.publish()
        watch.once()
        watch.room.advance(600)
        watch.room.edit(article, title="Council votes to keep the library open after all")
        events = watch.once()
        assert watch.urls(events, "url.changed") == [article.url]
        assert len(pages(events)) == 1
        data = events[0]["data"]
        assert "title" in data["changed"]
        assert data["evidence"] == "entry"
        assert data["before"]["title"] == article.title
        assert data["after"]["title"] == "Council votes to keep the library open after all"
        assert watch.once() == []


@pytest.mark.parametrize("trouble", [500, "html", "truncate", "empty", "reset", 404])
def test_a_child_sitemap_that_fails_makes_nothing_missing(tmp_path: Path, trouble: int | str) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        watch.room.fail("/sitemaps/pages-1.xml.gz", trouble)
        for _ in range(3):
            assert pages(watch.once()) == []
        watch.room.mend("/sitemaps/pages-1.xml.gz")
        assert pages(watch.once()) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/sitemap_index.xml", "/news-sitemap.xml", "/feed.xml"])
@pytest.mark.parametrize("trouble", [500, "html", "truncate", "empty"])
def test_a_root_that_fails_makes_nothing_missing_and_loses_nothing(
    tmp_path: Path, path: str, trouble: int | str
) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        watch.room.fail(path, trouble)
        article = watch.room.publish()
        events = []
        for _ in range(4):
            events += watch.once()
        watch.room.mend(path)
        events += watch.once()
        assert watch.urls(pages(events), "url.new") == [article.url]
        assert len(pages(events)) == 1
        assert [e["type"] for e in events if e["type"].startswith("source.")] == ["source.failing", "source.recovered"]


@pytest.mark.parametrize("which", [0, 8, -1])
def test_a_withdrawn_page_is_missing_once_and_returns(tmp_path: Path, which: int) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        old = watch.room.articles[which]
        watch.room.withdraw(old, status=404)
        assert pages(watch.once()) == []
        events = pages(watch.once())
        assert [(e["type"], e["subject"]) for e in events] == [("url.missing", old.url)]
        assert events[0]["data"]["reason"] == "dead"
        assert events[0]["data"]["page"]["status"] == 404
        assert events[0]["data"]["missing_from"] in (["sitemap"], ["feed"])
        for _ in range(3):
            assert pages(watch.once()) == []
        watch.room.restore(old)
        events = pages(watch.once())
        assert [(e["type"], e["subject"]) for e in events] == [("url.returned", old.url)]
        assert events[0]["data"]["missing_seconds"] > 0
        assert pages(watch.once()) == []


def test_a_page_unlisted_but_alive_is_removed(tmp_path: Path) -> None:
    with watching(tmp_path, room=small_windows()) as watch:
        watch.once()
        old = min(watch.room.articles, key=lambda article: article.published)
        watch.room.unlist(old, {"sitemap"})
        watch.once()
        events = pages(watch.once())
        assert [(e["type"], e["data"]["reason"]) for e in events] == [("url.missing", "removed")]
        assert events[0]["data"]["page"]["status"] == 200


def test_a_dead_page_that_its_feed_still_lists_is_missing_and_a_living_one_is_not(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        alive, dead = watch.room.articles[-2], watch.room.articles[-4]
        watch.room.unlist(alive, {"sitemap"})
        watch.room.unlist(dead, {"sitemap"})
        watch.room.fail(dead.path, 404)
        watch.once()
        assert [(e["subject"], e["data"]["reason"]) for e in pages(watch.once())] == [(dead.url, "dead")]
        for _ in range(3):
            watch.room.publish()
            assert {e["type"] for e in pages(watch.once())} == {"url.new"}


def test_an_edited_text_in_four_feeds_is_one_change(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        article = watch.room.articles[-3]
        for text in ("The council met again on Monday.", "The council will not meet on Tuesday."):
            watch.room.edit(article, body=text)
            events = pages(watch.once(advance=900))
            assert [(e["type"], e["subject"]) for e in events] == [("url.changed", article.url)]
            assert pages(watch.once()) == []


def test_ageing_out_of_the_news_sitemap_is_not_missing(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        watch.room.publish()
        watch.once()
        for _ in range(4):
            assert pages(watch.once(advance=86400)) == []


def test_an_article_kept_out_of_the_feed_is_found_by_the_sitemaps(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        article = watch.room.publish(in_feed=False)
        only_sitemap = watch.room.publish(in_feed=False, in_news=False)
        assert sorted(watch.urls(watch.once(), "url.new")) == sorted([article.url, only_sitemap.url])


def test_trackers_in_feed_links_make_no_second_page(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        article = watch.room.publish(utm=True)
        events = pages(watch.once()) + pages(watch.once())
        assert len(events) == 1
        assert events[0]["data"]["observed_url"].startswith(article.url)


def test_a_rebuild_that_moves_dates_only_is_silent(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        for _ in range(3):
            watch.room.rebuild()
            assert pages(watch.once()) == []


def test_lastmod_that_is_the_generation_time_changes_nothing_and_is_untrusted(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.room.generation_time_lastmod = True
        events = []
        for _ in range(4):
            events += watch.once()
        assert pages(events) == []
        assert "source.untrusted" in {e["type"] for e in events}


def test_an_edit_that_only_the_sitemap_tells_is_a_change(tmp_path: Path) -> None:
    with watching(tmp_path, room=small_windows()) as watch:
        watch.once()
        old = min(watch.room.articles, key=lambda article: article.published)
        watch.room.edit(old, body="The council met again on Monday and changed its mind about the bridge.")
        events = pages(watch.once())
        assert [(e["type"], e["subject"]) for e in events] == [("url.changed", old.url)]
        assert events[0]["data"]["evidence"] in ("page", "lastmod")
        assert pages(watch.once()) == []


def test_a_baseline_of_alert_tells_all(tmp_path: Path) -> None:
    from monitor.config import Settings

    with watching(tmp_path, settings=Settings(allow_private_networks=True, baseline="alert")) as watch:
        events = watch.once()
        assert len(set(watch.urls(events, "url.new"))) == len(watch.urls(events, "url.new")) == 35


def test_of_a_page_that_feed_and_sitemap_list_the_feed_tells(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        for _ in range(3):
            article = watch.room.publish()
            (event,) = pages(watch.once(advance=1800.0))
            assert (event["subject"], event["data"]["found_in"]["kind"]) == (article.url, "feed")
            assert event["data"]["entry"]["title"] == article.title
