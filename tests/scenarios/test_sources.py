"""What is watched: sources named and found, kinds that change, sources that leave and come back, faults of our own."""

from __future__ import annotations

import asyncio
import io
import threading
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from monitor import engine, faults, find_sources
from monitor.commands.daemon import fetch_policy
from monitor.config import Concurrency
from monitor.fetch import Fetcher, FetchPolicy
from monitor.poll_feed import poll_feed
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Database
from tests.scenarios.trees import START, Site, index, pages, site, urlset
from tests.scenarios.watch import shared_pool


def rss(*paths: str) -> str:
    """A feed whose entries are at these paths."""
    items = "".join(
        f"<item><guid>{path}</guid><title>On {path}</title><link>{{site}}{path}</link></item>" for path in paths
    )
    return f'<rss version="2.0"><channel><title>t</title><link>{{site}}</link>{items}</channel></rss>'


def sources(at: Site) -> dict[str, dict[str, Any]]:
    """The stored sources by path."""
    rows = at.look(lambda c: c.exec_driver_sql("select * from source").mappings().all())
    return {row["url"].removeprefix(at.url): dict(row) for row in rows}


def stored_site(at: Site) -> Any:
    return at.look(lambda c: c.exec_driver_sql("select * from site").mappings().one())


def test_an_address_found_as_feed_and_as_sitemap_is_one_source(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.options = {"feeds": None, "sitemaps": None, "news_sitemaps": None}
        at.show("/robots.txt", "Sitemap: {site}/feed.xml\n")
        at.show("/", '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml"></head></html>')
        at.show("/feed.xml", rss("/a", "/b"))
        assert at.once() == [("source.baseline", "/feed.xml")]
        assert {path: row["kind"] for path, row in sources(at).items()} == {"/feed.xml": "feed"}
        assert at.last.problems == []


def test_a_fault_in_discovery_is_told_and_not_repeated_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    async def broken(*_: object, **__: object) -> None:
        tries.append(1)
        raise RuntimeError("no such thing")

    monkeypatch.setattr(find_sources, "discover", broken)
    with site(tmp_path) as at:
        at.options = {"feeds": ["/feed.xml"], "sitemaps": None, "news_sitemaps": None}
        at.show("/feed.xml", rss("/a"))
        assert at.once() == [("source.baseline", "/feed.xml")]
        assert at.last.problems == [f"{at.url}: internal error: RuntimeError: no such thing"]
        assert "no such thing" in stored_site(at)["discovery_error"]
        for advance, tried in ((60.0, 1), (2000.0, 2)):
            at.once(advance=advance, everything=False)
            assert len(tries) == tried


def news(*paths: str) -> str:
    """A news sitemap of today's pages."""
    rows = "".join(
        f"<url><loc>{{site}}{path}</loc><news:news><news:publication><news:name>x</news:name><news:language>en"
        f"</news:language></news:publication><news:publication_date>{datetime.fromtimestamp(START, UTC).isoformat()}"
        f"</news:publication_date><news:title>On {path}</news:title></news:news></url>"
        for path in paths
    )
    space = "http://www.google.com/schemas/sitemap-news/0.9"
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="{space}">{rows}</urlset>'


def active(at: Site) -> dict[str, str]:
    """The kinds of the sources watched, by path."""
    return {path: row["kind"] for path, row in sources(at).items() if row["active"]}


def test_a_news_sitemap_behind_an_index_is_watched_as_long_as_its_index(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.show("/index.xml", index("/pages.xml", "/today.xml"))
        at.show("/pages.xml", urlset("/a", "/b"))
        at.show("/today.xml", news("/c"))
        at.show("/other.xml", urlset("/a"))
        at.once()
        at.show("/today.xml", news("/c", "/d"))
        assert ("url.new", "/d") in at.once(advance=900.0)
        assert active(at) == {"/index.xml": "sitemap", "/today.xml": "news_sitemap"}
        at.options["sitemaps"] = ["/other.xml"]
        at.once()
        assert active(at) == {"/other.xml": "sitemap"}
        at.options["sitemaps"] = ["/index.xml"]
        at.once()
        assert active(at) == {"/index.xml": "sitemap", "/today.xml": "news_sitemap"}


@pytest.mark.parametrize(("before", "after"), [("feeds", "sitemaps"), ("sitemaps", "feeds")])
def test_a_source_named_as_another_kind_is_read_as_that_kind(tmp_path: Path, before: str, after: str) -> None:
    with site(tmp_path) as at:
        right = rss("/a", "/b") if after == "feeds" else urlset("/a", "/b")
        at.show("/x.xml", right)
        at.options = {"feeds": [], "sitemaps": [], "news_sitemaps": [], before: ["/x.xml"]}
        for _ in range(3):
            at.once()
        at.options |= {before: [], after: ["/x.xml"]}
        assert at.once(everything=False, advance=1.0)[-1] == ("source.baseline", "/x.xml")
        [row] = sources(at).values()
        assert (row["kind"], row["state"], row["failures"]) == (after[:-1], "ok", 0)
        assert at.once() == []
        at.show("/x.xml", right.replace("/b", "/c"))
        assert at.once() == [("url.new", "/c")]
        missing = pages(at.once()) + pages(at.once())
        assert missing == ([] if after == "feeds" else [("url.missing", "/b")])


def test_a_sitemap_found_to_be_news_stays_one_and_one_named_so_becomes_one(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.show("/found.xml", news("/a"))
        at.show("/named.xml", urlset("/b"))
        at.options["sitemaps"] = ["/found.xml", "/named.xml"]
        at.once()
        assert active(at) == {"/found.xml": "news_sitemap", "/named.xml": "sitemap"}
        at.options |= {"sitemaps": ["/found.xml"], "news_sitemaps": ["/named.xml"]}
        at.show("/named.xml", urlset("/b", "/c"))
        assert at.once() == [("url.new", "/c")]
        assert active(at) == {"/found.xml": "news_sitemap", "/named.xml": "news_sitemap"}


def test_a_source_that_comes_back_is_watched_again_even_if_it_was_gone(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.options = {"feeds": ["/feed.xml"], "sitemaps": [], "news_sitemaps": []}
        at.show("/feed.xml", rss("/a"))
        at.once()
        at.show("/feed.xml", "", status=410)
        assert at.once() == [("source.gone", "/feed.xml")]
        at.options["feeds"] = []
        at.once()
        assert active(at) == {}
        at.options["feeds"] = ["/feed.xml"]
        at.show("/feed.xml", rss("/b", "/a"))
        assert at.once(everything=False, advance=1.0) == [("url.new", "/b")]
        assert sources(at)["/feed.xml"]["state"] == "ok"


def test_sources_are_found_at_once_when_they_are_named_no_more(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.show("/", '<html><head><link rel="alternate" type="application/rss+xml" href="/feed.xml"></head></html>')
        at.show("/feed.xml", rss("/a"))
        at.options = {"feeds": None, "sitemaps": [], "news_sitemaps": []}
        at.once()
        at.options["feeds"] = ["/feed.xml"]
        at.once()
        at.options["feeds"] = None
        at.once(advance=1.0)
        assert active(at) == {"/feed.xml": "feed"}
        assert sources(at)["/feed.xml"]["origin"] == "link rel=alternate"


def test_settings_of_a_source_are_its_own(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        for path in ("/own.xml", "/feed.xml"):
            at.show(path, rss(f"{path}/a"))
        at.show("/index.xml", index("/child.xml"))
        at.show("/child.xml", urlset("/b"))
        at.options = {"feeds": ["/own.xml", "/feed.xml"], "sitemaps": ["/index.xml"], "news_sitemaps": []}
        base = at.config().sites[0].settings
        own = replace(base, user_agent="special/1.0", baseline="alert")
        at.options["overrides"] = ((f"{at.url}/own.xml", own), (f"{at.url}/index.xml", own))
        told = at.once()
        assert pages(told) == [("url.new", "/b"), ("url.new", "/own.xml/a")]
        agents = {path: agent for path, agent in at.agents.items() if path != "/robots.txt"}
        special = dict.fromkeys(("/own.xml", "/index.xml", "/child.xml"), "special/1.0")
        assert agents == special | {"/feed.xml": base.user_agent}


def test_a_site_that_leaves_while_its_sources_are_read_is_no_fault(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.show("/feed.xml", rss("/a"))
        at.options |= {"feeds": ["/feed.xml"], "sitemaps": []}
        at.once()
        at.show("/feed.xml", rss("/b", "/a"))

        async def go() -> None:
            config = at.config()
            with Database(config.database) as db:
                async with Fetcher(fetch_policy(config)) as fetcher:
                    run = Runtime(config, db, fetcher, shared_pool(), clock=lambda: at.now)
                    run.use(config)
                    run.rows = await db.run(source_store.sites)
                    [source] = await db.run(source_store.all_sources)
                    roots = await db.run(lambda c: source_store.root_documents(c, [source.id]))
                    poll = asyncio.create_task(poll_feed(run, source, roots[source.id]))
                    await asyncio.sleep(0)
                    run.sites = {}
                    assert (await poll).result == "modified"

        asyncio.run(go())
        assert at.count("event") == 2


def test_a_fault_is_called_by_one_line_that_any_database_takes() -> None:
    assert faults.sentence(ValueError("a\nb\ud800")) == "internal error: ValueError: a b?"
    assert faults.sentence(ExceptionGroup("x", [OSError(), KeyError("k")])) == "internal error: OSError"


def test_a_fault_of_our_own_fails_the_poll_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ExceptionGroup("tasks", [LookupError()])

    with site(tmp_path) as at, monkeypatch.context() as patch:
        at.show("/feed.xml", rss("/a"))
        at.options |= {"feeds": ["/feed.xml"], "sitemaps": []}
        at.once()
        patch.setattr(engine, "poll_feed", broken)
        waits = []
        for failures in range(1, 5):
            told = at.once()
            assert told == ([("source.failing", "/feed.xml")] if failures == 3 else [])
            row = sources(at)["/feed.xml"]
            assert (row["failures"], row["last_at"], row["last_result"]) == (failures, at.now, "failed")
            assert row["last_error"] == "internal error: LookupError"
            assert at.last.problems == [f"{at.url}/feed.xml: internal error: LookupError"]
            waits.append(row["next_at"] - at.now)
        assert all(300 * 2**n <= wait <= 600 * 2**n for n, wait in enumerate(waits))
        patch.undo()
        assert at.once() == [("source.recovered", "/feed.xml")]


def test_a_fault_in_one_part_of_a_pass_keeps_nothing_from_being_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise LookupError("lost")

    for name in ("renew_prices", "check_promises", "check_pages"):
        monkeypatch.setattr(engine, name, broken)
    monkeypatch.setattr(engine, "find_sources", broken)
    monkeypatch.setattr(page_store, "sites_with_checks", lambda *_: [1])
    with site(tmp_path) as at:
        at.show("/feed.xml", rss("/a"))
        at.options |= {"feeds": ["/feed.xml"], "sitemaps": None}
        assert at.once() == [("source.baseline", "/feed.xml")]
        said = "internal error: LookupError: lost"
        parts = ("discovery", "the price of polls", "the price of polls", "promises", "the pages of 127.0.0.1")
        assert at.last.problems == [f"{part}: {said}" for part in parts]


def test_a_slow_host_leaves_room_for_the_others(tmp_path: Path) -> None:
    """Ten feeds wait for a host that answers none; the daemon has room for six polls in all."""
    released = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            released.wait(30)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    slow = f"http://127.0.0.1:{server.server_address[1]}"

    async def go(at: Site) -> None:
        at.options |= {"feeds": ["/feed.xml"], "sitemaps": []}
        config = at.config()
        limits = Concurrency(total=3, per_host=1)
        settings = replace(config.defaults, concurrency=limits)
        mine = replace(config.sites[0], settings=settings)
        other = replace(mine, name="slow", url=slow, feeds=tuple(f"{slow}/{n}" for n in range(10)))
        config = replace(config, defaults=settings, sites=(other, mine))
        with Database(config.database) as db:
            async with Fetcher(fetch_policy(config)) as fetcher:
                made = engine.Engine(config, db, fetcher, shared_pool(), clock=lambda: at.now, stream=io.StringIO())
                await made.use(config)
                stop = asyncio.Event()
                daemon = asyncio.create_task(made.forever(stop))
                async with asyncio.timeout(20):
                    while not at.asked["/feed.xml"]:
                        await asyncio.sleep(0.02)
                stop.set()
                released.set()
                await daemon

    try:
        with site(tmp_path) as at:
            at.show("/feed.xml", rss("/a"))
            asyncio.run(go(at))
    finally:
        released.set()
        server.shutdown()
        server.server_close()


def test_a_disabled_endpoint_is_named_in_each_pass(tmp_path: Path) -> None:
    with site(tmp_path) as at:
        at.show("/feed.xml", rss("/a"))
        at.options |= {"feeds": ["/feed.xml"], "sitemaps": []}
        at.once()
        with Database(at.config().database) as db:
            db.call(lambda c: event_store.disable(c, "stdout", "answered 410 Gone", 1.0))
        at.show("/feed.xml", rss("/b", "/a"))
        assert at.once() == []
        assert at.last.problems == ["stdout: is disabled, nothing is sent to it: answered 410 Gone"]
        assert at.count("delivery") == 0


def test_discovery_at_an_odd_address_raises_nothing() -> None:
    found = asyncio.run(find_sources.discover("http://a[b@127.0.0.1:1/", policy=FetchPolicy("test/1")))
    assert found.all() == ()
    assert len(found.problems) == 1
