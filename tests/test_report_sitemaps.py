"""The report of sitemap files: shares, warnings, harmless cells."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.commands.reports import csv_text
from monitor.report import sitemaps as sitemap_report
from tests.scenarios.trees import Site, site, urlset


@pytest.mark.parametrize(
    ("lastmod", "fresh"),
    [
        ("2026-12-01T08:00:00Z", 1),
        ("2026-11-30T12:30:00Z", 1),
        ("2026-11-30T11:30:00Z", 0),
        ("2026-11-30T11:30:00-02:00", 1),
        ("2026-12-01", 1),
        ("2026-11-30", 1),
        ("2026-11-29", 0),
        ("Tue, 01 Dec 2026 08:00:00 GMT", 1),
        ("2027-12-01", 0),
        ("soon", 0),
        ("", 0),
    ],
)
def test_fresh_is_what_was_modified_in_the_last_day(lastmod: str, fresh: int) -> None:
    assert sitemap_report.count_fresh([lastmod], datetime(2026, 12, 1, 12, tzinfo=UTC)) == fresh


def test_a_jump_by_an_order_of_magnitude_is_a_warning(tmp_path: Path) -> None:
    def warnings(tree: Site) -> list[str]:
        (report,) = tree.look(lambda c: sitemap_report.report(c, [(1, "x")], tree.now))
        return [text.removeprefix(tree.url) for text in report.warnings]

    with site(tmp_path) as tree:
        tree.show("/index.xml", urlset(*(f"/{n}" for n in range(20))))
        tree.once()
        tree.once()
        assert warnings(tree) == []
        tree.show("/index.xml", urlset(*(f"/{n}" for n in range(400))))
        tree.once()
        assert warnings(tree) == ["/index.xml lists 400 URLs where it listed 20"]


def test_cells_of_a_table_are_no_formulas() -> None:
    assert csv_text(["url"], [["=HYPERLINK(1)"], ["https://h.example/,"], [None]]) == (
        'url\r\n\'=HYPERLINK(1)\r\n"https://h.example/,"\r\n""\r\n'
    )
