"""`monitor report coverage` and `monitor report lag`: the reports as tables and files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from sqlalchemy import Connection

from monitor.commands.reports import chosen_sites, csv_text, printed, write
from monitor.commands.tables import clean, span
from monitor.core.coverage import KINDS, REASONS, Coverage
from monitor.core.coverage_data import lag_data, report_data
from monitor.core.reconcile import when
from monitor.report import html
from monitor.report.coverage import site_coverage
from monitor.report.svg import NAMES
from monitor.store import sources as source_store
from monitor.store.database import Database

SHOWN = 20
"""Pages that the table names for each source that lacks them."""

Hosts = Mapping[str, frozenset[str]]


def _reports(url: str, hosts: Hosts, site: str | None, since: float | None) -> list[Coverage]:
    """The coverage of the sites chosen; `hosts` are those of each site that the configuration names. LookupError."""
    now = time.time()

    def read(connection: Connection) -> list[Coverage]:
        rows = source_store.sites(connection)
        return [
            site_coverage(connection, rows[name], hosts=hosts.get(name, frozenset()), since=since, now=now)
            for _number, name in chosen_sites(connection, site)
        ]

    with Database(url, exclusive=False, must_exist=True) as db:
        return db.call(read)


def _json(values: Sequence[Any]) -> str:
    """One site's report as an object, those of several as a list."""
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False, indent=2) + "\n"


def coverage(url: str, *, hosts: Hosts, site: str | None, since: float | None, form: str, output: Path | None) -> None:
    """Print the coverage report. Raises LookupError for an unknown site."""
    found = _reports(url, hosts, site, since)
    if form == "json":
        text = _json([report_data(one) for one in found])
    elif form == "csv":
        rows = (
            (one.site, kind, lack.url, " ".join(lack.seen_in), when(lack.first_at), lack.reason)
            for one in found
            for kind in KINDS
            for lack in one.missing[kind]
        )
        text = csv_text(["site", "missing_from", "url", "seen_in", "first_seen", "reason"], rows)
    elif form == "html":
        text = html.coverage_page(found)
    else:
        text = "\n".join(map(_coverage_table, found))
    write(text, output)


def _coverage_table(report: Coverage) -> str:
    counts = ", ".join(f"{report.sources[kind]:,} in {NAMES[kind]}" for kind in KINDS)
    since = f" since {when(report.since)}" if report.since is not None else ""
    parts = [printed(f"{report.site}: {report.union:,} pages{since}: {counts}")]
    parts += [printed(f"not complete: {reason}") for reason in report.why]
    overlap = Table(box=None, pad_edge=False)
    for kind in KINDS:
        overlap.add_column(NAMES[kind].upper(), justify="center")
    overlap.add_column("PAGES", justify="right")
    overlap.add_column("SHARE", justify="right")
    for kinds, count in report.combinations:
        marks = ["x" if kind in kinds else "" for kind in KINDS]
        overlap.add_row(*marks, f"{count:,}", f"{count / report.union:.1%}")
    parts.append(printed(overlap))
    sections = Table(box=None, pad_edge=False)
    sections.add_column("SECTION", overflow="fold")
    for kind in KINDS:
        sections.add_column(NAMES[kind].upper(), justify="right")
    for prefix, of_kind in report.sections[:SHOWN]:
        sections.add_row(clean(prefix), *(f"{of_kind[kind]:,}" for kind in KINDS))
    parts.append(printed(sections))
    for kind in KINDS:
        count, lacks = report.missing_counts[kind], report.missing[kind][:SHOWN]
        if not report.sources[kind] and not count:
            continue
        parts.append(printed(f"{NAMES[kind]} lacks {count:,}"))
        for lack in lacks:
            seen_in = ", ".join(NAMES[one] for one in lack.seen_in)
            words = f"in {seen_in} since {when(lack.first_at)}; the {NAMES[kind]} {REASONS[lack.reason]}"
            parts.append(printed(f"  {lack.url}  ({words})"))
        if count > len(lacks):
            parts.append(printed(f"  and {count - len(lacks):,} more; --format csv, json or html names them"))
    parts += [printed(words) for words in _odd(report)]
    return "".join(parts)


def _odd(report: Coverage) -> list[str]:
    found = []
    if report.off_host:
        count = sum(one["count"] for one in report.off_host)
        found.append(f"{count:,} rows on hosts that are not the site's, such as {report.off_host[0]['sample'][0]}")
    if report.disallowed:
        first = report.disallowed[0]["url"]
        found.append(f"{len(report.disallowed):,} linked pages are disallowed by robots.txt, such as {first}")
    if report.duplicates:
        one = report.duplicates[0]
        pair = " and ".join(one["urls"][:2])
        found.append(f"{len(report.duplicates):,} groups may be one page each, such as {pair} (they {one['why']})")
    return found


def lag(url: str, *, hosts: Hosts, site: str | None, since: float | None, form: str, output: Path | None) -> None:
    """Print how long after publication each source first showed a page. Raises LookupError for an unknown site."""
    found = _reports(url, hosts, site, since)
    rows = [(one.site, kind, lag_data(lags)) for one in found for kind, lags in one.lags.items() if lags]
    if form == "json":
        kinds = [{kind: lag_data(one.lags.get(kind, [])) for kind in KINDS} for one in found]
        text = _json([{"site": one.site, "lag_seconds": of_kind} for one, of_kind in zip(found, kinds, strict=True)])
    elif form == "csv":
        text = csv_text(
            ["site", "source", "pages", "p50_seconds", "p90_seconds", "p99_seconds"],
            ((name, kind, *data.values()) for name, kind, data in rows),
        )
    elif form == "html":
        text = html.lag_page(found)
    else:
        table = Table(box=None, pad_edge=False)
        for name in ("SITE", "SOURCE"):
            table.add_column(name, overflow="fold")
        for name in ("PAGES", "MEDIAN", "90 %", "99 %"):
            table.add_column(name, justify="right")
        table.add_column("WITHIN 1M 10M 1H 6H 1D")
        for one in found:
            for kind, lags in one.lags.items():
                if lags:
                    count, *spans = lag_data(lags).values()
                    table.add_row(clean(one.site), NAMES[kind], f"{count:,}", *map(span, spans), clean(_within(lags)))
        text = printed(table) if rows else printed("no page with a date has come since the sources are watched")
    write(text, output)


def _within(lags: Sequence[float]) -> str:
    """A small plot: the share of pages shown within a minute, ten, an hour, six, a day."""
    shares = [sum(lag <= bound for lag in lags) / len(lags) for bound in (60, 600, 3600, 21600, 86400)]
    return " ".join(f"{'▁▂▃▄▅▆▇█'[min(7, int(share * 8))]}{share:.0%}" for share in shares)
