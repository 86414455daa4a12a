"""Pages as witnesses: robots.txt, what their reads teach, and the trust of lastmods that comes of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from monitor.config import Changes
from monitor.newsroom import Newsroom
from tests.scenarios.watch import START, pages, watching


def site() -> Newsroom:
    return Newsroom(seed=7, old_pages=35, start=START, window=5)


def test_a_page_is_asked_only_on_suspicion_and_its_fingerprint_decides_the_next_time(tmp_path: Path) -> None:
    with watching(tmp_path, room=site()) as watch:
        watch.once()
        old = min(watch.room.articles, key=lambda article: article.published)
        assert not [r for r in watch.room.requests if r.path == old.path]
        watch.room.edit(old, body="A first edit of an old story.")
        assert watch.urls(watch.once(), "url.changed") == [old.url]
        with sqlite3.connect(watch.path) as db:
            kept = db.execute("SELECT fingerprint FROM page WHERE url = ?", (old.url,)).fetchone()[0]
        db.close()
        assert kept
        watch.room.advance(120)
        watch.room.edit(old, body="And a second one, with other words.")
        events = pages(watch.once(advance=3600))
        assert [(e["subject"], e["data"]["evidence"]) for e in events] == [(old.url, "page")]
        watch.room.advance(120)
        watch.room.edit(old, body="And a second one, with other words.")  # the date moves, the text does not
        assert pages(watch.once(advance=3600)) == []


def test_a_robots_txt_that_fails_forbids_its_pages_until_it_works_again(tmp_path: Path) -> None:
    with watching(tmp_path, room=site()) as watch:
        watch.once()
        watch.room.fail("/robots.txt", 500)  # RFC 9309, 2.3.1.4: forbids everything
        old = min(watch.room.articles, key=lambda article: article.published)
        watch.room.withdraw(old, status=404)
        watch.once()
        assert pages(watch.once()) == []
        assert not [r for r in watch.room.requests if r.path == old.path]
        watch.room.mend("/robots.txt")
        events = pages(watch.once(advance=900))
        assert [(e["type"], e["data"]["reason"]) for e in events] == [("url.missing", "dead")]


def test_verify_never_asks_no_page(tmp_path: Path) -> None:
    with watching(tmp_path, room=site(), changes=Changes(verify="never")) as watch:
        watch.once()
        gone = sorted(watch.room.articles, key=lambda article: article.published)[:3]
        for article in gone:
            watch.room.withdraw(article, status=404)
        watch.once()
        events = pages(watch.once())
        assert sorted(watch.urls(events, "url.missing")) == sorted(article.url for article in gone)
        assert {e["data"]["reason"] for e in events} == {"removed"}
        assert not [r for r in watch.room.requests if r.path.startswith("/news/")]


def test_a_redirected_page_is_missing_as_redirected(tmp_path: Path) -> None:
    with watching(tmp_path, room=site()) as watch:
        watch.once()
        old, *_, target = sorted(watch.room.articles, key=lambda article: article.published)
        watch.room.withdraw(old, status=301, to=target)
        watch.once()
        events = pages(watch.once())
        assert [(e["type"], e["subject"], e["data"]["reason"]) for e in events] == [
            ("url.missing", old.url, "redirected")
        ]
        assert events[0]["data"]["page"]["final_url"] == target.url
