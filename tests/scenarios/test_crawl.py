"""The crawl: what it follows, lists and leaves alone, and what a further one costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitor.config import Crawl
from tests.scenarios.plain_site import PlainSite, plain_site
from tests.scenarios.test_coverage import report
from tests.scenarios.watch import Watch, pages

SECTION = Crawl(("/news/",), max_pages=50)


def page(*links: str, head: str = "", words: str = "Words.") -> str:
    anchors = "".join(link if link.startswith("<") else f'<a href="{link}">x</a>' for link in links)
    return f"<html><head><title>T</title>{head}</head><body><p>{words}</p>{anchors}</body></html>"


def room_of(watch: Watch) -> PlainSite:
    assert isinstance(watch.room, PlainSite)
    return watch.room


def visited(watch: Watch) -> list[str]:
    room = room_of(watch)
    asked = [path for path in room.asked if path not in ("/robots.txt", "/s.xml", "/")]
    room.asked.clear()
    return asked


def listed(watch: Watch) -> Sequence[str]:
    """What the crawl lists, as paths."""
    import sqlite3

    from monitor.core.listing_pack import unpack_lines

    with sqlite3.connect(watch.path) as db:
        rows = db.execute("SELECT text FROM listing JOIN document ON document.id = document_id WHERE kind = 'crawl'")
        lines = [line for row in rows for line in unpack_lines(row[0])]
    db.close()
    return sorted(line.split("\t")[0].removeprefix(room_of(watch).url) for line in lines)


def state(watch: Watch) -> dict[str, Any]:
    import sqlite3

    with sqlite3.connect(watch.path) as db:
        found: dict[str, Any] = json.loads(db.execute("SELECT state FROM document WHERE kind = 'crawl'").fetchone()[0])
    db.close()
    return found


def test_it_follows_what_it_may_and_lists_what_are_pages(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=SECTION) as watch:
        room = room_of(watch)
        room.docs["/robots.txt"] = "User-agent: *\nDisallow: /news/secret\n"
        room.docs["/news/"] = page(
            "/news/a", "b?utm_source=x", "/news/secret/1", "/sport/x", "/news/gone", "/news/moved", "/news/quiet",
            '<a rel="nofollow" href="/news/unfollowed">n</a>', "/news/closed", "/news/alias", "http://other.example/news/",
        )  # fmt: skip
        room.docs["/news/a"] = page("/news/deep#top", "/news/")
        room.docs["/news/b"] = page()
        room.docs["/news/deep"] = page("/news/a")
        room.docs["/news/moved"] = (301, {"Location": "/news/target"}, "")
        room.docs["/news/target"] = page()
        room.docs["/news/quiet"] = page("/news/behind", head='<meta name="robots" content="noindex">')
        room.docs["/news/behind"] = page()
        room.docs["/news/closed"] = page("/news/never", head='<meta name="robots" content="nofollow">')
        room.docs["/news/alias"] = page(head=f'<link rel="canonical" href="{room.url}/news/a">')
        events = watch.once()
        assert not watch.last.problems
        assert [e["type"] for e in events] == ["source.baseline"]
        assert listed(watch) == [
            "/news/a", "/news/b?utm_source=x", "/news/behind", "/news/closed", "/news/deep", "/news/target",
        ]  # fmt: skip
        asked = visited(watch)
        assert len(asked) == len(set(asked))
        assert not {"/news/secret/1", "/sport/x", "/news/unfollowed", "/news/never"} & set(asked)
        found = report(watch)
        assert found["disallowed"] == [{"url": f"{room.url}/news/secret/1"}]
        assert (found["complete"], found["sources"]["crawl"]) == (True, 6)


def test_a_new_link_is_news_and_what_is_unlinked_leaves_in_silence(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=SECTION) as watch:
        room = room_of(watch)
        room.docs["/news/"] = page("/news/a", "/news/b")
        room.pages("/news/a", "/news/b", "/news/c")
        watch.once()
        room.docs["/news/"] = page("/news/a", "/news/c")
        events = pages(watch.once())
        assert [(e["type"], e["subject"], e["data"]["found_in"]["kind"]) for e in events] == [
            ("url.new", f"{room.url}/news/c", "crawl")
        ]
        assert listed(watch) == ["/news/a", "/news/c"]
        assert pages(watch.once()) == []


def test_a_page_that_did_not_change_is_asked_conditionally_and_its_links_are_remembered(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=SECTION) as watch:
        room = room_of(watch)
        sent: list[str] = []

        def tagged(body: str) -> tuple[int, dict[str, str], str]:
            sent.append("full")
            return 200, {"ETag": '"1"'}, body

        room.docs["/news/"] = lambda: tagged(page("/news/a", "/news/b"))
        room.pages("/news/a", "/news/b")
        watch.once()
        room.docs["/news/"] = (304, {"ETag": '"1"'}, "")
        assert watch.once() == []
        assert (listed(watch), sent) == (["/news/a", "/news/b"], ["full"])
        assert not watch.last.problems


def test_a_crawl_that_is_cut_says_so_and_makes_nothing_of_what_it_did_not_reach(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=Crawl(("/news/",), max_pages=4)) as watch:
        room = room_of(watch)
        paths = [f"/news/{name}" for name in "abcdefgh"]
        room.docs["/news/"] = page(*paths)
        room.pages(*paths)
        watch.once()
        assert listed(watch) == paths[:3]
        found = report(watch)
        assert (found["complete"], found["missing_counts"]["crawl"]) == (False, 0)
        assert "ended at max_pages 4, with 5 links to follow" in found["why"][0]
        room.docs["/news/"] = page(*reversed(paths))
        assert pages(watch.once()) == []  # as old as the site, for all that is known
        assert listed(watch) == [*paths[:3], *paths[5:]]


def test_a_failing_section_is_a_failure_and_a_busy_host_is_left_alone(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=SECTION) as watch:
        room = room_of(watch)
        room.docs["/news/"] = page("/news/a")
        room.pages("/news/a")
        watch.once()
        room.docs["/news/"] = (404, {}, "")
        watch.once()
        assert "/news/" in watch.last.problems[0]
        room.docs["/news/"] = (503, {"Retry-After": "900"}, "")
        visited(watch)
        watch.once()
        assert "asks for patience" in watch.last.problems[0]
        visited(watch)
        watch.once(advance=300)
        assert visited(watch) == []  # Retry-After holds under --all, too
        room.docs["/news/"] = page("/news/a")
        watch.once(advance=900)
        assert (listed(watch), watch.last.problems) == (["/news/a"], [])


def test_robots_that_cannot_be_read_forbid_the_crawl(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=SECTION) as watch:
        room = room_of(watch)
        room.docs["/robots.txt"] = (500, {}, "")
        room.docs["/news/"] = page("/news/a")
        watch.once()
        assert "robots.txt" in watch.last.problems[0]
        assert visited(watch) == []


def test_traps_do_not_hold_it(tmp_path: Path) -> None:
    with plain_site(tmp_path, crawl=Crawl(("/news/",), max_pages=200)) as watch:
        room = room_of(watch)

        def month() -> str:
            number = int(room.asked[-1].rpartition("/")[2] or 0)
            return page(f"/news/calendar/{number + 1}", f"/news/calendar/?sort={number}&seed={len(room.asked)}")

        for number in range(300):
            room.docs[f"/news/calendar/{number}"] = month
        room.docs["/news/calendar/"] = lambda: page(f"/news/calendar/?sort={len(room.asked)}")
        room.docs["/news/"] = page("/news/calendar/0", "/news/a")
        room.pages("/news/a")
        watch.once()
        assert "/news/a" in listed(watch)
        assert len(visited(watch)) < 40
        assert state(watch)["bounded"]
        assert state(watch)["whole"]
