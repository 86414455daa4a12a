"""`monitor explain URL`: the life of a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.commands import tables
from monitor.core.coverage_twins import twins_of
from monitor.core.identity import page_id
from monitor.core.url import page_key
from monitor.report import lookup
from monitor.store.database import Database
from tests.scenarios.plain_site import PlainSite, plain_site
from tests.scenarios.watch import Watch, watching


def life(watch: Watch, url: str) -> dict[str, Any]:
    key = page_key(url)
    with Database(f"sqlite:///{watch.path}", exclusive=False) as db:
        (found,) = db.call(lambda c: lookup.page(c, page_id(key), key))
    return found


def test_who_listed_a_page_when_what_became_of_it_and_its_other_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        watch.room.advance(60)
        article = watch.room.publish(utm=True)
        watch.once()
        watch.room.edit(article, title="Another headline, of the same story")
        watch.once()
        target = watch.room.live[-1]
        watch.room.withdraw(article, to=target)
        for _ in range(4):
            watch.once()
        found = life(watch, article.url)
        assert {item["kind"] for item in found["listed"]} == {"feed", "news_sitemap", "sitemap"}
        assert all(item["first"] and item["last"] for item in found["listed"])
        assert [e["type"] for e in found["events"]] == ["url.new", "url.changed", "url.missing"]
        assert found["published"] == article.published.isoformat().replace("+00:00", "Z")
        assert found["missing_reason"] == "redirected"
        evidence = {alias["url"]: alias["evidence"] for alias in found["aliases"]}
        assert "redirects there" in evidence[target.url]
        others = [url for url in evidence if url != target.url]
        assert others
        assert all(page_key(url) == article.url for url in others)
        assert all("the same page key" in evidence[url] for url in others)
        assert tables.explain(f"sqlite:///{watch.path}", article.url, as_json=False)
        shown = capsys.readouterr().out
        assert f"also {target.url}" in shown
        assert "redirected" in shown


def test_pages_much_alike_are_shown_and_stay_apart(tmp_path: Path) -> None:
    with plain_site(tmp_path, sitemaps=["/s.xml"]) as watch:
        room = watch.room
        assert isinstance(room, PlainSite)
        room.urlset("/s.xml", ["/a", "/a/", "/b"])
        watch.once()
        assert life(watch, f"{room.url}/a")["alike"] == [f"{room.url}/a/"]
        assert life(watch, f"{room.url}/a/")["alike"] == [f"{room.url}/a"]
        assert life(watch, f"{room.url}/b")["alike"] == []
        assert life(watch, f"{room.url}/b")["aliases"] == []


def test_what_is_much_alike() -> None:
    assert set(twins_of("https://www.e.example/a")) == {
        "http://www.e.example/a",
        "https://e.example/a",
        "http://e.example/a",
        "https://www.e.example/a/",
    }
    assert twins_of("https://e.example/a?x=1") == ()
    assert twins_of("import:crawl") == ()
