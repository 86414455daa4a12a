"""Coverage promises (`expect`): broken on time, mended once, and never by a source that was not read."""

from __future__ import annotations

from pathlib import Path

from monitor.config import Expect
from tests.scenarios.watch import pages, watching

IN_NEWS = Expect(pages="/news/**", kind="news_sitemap", within=1800.0)


def test_an_article_that_the_news_sitemap_lacks_is_a_breach_in_time_and_mended_once(tmp_path: Path) -> None:
    with watching(tmp_path, expect=(IN_NEWS,)) as watch:
        watch.once()
        kept = watch.room.publish()
        lacking = watch.room.unlist(watch.room.publish(), {"news"})
        assert sorted(watch.urls(watch.once(), "url.new")) == sorted([kept.url, lacking.url])
        assert pages(watch.once(advance=1500)) == []
        events = pages(watch.once(advance=300))
        assert [(e["type"], e["subject"]) for e in events] == [("url.missing", lacking.url)]
        data = events[0]["data"]
        assert (data["reason"], data["missing_from"]) == ("expected", ["news_sitemap"])
        assert set(data["seen_in"]) == {"feed", "sitemap"}
        for _ in range(3):
            assert pages(watch.once()) == []
        watch.room.restore(lacking)
        events = pages(watch.once())
        assert [(e["type"], e["subject"], e["data"]["reason"]) for e in events] == [
            ("url.returned", lacking.url, "expected")
        ]
        assert pages(watch.once()) == []


def test_a_source_that_fails_breaks_no_promise(tmp_path: Path) -> None:
    with watching(tmp_path, expect=(IN_NEWS,)) as watch:
        watch.once()
        article = watch.room.publish()
        watch.room.fail("/news-sitemap.xml", 500)
        for _ in range(10):
            assert {e["type"] for e in pages(watch.once())} <= {"url.new"}
        watch.room.mend("/news-sitemap.xml")
        assert pages(watch.once()) == []
        late = watch.room.publish(in_news=False)
        events = [e for _ in range(8) for e in pages(watch.once())]
        assert [(e["type"], e["subject"]) for e in events] == [("url.new", late.url), ("url.missing", late.url)]
        assert article.url not in [e["subject"] for e in events]


def test_a_promise_is_about_the_pages_it_names(tmp_path: Path) -> None:
    elsewhere = Expect(pages="/sport/**", kind="news_sitemap", within=60.0)
    with watching(tmp_path, expect=(elsewhere,)) as watch:
        watch.once()
        watch.room.publish(in_news=False)
        assert [e["type"] for _ in range(3) for e in pages(watch.once())] == ["url.new"]
