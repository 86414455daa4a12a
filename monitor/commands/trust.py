"""`monitor report trust`: the lastmod trust of sitemap files."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, fields
from pathlib import Path

from rich.table import Table

from monitor.commands.reports import chosen_sites, csv_text, printed, write
from monitor.commands.tables import clean
from monitor.report import html
from monitor.report import trust as trust_report
from monitor.report.trust import TrustReport
from monitor.store.database import Database

COLOURS = {"trusted": "green", "untrusted": "red"}


def trust(url: str, *, site: str | None, form: str, output: Path | None) -> None:
    """Print the trust of each sitemap file, worst first. Raises LookupError for an unknown site."""
    with Database(url, exclusive=False, must_exist=True) as db:
        found = db.call(lambda c: trust_report.report(c, chosen_sites(c, site), time.time()))
    found.sort(key=lambda one: (one.site, one.score is None, one.score or 0.0, one.url))
    names = [field.name for field in fields(TrustReport)]
    if form == "json":
        text = json.dumps([asdict(one) | {"evidence": one.evidence} for one in found], ensure_ascii=False, indent=2)
        text += "\n"
    elif form == "csv":
        text = csv_text(
            [*names, "evidence"], ([*(getattr(one, name) for name in names), one.evidence] for one in found)
        )
    elif form == "html":
        text = html.trust_page(found)
    else:
        text = _table(found)
    write(text, output)


def _table(found: list[TrustReport]) -> str:
    table = Table(box=None, pad_edge=False)
    table.add_column("SITE", overflow="fold")
    table.add_column("FILE", overflow="fold")
    table.add_column("VERDICT")
    for name in ("SCORE", "URLS", "DATED"):
        table.add_column(name, justify="right")
    table.add_column("EVIDENCE", overflow="fold")
    for one in found:
        verdict = clean(one.verdict)
        verdict.stylize(COLOURS.get(one.verdict, ""))
        score = f"{one.score:.2f}" if one.score is not None else "-"
        cells = [score, f"{one.urls:,}", f"{one.dated:,}", one.evidence]
        table.add_row(clean(one.site), clean(one.url), verdict, *map(clean, cells))
    return printed(table)
