"""The report of lastmod trust: scores and their evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.core.trust import Spread, score
from monitor.report import trust as trust_report
from monitor.report.html import trust_page
from monitor.store.database import Database
from tests.scenarios.watch import Watch, watching

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def test_how_lastmods_lie() -> None:
    dates = ["2026-12-01T08:00:00Z"] * 3 + ["2026-01-01", "soon", "2027-06-01", ""]
    assert trust_report.spread_of(dates, NOW) == Spread(rows=7, dated=6, invalid=2, top=3, fresh=3)
    assert trust_report.spread_of([], NOW) == Spread(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ({}, 0.5),
        ({"confirmed": 8, "denied": 0}, 0.9),
        ({"confirmed": 0, "denied": 8}, 0.1),
        ({"confirmed": 8, "strikes": 1}, 0.45),
        ({"confirmed": 8, "strikes": 2, "verdict": "untrusted"}, 0.225),
    ],
)
def test_a_score_is_what_pages_confirmed_less_what_the_listing_gives_away(
    memory: dict[str, object], expected: float
) -> None:
    assert score(memory, Spread(10, 10, 0, 1, 0)) == expected
    assert score(memory, Spread(10, 10, 5, 1, 0)) == pytest.approx(expected / 2, abs=0.001)
    assert score(memory, Spread(10, 0, 0, 0, 0)) is None


def reports(watch: Watch) -> list[trust_report.TrustReport]:
    with Database(f"sqlite:///{watch.path}", exclusive=False) as db:
        return db.call(lambda c: trust_report.report(c, [(1, "x")], watch.room.now.timestamp()))


def test_generation_times_are_untrusted_within_four_reads_and_make_no_changes(tmp_path: Path) -> None:
    with watching(tmp_path) as watch:
        watch.room.generation_time_lastmod = True
        changed = [e for _ in range(4) for e in watch.once() if e["type"] == "url.changed"]
        assert changed == []
        files = [one for one in reports(watch) if one.urls > 5]
        assert files
        assert {one.verdict for one in files} == {"untrusted"}
        assert all(one.score is not None and one.score < 0.2 for one in files)
        assert "moved most of them at once" in files[0].evidence
        assert "have one and the same value" in files[0].evidence
        shown = trust_page(reports(watch))
        assert "untrusted" in shown
        assert "<script" not in shown
