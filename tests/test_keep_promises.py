"""Promises by the hundred: which are looked at when, and what a pass costs that has nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import Connection, event, func, insert, select, text, update

from monitor.config import Expect
from monitor.keep_promises import BATCH, check_promises
from monitor.runtime import Runtime
from monitor.store import sources as source_store
from monitor.store.database import Database
from monitor.store.schema import document, page, promise, sighting, source

NOW = 1_800_000_000.0
MANY = BATCH + 50


class Store:
    """A site with a feed, and with a news sitemap if it `has_news`; `MANY` pages that are promised to be in that."""

    def __init__(self, path: Path, *, has_news: bool = True) -> None:
        self.db = Database(f"sqlite:///{path}/m.db")
        self.now = NOW

        def fill(connection: Connection) -> None:
            source_store.sync_sites(connection, [("s", "http://x/")], NOW)
            named: list[Any] = [("feed", "http://x/f", "config"), ("sitemap", "http://x/s", "config")]
            named += [("news_sitemap", "http://x/n", "config")] if has_news else []
            source_store.sync_sources(connection, 1, named, NOW, origins="config")
            connection.execute(update(source).values(last_at=NOW - 100, last_result="modified", baseline_at=1.0))
            pages = [
                {"site_id": 1, "id": n, "key": f"k{n}", "url": f"u{n}", "first_at": 1.0, "announced": True}
                for n in range(MANY + 1)
            ]
            connection.execute(insert(page), pages)
            for number in range(MANY):
                self.promise(connection, number, "news_sitemap")

        self.db.call(fill)
        expect = (Expect("/**", "news_sitemap", 60.0), Expect("/**", "feed", 60.0))
        site = SimpleNamespace(name="s", expect=expect, feeds=(), sitemaps=())
        rows = self.db.call(source_store.sites)
        self.run = SimpleNamespace(
            rows=rows, sites={"s": site}, clock=lambda: self.now, db=self.db, routes=[], wake=lambda: None
        )

    def promise(self, connection: Connection, number: int, kind: str) -> None:
        row = {"site_id": 1, "page_id": number, "rule": kind, "kind": kind, "due_at": NOW - 50, "state": "open"}
        connection.execute(insert(promise).values(row))

    def call(self, work: Callable[[Connection], Any]) -> Any:
        return self.db.call(work)

    def look(self) -> int:
        return asyncio.run(check_promises(cast("Runtime", self.run)))

    def read(self, kind: str, at: float) -> None:
        self.now = at
        self.call(lambda c: c.execute(update(source).where(source.c.kind == kind).values(last_at=at)))

    def states(self) -> dict[str, int]:
        query = select(promise.c.state, func.count()).group_by(promise.c.state)
        return {row[0]: row[1] for row in self.call(lambda c: c.execute(query).all())}

    def statements(self, work: Callable[[], Any]) -> int:
        """How many statements the database is given while `work` is done."""
        count = 0

        def counted(*_: Any) -> None:
            nonlocal count
            count += 1

        engine = self.db._engine
        event.listen(engine, "before_cursor_execute", counted)
        work()
        event.remove(engine, "before_cursor_execute", counted)
        return count


def test_those_that_wait_for_a_read_starve_nobody_and_cost_nothing_until_it_comes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.look() == 0
    assert store.call(lambda c: c.scalar(select(source.c.next_at).where(source.c.kind == "news_sitemap"))) == NOW
    assert store.statements(store.look) < 15  # however many wait
    store.call(lambda c: store.promise(c, MANY, "feed"))
    store.read("feed", NOW + 5)
    assert store.look() == 1
    assert store.states() == {"open": MANY, "broken": 1}
    store.read("news_sitemap", NOW + 10)
    assert store.look() == MANY
    assert store.states() == {"broken": MANY + 1}
    assert store.statements(store.look) < 15  # however many wait
    store.db.close()


def test_a_broken_one_is_looked_at_when_its_kind_was_read_and_for_a_week(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.read("news_sitemap", NOW)
    assert store.look() == MANY

    def listed(connection: Connection) -> None:
        row = {"id": 9, "source_id": 3, "url": "http://x/n", "kind": "news_sitemap", "quiet": False}
        connection.execute(insert(document).values(row))
        connection.execute(insert(sighting).values(document_id=9, page_id=7, first_at=NOW))

    store.call(listed)
    assert store.look() == 0
    store.read("news_sitemap", NOW + 60)
    assert store.look() == 1
    assert store.states() == {"broken": MANY - 1, "mended": 1}
    store.now = NOW + 8 * 86400
    assert store.look() == 0
    assert store.states() == {"expired": MANY - 1, "mended": 1}
    store.db.close()


def test_a_kind_of_which_there_is_no_source_lists_nothing_once_it_is_sure_that_there_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path, has_news=False)
    store.call(lambda c: c.execute(text("UPDATE source SET baseline_at = NULL WHERE kind = 'sitemap'")))
    assert store.look() == 0  # its sitemap is read for the first time, and may bring a news sitemap
    store.call(lambda c: c.execute(text("UPDATE source SET baseline_at = 1")))
    assert store.look() == MANY
    assert store.look() == 0
    store.db.close()
