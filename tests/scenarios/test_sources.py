"""What is watched: sources named and found, kinds that change, sources that leave and come back, faults of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor import find_sources
from tests.scenarios.trees import Site, site


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
        raise RuntimeError("no \ud800 such thing")

    monkeypatch.setattr(find_sources, "discover", broken)
    with site(tmp_path) as at:
        at.options = {"feeds": ["/feed.xml"], "sitemaps": None, "news_sitemaps": None}
        at.show("/feed.xml", rss("/a"))
        assert at.once() == [("source.baseline", "/feed.xml")]
        assert at.last.problems == [f"{at.url}: internal error: RuntimeError: no ? such thing"]
        assert "no ? such thing" in stored_site(at)["discovery_error"]
        for advance, tried in ((60.0, 1), (2000.0, 2)):
            at.once(advance=advance)
            assert len(tries) == tried
