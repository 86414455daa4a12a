"""News in one source of a site brings the others' polls forward; a restart forgets nothing of the schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from monitor import schedule
from monitor.config import Poll
from monitor.store import siblings as sibling_store
from monitor.store import sources as source_store
from monitor.store.database import Database
from monitor.store.sources import SourceRow
from tests.scenarios.watch import Watch, watching

FEED, NEWS, SPORT = "feed.xml", "feeds/news.xml", "feeds/sport.xml"
RARELY = 4 * 3600.0
"""The mean delay aimed at here: feeds are then polled every few hours, and siblings have something to gain."""


def sources(watch: Watch) -> dict[str, SourceRow]:
    """The stored sources by their path."""
    with Database(watch.config().database) as db:
        rows = db.call(source_store.all_sources)
    return {row.url.removeprefix(watch.room.url): row for row in rows}


def options(watch: Watch, *paths: str) -> None:
    """Watch these feeds and the news sitemap, rarely."""
    url = watch.room.url
    watch.site_options |= {
        "feeds": tuple(url + path for path in paths),
        "sitemaps": (),
        "news_sitemaps": (url + "news-sitemap.xml",),
    }
    settings = watch.config().sites[0].settings
    watch.site_options["settings"] = replace(settings, poll=Poll(min=60, max=86400, target_delay=RARELY))


def advance_to(watch: Watch, at: float) -> list[str]:
    """One pass of what is due at that time; the URLs of new pages."""
    events = watch.once(advance=max(0.0, at - watch.room.now.timestamp()), everything=False)
    return watch.urls(events, "url.new")


def poll_now(watch: Watch, path: str) -> None:
    """Let one source be due, without a sibling's doing."""
    row = sources(watch)[path]
    with Database(watch.config().database) as db:
        db.call(lambda c: source_store.set_source(c, row.id, next_at=watch.room.now.timestamp()))
    watch.once(advance=0, everything=False)


def lift(watch: Watch, first: str, second: str) -> float:
    """What news in the first source has shown of the second."""
    rows = sources(watch)
    with Database(watch.config().database) as db:
        pairs = db.call(lambda c: sibling_store.pairs(c, [rows[first].id], rows[second].id))
    return pairs[rows[first].id].lift


def test_news_in_one_feed_brings_the_others_forward_at_once(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        options(watch, FEED, NEWS)
        watch.once()
        watch.room.advance(1800)
        poll_now(watch, NEWS)  # nothing yet
        before = sources(watch)
        watch.room.advance(120)
        watch.room.publish(section="news")
        poll_now(watch, FEED)
        after, now = sources(watch), watch.room.now.timestamp()
        assert before[NEWS].next_at > now + 600
        assert now < after[NEWS].next_at <= now + 60
        assert after[NEWS].reason == f"news in {watch.room.url}{FEED}"
        seen = len(watch.room.requests)
        advance_to(watch, after[NEWS].next_at)
        assert f"/{NEWS}" in [request.path for request in watch.room.requests_since(seen)]
        found = sources(watch)[NEWS]
        assert (found.woken, found.woken_news, found.stirred) == (1, 1, None)
        assert found.next_at > watch.room.now.timestamp() + 600


def test_no_sibling_is_polled_before_its_server_allows(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        options(watch, FEED, NEWS)
        watch.once()
        watch.room.fail("/" + NEWS, 503, retry_after=3 * 3600)
        watch.room.advance(600)
        poll_now(watch, NEWS)
        barred = sources(watch)[NEWS]
        watch.room.publish(section="news")
        poll_now(watch, FEED)
        assert sources(watch)[NEWS].next_at == barred.next_at
        assert (barred.retry_at or 0) <= barred.next_at


@pytest.mark.slow
def test_a_pair_that_never_follows_is_let_go(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        options(watch, FEED, NEWS, SPORT)
        watch.once()
        for _ in range(16):
            watch.room.advance(3 * 3600)
            watch.room.publish(section="news")
            poll_now(watch, FEED)
            for _ in range(6):
                rows = sources(watch)
                due = [row.next_at for row in rows.values() if row.next_at <= watch.room.now.timestamp() + 900]
                if not due:
                    break
                advance_to(watch, min(due))
        rows = sources(watch)
        follows, stays = rows[NEWS], rows[SPORT]
        assert follows.woken_news >= 0.8 * follows.woken > 0
        assert stays.woken_news == 0
        assert stays.woken < follows.woken
        assert lift(watch, FEED, NEWS) > 0.4
        assert lift(watch, FEED, SPORT) < 0.15


def test_a_restart_polls_nothing_that_is_not_due_and_forgets_nothing(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        options(watch, FEED, NEWS, SPORT)
        watch.once()
        for _ in range(6):
            watch.room.publish()
            advance_to(watch, watch.room.now.timestamp() + 3600)
        for _ in range(3):  # what the last news woke
            advance_to(watch, watch.room.now.timestamp() + 60)
        before = sources(watch)
        assert all(row.next_at > watch.room.now.timestamp() + 1 for row in before.values())
        seen = len(watch.room.requests)
        watch.once(advance=1, everything=False)  # each pass is a new process's work on the stored state
        assert [r.path for r in watch.room.requests_since(seen) if r.path != "/robots.txt"] == []
        after = sources(watch)
        assert {path: (row.next_at, row.schedule) for path, row in after.items()} == {
            path: (row.next_at, row.schedule) for path, row in before.items()
        }
        state = schedule.loads(after[FEED].schedule or "")
        assert state.polls > 1
        assert len({row.next_at for row in after.values()}) == len(after)
