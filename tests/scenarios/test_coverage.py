"""The coverage report against a site whose overlaps are known."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lxml import etree

from monitor.commands import coverage as command
from monitor.config import Crawl, Expect
from monitor.core.coverage_data import report_data
from monitor.core.url import page_key
from monitor.newsroom import Newsroom
from monitor.report.coverage import site_coverage
from monitor.store import sources as source_store
from monitor.store.database import Database
from tests.scenarios.watch import START, Watch, pages, watching

IN_NEWS = Expect(pages="/news/**", kind="news_sitemap", within=1800.0)


def report(watch: Watch, since: float | None = None) -> dict[str, Any]:
    """The report of the only site, at the site's time."""
    with Database(f"sqlite:///{watch.path}", exclusive=False) as db:

        def read(connection: Any) -> dict[str, Any]:
            (row,) = source_store.sites(connection).values()
            now = watch.room.now.timestamp()
            return report_data(site_coverage(connection, row, hosts=frozenset(), since=since, now=now))

        return db.call(read)


def keys(found: dict[str, Any], kind: str) -> list[str]:
    return sorted(page_key(one["url"]) for one in found["missing"][kind])


def test_a_report_of_a_quiet_site_lacks_nothing(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        found = report(watch)
        assert found["complete"], found["why"]
        assert {kind: len(lacks) for kind, lacks in found["missing"].items()} == dict.fromkeys(found["sources"], 0)
        assert found["sources"]["sitemap"] == found["union"] == 35
        assert found["sources"]["feed"] == 35  # every section has a feed of its own, with 20 of its articles
        assert found["sections"][0]["prefix"] == "/news/"


def test_the_report_of_known_overlaps_is_the_truth(tmp_path: Path) -> None:
    """60 articles: 10 are kept out of the news sitemap, 5 out of the feeds, 2 out of the sitemap, and to 4 only the
    pages of the site link."""
    room = Newsroom(seed=11, old_pages=12, start=START, window=100)
    with watching(tmp_path, room=room, expect=(IN_NEWS,)) as watch:
        watch.once()
        room.advance(60)
        kinds: list[dict[str, bool]] = [{} for _ in range(39)]
        kinds += [{"in_news": False}] * 10 + [{"in_feed": False}] * 5 + [{"in_sitemap": False}] * 2
        kinds += [{"in_feed": False, "in_news": False, "in_sitemap": False}] * 4
        Random(3).shuffle(kinds)
        made, events = [], []
        for place, options in enumerate(kinds):
            made.append((room.publish(utm=place % 2 == 0, **options), options))
            if place % 6 == 5:
                events += pages(watch.once(advance=400))
        # What only links lead to is found by a crawl; the first is a baseline, as of every source.
        watch.site_options["crawl"] = Crawl(("/",))
        for _ in range(8):
            events += pages(watch.once(advance=400))
        assert watch.last.problems == []

        lists = {"feed": "in_feed", "news_sitemap": "in_news", "sitemap": "in_sitemap"}
        without = {
            kind: sorted(article.url for article, options in made if not options.get(name, True))
            for kind, name in lists.items()
        }
        assert {kind: len(urls) for kind, urls in without.items()} == {"feed": 9, "news_sitemap": 14, "sitemap": 6}

        new = Counter(page_key(e["subject"]) for e in events if e["type"] == "url.new")
        assert new == Counter(article.url for article, options in made if len(options) < 3)
        broken = [e for e in events if e["type"] == "url.missing"]
        assert sorted(page_key(e["subject"]) for e in broken) == sorted(
            article.url for article, options in made if options == {"in_news": False}
        )
        assert {(e["data"]["reason"], *e["data"]["missing_from"]) for e in broken} == {("expected", "news_sitemap")}
        assert {e["type"] for e in events} == {"url.new", "url.missing"}

        found = report(watch)
        assert found["complete"], found["why"]
        assert {kind: keys(found, kind) for kind in lists} == without
        assert found["missing"]["crawl"] == []
        assert found["missing_counts"] == {"feed": 9, "news_sitemap": 14, "sitemap": 6, "crawl": 0}
        assert {one["reason"] for kind in lists for one in found["missing"][kind]} == {"not_listed"}
        assert all(one["first_seen"] for kind in lists for one in found["missing"][kind])

        all_four = truth(room, watch)
        assert found["union"] == 72
        assert found["sources"] == {kind: len(urls) for kind, urls in all_four.items()}
        combined = Counter(
            tuple(kind for kind in all_four if article.url in all_four[kind]) for article in room.articles
        )
        assert {tuple(one["in"]): one["count"] for one in found["combinations"]} == dict(combined)
        assert sum(one["share"] for one in found["combinations"]) == pytest.approx(1, abs=0.001)
        assert found["sections"] == [{"prefix": "/news/"} | found["sources"]]
        assert found["lag_seconds"]["feed"]["n"] == 51
        assert 0 <= found["lag_seconds"]["feed"]["p50"] <= found["lag_seconds"]["feed"]["p99"] <= 2800
        assert [one["feed"] for one in found["over_time"]] == [51]

        # Pages first known since then are what was published since.
        recent = report(watch, since=(START + timedelta(seconds=600)).timestamp())
        assert recent["union"] == 60
        assert {kind: keys(recent, kind) for kind in lists} == without


def truth(room: Newsroom, watch: Watch) -> dict[str, set[str]]:
    """Which articles each kind of source has shown since the watch began."""
    young = START - timedelta(hours=room.news_hours)
    return {
        "feed": {a.url for a in room.articles if "feed" in a.lists},
        "news_sitemap": {a.url for a in room.articles if "news" in a.lists and a.published > young},
        "sitemap": {a.url for a in room.articles if "sitemap" in a.lists},
        "crawl": {a.url for a in room.articles},
    }


def test_what_is_read_badly_makes_the_report_say_so(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        watch.room.advance(60)
        article = watch.room.publish()
        watch.room.fail("/news-sitemap.xml", 500)
        watch.once()
        found = report(watch)
        assert not found["complete"]
        assert any("/news-sitemap.xml" in why and "500" in why for why in found["why"])
        assert keys(found, "news_sitemap") == []  # it may well list the article
        watch.room.mend("/news-sitemap.xml")
        watch.room.unlist(article, {"news"})
        watch.once()
        found = report(watch)
        assert found["complete"]
        assert keys(found, "news_sitemap") == [article.url]


def test_leaving_by_age_is_no_lack_and_the_dead_are_lacked_by_none(tmp_path: Path) -> None:
    with watching(tmp_path, room=Newsroom(seed=7, old_pages=35, start=START, window=5)) as watch:
        watch.once()
        first = [watch.room.publish() for _ in range(3)]
        watch.once()
        for _ in range(10):
            watch.room.publish()
        for _ in range(4):
            watch.once(advance=86400)
        found = report(watch)
        assert {kind: keys(found, kind) for kind in found["sources"]} == {kind: [] for kind in found["sources"]}
        watch.room.withdraw(first[0], status=410)
        events = [e for _ in range(3) for e in pages(watch.once(advance=86400))]
        assert [e["type"] for e in events] == ["url.missing"]
        assert {kind: keys(report(watch), kind) for kind in found["sources"]} == {kind: [] for kind in found["sources"]}


def test_the_forms_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with watching(tmp_path) as watch:
        watch.once()
        watch.room.advance(60)
        lacking = watch.room.publish("<script>alert(1)</script> & more", in_news=False)
        watch.once()
        url, told = f"sqlite:///{watch.path}", {"hosts": {}, "site": None, "since": None, "output": None}

        def made(form: str, work: Any = command.coverage) -> str:
            work(url, form=form, **told)
            return capsys.readouterr().out

        assert json.loads(made("json"))["missing"]["news_sitemap"][0]["url"] == lacking.url
        rows = list(csv.reader(io.StringIO(made("csv"))))
        assert rows[0] == ["site", "missing_from", "url", "seen_in", "first_seen", "reason"]
        assert [(row[1], row[2], row[3], row[5]) for row in rows[1:]] == [
            ("news_sitemap", lacking.url, "feed sitemap", "not_listed")
        ]
        table = made("table")
        assert "news sitemap lacks 1" in table
        assert lacking.url in table
        shown = made("html")
        assert lacking.url in shown
        assert "<script" not in shown
        plots = re.findall(r"<svg.*?</svg>", shown, re.DOTALL)
        assert len(plots) == 4
        for plot in plots:
            assert len(etree.fromstring(plot)) > 3
        assert not re.search(r'(?:src|href)="(?!http://127)', shown)  # it stands alone
        assert json.loads(made("json", command.lag))["lag_seconds"]["feed"]["n"] == 1
        assert "feed" in made("table", command.lag)
        assert "<svg" in made("html", command.lag)
        with pytest.raises(LookupError, match="no site is named 'x'"):
            command.coverage(url, form="json", **told | {"site": "x"})
