"""`monitor lint`: a feed or sitemap, of a file or an address, against its specification."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from rich.table import Table

from monitor.commands.tables import clean, console, print_json
from monitor.config import Settings
from monitor.core.feed import MAX_BYTES
from monitor.core.http import Reply
from monitor.core.lint import Report
from monitor.core.lint import lint as lint_document
from monitor.fetch import Fetcher, FetchPolicy

_ACCEPT = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


class CannotRead(Exception):  # noqa: N818 - it says what it is
    """There is no such file, or it cannot be read. `str(error)` is one sentence for the user."""


def lint(subject: str, *, allow_private_networks: bool, as_json: bool) -> int:
    """Check a file, standard input (``-``) or an http(s) address and print the findings.

    Returns the exit code: 1 where there is an error among them. Raises CannotRead.
    """
    if subject.lower().startswith(("http://", "https://")):
        reply = asyncio.run(_fetch(subject, allow_private_networks=allow_private_networks))
        url = reply.final_url or subject
        report = lint_document(reply.body, url, now=datetime.now(UTC), reply=reply)
    else:
        report = lint_document(_read(subject), None, now=datetime.now(UTC))
    if as_json:
        print_json(report_data(subject, report))
    else:
        _print_report(subject, report)
    return 1 if any(finding.severity == "error" for finding in report.findings) else 0


def report_data(subject: str, report: Report) -> dict[str, Any]:
    """What `lint --json` prints."""
    return {
        "url": subject,
        "kind": report.kind,
        "format": report.form,
        "size": report.size,
        "complete": report.complete,
        "findings": [asdict(finding) for finding in report.findings],
    }


async def _fetch(url: str, *, allow_private_networks: bool) -> Reply:
    policy = FetchPolicy(user_agent=Settings().user_agent, allow_private_networks=allow_private_networks)
    async with Fetcher(policy) as fetcher:
        return await fetcher.get(url, accept=_ACCEPT, max_bytes=MAX_BYTES)


def _read(subject: str) -> bytes:
    """The bytes of a file, one more than any parser takes at most."""
    if subject == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(subject).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        _refuse(subject, error)


def _refuse(subject: str, error: Exception) -> NoReturn:
    if "://" in subject:
        raise CannotRead(f"{subject}: only http and https addresses can be fetched") from error
    if isinstance(error, FileNotFoundError):
        raise CannotRead(f"there is no file {subject}; an address begins with http:// or https://") from error
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise CannotRead(f"{subject} cannot be read: {reason}") from error


def _print_report(subject: str, report: Report) -> None:
    out = console()
    if report.findings:
        table = Table(box=None, pad_edge=False)
        for name in ("SEVERITY", "RULE", "PLACE", "WHAT TO DO", "SOURCE"):
            table.add_column(name, overflow="fold")
        for finding in report.findings:
            severity = clean(finding.severity)
            severity.stylize(_COLOURS[finding.severity])
            cells = (finding.rule, finding.place, finding.message, finding.source)
            table.add_row(severity, *map(clean, cells))
        out.print(table)
    counts = Counter[str]()
    for finding in report.findings:
        counts[finding.severity] += finding.count
    out.print(clean(f"{subject}: {_described(report)}; {_counted(counts)}"))


def _described(report: Report) -> str:
    if report.kind is None:
        return "neither a feed nor a sitemap could be read"
    what = "entries" if report.kind == "feed" else "rows"
    whole = "" if report.complete else ", not all of it could be read"
    return f"{report.kind.replace('_', ' ')} ({report.form}), {report.size} {what}{whole}"


def _counted(counts: Counter[str]) -> str:
    """``2 errors, 1 warning, no notes``."""
    parts = []
    for severity in _COLOURS:
        number = counts[severity]
        parts.append(f"{number or 'no'} {severity}{'' if number == 1 else 's'}")
    return ", ".join(parts)
