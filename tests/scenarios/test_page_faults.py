"""Pages that cannot be asked: what one of them costs, and whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monitor.config import Site
from monitor.core.http import Reply
from monitor.core.robots import parse_robots
from monitor.fetch import FetchPolicy
from monitor.newsroom import Newsroom
from monitor.poll_page import RobotsCache, check_pages, polite
from monitor.runtime import Runtime
from tests.scenarios.plain_site import PlainSite, plain_site
from tests.scenarios.watch import START, Watch, pages, watching

PATHS = [f"/p{n}" for n in range(60)]
SLOW_DOWN = (429, {"Retry-After": "7200"}, "")


@contextmanager
def listed(path: Path, **site: Any) -> Iterator[tuple[Watch, PlainSite]]:
    """A site whose sitemap lists `PATHS`, all alive, and whose feed lists nothing yet."""
    with plain_site(path, sitemaps=("/s.xml",), **site) as watch:
        room = cast("PlainSite", watch.room)
        room.urlset("/s.xml", PATHS)
        room.pages(*PATHS)
        yield watch, room


def test_a_url_that_no_parser_agrees_on_stops_nobody(tmp_path: Path) -> None:
    with listed(tmp_path) as (watch, room):
        odd = room.url.replace("http://", "http://a[b@") + "/odd"
        room.urlset("/s.xml", PATHS, more=f"<url><loc>{odd}</loc></url>")
        watch.once()
        room.urlset("/s.xml", PATHS[1:])
        events = pages(watch.once()) + pages(watch.once())
        assert sorted(watch.urls(events, "url.missing")) == sorted([room.url + "/p0", odd])
        assert pages(watch.once()) == []


@pytest.mark.parametrize("where", ["_ask", "judge_missing"])
def test_a_fault_of_ours_costs_one_check(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import monitor.poll_page

    real, calls = getattr(monitor.poll_page, where), []

    def faulty(*args: Any, **more: Any) -> Any:
        calls.append(where)
        if len(calls) == 1:
            raise RuntimeError("a fault")
        return real(*args, **more)

    monkeypatch.setattr(monitor.poll_page, where, faulty)
    with listed(tmp_path) as (watch, room):
        watch.once()
        room.urlset("/s.xml", PATHS[2:])
        events = [event for _ in range(4) for event in pages(watch.once())]
        assert sorted(watch.urls(events, "url.missing")) == [room.url + "/p0", room.url + "/p1"]


def test_a_site_that_leaves_the_configuration_takes_its_checks_along() -> None:
    run = cast("Runtime", SimpleNamespace(sites={}, rows={}))
    assert asyncio.run(check_pages(run, RobotsCache(run), "left")) == 0


def asked(room: PlainSite) -> int:
    """How often a page was asked since the last look."""
    count = sum(path.startswith("/p") for path in room.asked)
    room.asked.clear()
    return count


def test_a_host_that_asks_for_patience_is_left_alone_and_its_pages_are_not_told_until_they_answer(
    tmp_path: Path,
) -> None:
    with listed(tmp_path) as (watch, room):
        watch.once()
        room.urlset("/s.xml", PATHS[10:])
        room.docs.update(dict.fromkeys(PATHS, SLOW_DOWN))
        assert pages(watch.once()) + pages(watch.once()) == []
        assert asked(room) <= 2
        assert pages(watch.once(advance=3600)) == []
        assert asked(room) == 0
        room.docs.update(dict.fromkeys(PATHS, (404, {}, "")))
        events = pages(watch.once(advance=3700))
        assert {e["data"]["reason"] for e in events} == {"dead"}
        assert sorted(watch.urls(events, "url.missing")) == sorted(room.url + path for path in PATHS[:10])


def test_a_host_without_an_answer_is_left_alone_after_three_pages_and_the_listings_settle_it_in_a_day(
    tmp_path: Path,
) -> None:
    with listed(tmp_path) as (watch, room):
        watch.once()
        room.urlset("/s.xml", PATHS[10:])
        room.docs.update(dict.fromkeys(PATHS, (302, {"Location": "https://"}, "")))  # leads nowhere: no answer
        assert pages(watch.once()) + pages(watch.once()) == []
        assert asked(room) <= 4
        events = [event for _ in range(26) for event in pages(watch.once(advance=3600))]
        assert sorted(watch.urls(events, "url.missing")) == sorted(room.url + path for path in PATHS[:10])
        assert {e["data"]["reason"] for e in events} == {"removed"}
        assert asked(room) <= 50


def test_a_change_that_its_lastmod_proves_does_not_wait_for_a_silent_host(tmp_path: Path) -> None:
    with watching(tmp_path, room=Newsroom(seed=7, old_pages=35, start=START, window=5)) as watch:
        watch.once()
        old = min(watch.room.articles, key=lambda article: article.published)
        watch.room.fail(old.path, 503)
        watch.room.edit(old, body="An edit of an old story.")
        assert [e["data"]["evidence"] for e in pages(watch.once())] == ["lastmod"]


def test_robots_txt_is_obeyed_for_pages_and_the_listing_is_believed(tmp_path: Path) -> None:
    with listed(tmp_path) as (watch, room):
        room.docs["/robots.txt"] = "User-agent: *\nDisallow: /p0"
        watch.once()
        room.urlset("/s.xml", PATHS[1:])
        events = pages(watch.once()) + pages(watch.once())
        assert [(e["type"], e["data"]["reason"]) for e in events] == [("url.missing", "removed")]
        assert "robots.txt" in events[0]["data"]["page"]["error"]
        assert asked(room) == 0


def test_a_robots_txt_that_failed_is_read_again_in_minutes_and_one_that_was_read_in_a_day() -> None:
    now, answers, reads = [0.0], [503, 200, 404], list[str]()

    class Fetches:
        async def get(self, url: str, **_: Any) -> Reply:
            reads.append(url)
            return Reply(url, url, answers[len(reads) - 1], body=b"User-agent: *\nDisallow: /no")

    site = cast("Site", SimpleNamespace(user_agent="monitor"))
    run = SimpleNamespace(clock=lambda: now[0], fetcher=Fetches(), policy=lambda _site: None)
    cache = RobotsCache(cast("Runtime", run))

    async def at(seconds: float) -> bool:
        now[0] = seconds
        return (await cache.rules(site, "http://a[b@[::1]:81/x")).allows("http://[::1]:81/x", "monitor")

    async def history() -> list[bool]:
        return [await at(seconds) for seconds in (0.0, 200.0, 400.0, 50_000.0, 90_000.0)]

    assert asyncio.run(history()) == [False, False, True, True, True]
    assert reads == ["http://[::1]:81/robots.txt"] * 3


@pytest.mark.parametrize(("says", "configured", "delay"), [("7", 0.0, 7.0), ("7", 9.0, 9.0), ("999", 0.0, 30.0)])
def test_the_crawl_delay_of_robots_txt_is_kept_up_to_half_a_minute(says: str, configured: float, delay: float) -> None:
    robots = parse_robots(f"User-agent: *\nCrawl-delay: {says}".encode(), status=200, url="http://x.example/robots.txt")
    assert polite(FetchPolicy("monitor/1", host_delay=configured), robots).host_delay == delay


def test_pages_are_asked_as_far_apart_as_robots_txt_says_and_not_for_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.poll_page.PASS_SECONDS", 0.02)
    with listed(tmp_path) as (watch, room):
        room.docs["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.01"
        watch.once()
        room.urlset("/s.xml", PATHS[3:])
        told = [len(pages(watch.once())) for _ in range(4)]
        assert told == [0, 2, 1, 0]
        assert asked(room) == 3


@pytest.mark.parametrize("status", [301, 302])
def test_a_consent_page_makes_nothing_missing_that_the_feed_still_lists(tmp_path: Path, status: int) -> None:
    with plain_site(tmp_path, feeds=("/f.xml",), sitemaps=("/s.xml",)) as watch:
        room = cast("PlainSite", watch.room)
        room.urlset("/s.xml", PATHS)
        room.feed("/f.xml", [(f"g{n}", path, f"08:{59 - n:02d}") for n, path in enumerate(PATHS[:20])])
        room.docs.update({path: (status, {"Location": f"/consent?back={path}"}, "") for path in PATHS})
        room.docs["/consent"] = '<html><meta name="robots" content="noindex"><p>Please consent.</p></html>'
        watch.once()
        room.urlset("/s.xml", PATHS[3:])
        assert [event for _ in range(3) for event in pages(watch.once())] == []
        assert asked(room) == 3
