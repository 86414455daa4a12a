"""`monitor report`: what is known, in tables and files."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from sqlalchemy import Connection

from monitor.commands.tables import WIDE, clean, console
from monitor.core.reconcile import when
from monitor.report import sitemaps as sitemap_report
from monitor.store import sources as source_store
from monitor.store.database import Database


def chosen_sites(connection: Connection, name: str | None) -> list[tuple[int, str]]:
    """(id, name) of all sites, or of the one named. LookupError says that there is none."""
    sites = source_store.sites(connection)
    if name is None:
        return [(row.id, row.name) for row in sites.values()]
    if name not in sites:
        raise LookupError(f"no site is named {name!r}; known are {', '.join(sorted(sites)) or 'none'}")
    return [(sites[name].id, name)]


def sitemaps(url: str, *, site: str | None, at: float | None, form: str, output: Path | None) -> None:
    """Print the report of sitemap files, or what they listed at an instant. Raises LookupError for an unknown site."""
    with Database(url, exclusive=False, must_exist=True) as db:
        if at is not None:
            moment = at
            told = db.call(lambda c: sitemap_report.listed_at(c, chosen_sites(c, site), moment))
            write(_listed(told, moment, form), output)
            return
        found = db.call(lambda c: sitemap_report.report(c, chosen_sites(c, site), time.time()))
    if form == "json":
        text = json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2) + "\n"
    elif form == "csv":
        names = [field.name for field in fields(sitemap_report.FileReport)]
        text = csv_text(names, ([getattr(file, name) for name in names] for one in found for file in one.files))
    else:
        text = _table(found)
    write(text, output)


def _table(found: Sequence[sitemap_report.SiteReport]) -> str:
    lines = [f"{one.site}: {one.urls:,} URLs in {len(one.files)} files" for one in found]
    lines += [f"warning: {text}" for one in found for text in one.warnings]
    if console().width < WIDE:
        return printed(Group(*(part for one in found for file in one.files for part in _block(file))), *lines)
    table = Table(box=None, pad_edge=False)
    for name in ("SITE", "FILE", "KIND"):
        table.add_column(name, overflow="fold")
    for name in ("URLS", "LASTMOD", "LAST 24 H", "BYTES", "SECONDS"):
        table.add_column(name, justify="right")
    table.add_column("READ")
    table.add_column("PROBLEMS", overflow="fold")
    for one in found:
        for file in one.files:
            problems = file.problems or ("" if file.listed else "no index lists it any more")
            shares = [f"{share:.0%}" if share is not None else "-" for share in (file.lastmod_share, file.fresh_share)]
            size = f"{file.bytes:,}" if file.bytes is not None else "-"
            seconds = f"{file.seconds:.2f}" if file.seconds is not None else "-"
            cells = [file.site, file.url, file.kind, f"{file.urls:,}", *shares, size, seconds, file.read or "never"]
            table.add_row(*map(clean, [*cells, problems]))
    return printed(table, *lines)


def _block(file: sitemap_report.FileReport) -> list[RenderableType]:
    """A file's line for a terminal of 80 columns: the address, what is known of it beneath, what is wrong."""
    facts = [file.site, file.kind, f"{file.urls:,} URLs"]
    facts += [f"{share:.0%} {what}" for share, what in _shares(file) if share is not None]
    facts += [f"{file.bytes:,} bytes"] if file.bytes is not None else []
    facts += [f"{file.seconds:.2f} s"] if file.seconds is not None else []
    facts.append(f"read {file.read}" if file.read else "never read")
    problems = file.problems or ("" if file.listed else "no index lists it any more")
    parts: list[RenderableType] = [clean(file.url), Padding.indent(clean(", ".join(facts)), 2)]
    return parts + ([Padding.indent(clean(problems), 2)] if problems else [])


def _shares(file: sitemap_report.FileReport) -> list[tuple[float | None, str]]:
    return [(file.lastmod_share, "with lastmod"), (file.fresh_share, "modified in the last 24 h")]


def _listed(told: Sequence[tuple[str, str, str, list[Any] | None]], moment: float, form: str) -> str:
    if form == "json":
        value = [
            {"site": site, "file": url, "kind": kind, "at": when(moment), "urls": lines and [asdict(x) for x in lines]}
            for site, url, kind, lines in told
        ]
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    if form == "csv":
        rows = ([site, url, line.url, line.lastmod, line.title] for site, url, _, lines in told for line in lines or ())
        return csv_text(["site", "file", "url", "lastmod", "title"], rows)
    table = Table(box=None, pad_edge=False)
    for name in ("SITE", "FILE", "KIND", f"URLS AT {when(moment)}"):
        table.add_column(name, overflow="fold")
    for site, url, kind, lines in told:
        table.add_row(*map(clean, [site, url, kind, "not known" if lines is None else f"{len(lines):,}"]))
    return printed(table, "--format csv or json shows each URL")


def printed(*parts: RenderableType) -> str:
    """Tables and lines as text, as wide as the terminal."""
    out = io.StringIO()
    for part in parts:
        if isinstance(part, str):
            out.write(f"{clean(part)}\n")
        else:
            Console(file=out, width=console().width, highlight=False).print(part)
    return out.getvalue()


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV (RFC 4180)."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([["" if cell is None else _harmless(cell) for cell in row] for row in rows])
    return out.getvalue()


def _harmless(cell: Any) -> Any:
    """A text that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def write(text: str, output: Path | None) -> None:
    """Print a report, or write it to a file."""
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")
