"""The coverage report against a site whose overlaps are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monitor.config import Expect
from monitor.core.coverage_data import report_data
from monitor.core.url import page_key
from monitor.report.coverage import site_coverage
from monitor.store import sources as source_store
from monitor.store.database import Database
from tests.scenarios.watch import Watch, watching

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
