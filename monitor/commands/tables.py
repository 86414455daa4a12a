"""`monitor status`, `explain` and `events`: what the database knows, printed."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from monitor import schedule
from monitor.core.health import MOVED_AFTER
from monitor.core.identity import page_id
from monitor.core.reconcile import when
from monitor.core.url import page_key
from monitor.deliver.text import counted, readable
from monitor.report import lookup
from monitor.store import events as event_store
from monitor.store import sources as source_store
from monitor.store.database import Database
from monitor.store.sources import SiteRow, SourceRow

WIDE = 150
"""Columns of a terminal from which on the table of sources stands on one line each."""

_SPAN = re.compile(r"([0-9]{1,12}\.?[0-9]{0,6}|\.[0-9]{1,6})([smhdw])", re.ASCII)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def clean(text: object) -> Text:
    """Text from strangers as text: no markup, no control characters."""
    return Text("".join(c if c.isprintable() else " " for c in str(text)))


def console() -> Console:
    """Standard output for tables; wide where it is no terminal, so that nothing is cut."""
    return Console(width=None if sys.stdout.isatty() else 220, soft_wrap=False, highlight=False)


def span(seconds: float) -> str:
    """A span of time for people: ``45s``, ``12m``, ``3h``, ``2d``."""
    seconds = abs(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit == "m" and seconds >= 100):
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def parse_since(text: str, now: float | None = None, name: str = "--since") -> float:
    """Epoch seconds of `--since`, or another option called `name`: a span back from now (``6h``) or an RFC 3339 time.

    ValueError says what is wrong.
    """
    moment = time.time() if now is None else now
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    back = _SPAN.fullmatch(text)
    if back is not None:
        return moment - float(back[1]) * units[back[2]]
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} {text}: use a time such as 2026-12-01T09:00:00Z, or a span such as 6h") from None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def source_data(row: SourceRow, files: int, pages: int, now: float) -> dict[str, Any]:
    """One source as `status --json` prints it; instants as RFC 3339, spans in seconds, rates in entries a day."""
    rate = interval = delay = risk = None
    if row.schedule:
        decision = schedule.decide(schedule.loads(row.schedule), datetime.fromtimestamp(row.last_at or now, UTC))
        rate, delay, risk = round(decision.mean_rate, 3), round(decision.delay, 1), round(decision.risk, 6)
    if row.last_at is not None and row.next_at < source_store.NEVER:
        interval = round(row.next_at - row.last_at, 1)
    return {
        "site": row.site,
        "kind": row.kind,
        "url": row.url,
        "found": row.origin,
        "state": row.state,
        "moved_to": row.moved_to if row.moves >= MOVED_AFTER else None,
        "last_poll": when(row.last_at),
        "last_result": row.last_result,
        "last_status": row.last_status,
        "rate_per_day": rate,
        "interval_seconds": interval,
        "expected_delay_seconds": delay,
        "overflow_risk": risk,
        "next_poll": when(row.next_at) if row.next_at < source_store.NEVER else None,
        "reason": row.reason,
        "failures": row.failures,
        "failing_since": when(row.failing_since_at),
        "retry_after": when(row.retry_at),
        "last_error": row.last_error,
        "baseline": when(row.baseline_at),
        "files": files,
        "pages": pages,
    }


def status(url: str, *, as_json: bool) -> None:
    """Print the table of sources, and what of the deliveries needs attention."""
    now = time.time()
    with Database(url, exclusive=False, must_exist=True) as db:
        rows = db.call(source_store.all_sources)
        counts = db.call(lookup.counts_by_source)
        waiting = db.call(event_store.delivery_counts)
        off = db.call(event_store.disabled_endpoints)
        sites = db.call(source_store.sites)
    data = [source_data(row, *counts.get(row.id, (0, 0)), now) for row in rows]
    lost = [f"{name}: {_discovery(site, now)}" for name, site in sites.items() if site.discovery_error]
    if as_json:
        print_json(data)
        for line in lost:
            print(f"monitor: {clean(line)}", file=sys.stderr)  # noqa: T201
        return
    out = console()
    out.print(_narrow(rows, data, now) if out.width < WIDE else _wide(rows, data, now))
    for line in lost:
        out.print(clean(line))
    for name, reason in off:
        out.print(clean(f"{name} is disabled, nothing is sent to it: {reason}"))
    for endpoint, state, count, error in waiting:
        out.print(clean(f"{count} deliveries {state} for {endpoint}" + (f": {error}" if error else "")))


def _discovery(site: SiteRow, now: float) -> str:
    later = (site.discovery_next_at or now) - now
    again = f"in {span(later)}" if later > 0 else "at the next pass"
    return f"no sources found: {site.discovery_error} (looked for again {again}, or with `monitor run --once --all`)"


def _narrow(rows: Sequence[SourceRow], data: Sequence[dict[str, Any]], now: float) -> Group:
    """For a terminal of 80 columns: each source and its error on lines of their own."""
    parts: list[RenderableType] = []
    site = None
    for row, item in zip(rows, data, strict=True):
        if row.site != site:
            site = row.site
            parts.append(clean(site))
        facts = [
            row.kind.replace("_", " "),
            row.state,
            f"read {span(now - row.last_at)} ago" if row.last_at else "never read",
            row.last_result or "",
            counted(item["pages"], "page"),
            f"{item['rate_per_day']:.1f} a day" if item["rate_per_day"] is not None else "",
            f"every {span(item['interval_seconds'])}" if item["interval_seconds"] is not None else "",
            f"next {_next(row, now)}",
        ]
        parts.append(Padding.indent(clean(row.url), 2))
        parts.append(Padding.indent(clean(", ".join(filter(None, facts))), 4))
        if row.last_error:
            parts.append(Padding.indent(clean(f"error: {row.last_error}"), 4))
    return Group(*parts)


def _wide(rows: Sequence[SourceRow], data: Sequence[dict[str, Any]], now: float) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in (
        "SITE",
        "KIND",
        "SOURCE",
        "STATE",
        "LAST",
        "RESULT",
        "PAGES",
        "RATE/D",
        "EVERY",
        "DELAY",
        "RISK",
        "NEXT",
        "ERROR",
    ):
        table.add_column(
            name,
            overflow="fold" if name in ("SOURCE", "ERROR") else "ellipsis",
            no_wrap=name not in ("SOURCE", "ERROR"),
        )
    for row, item in zip(rows, data, strict=True):
        table.add_row(
            clean(row.site),
            row.kind.replace("_", " "),
            clean(row.url),
            row.state,
            f"{span(now - row.last_at)} ago" if row.last_at else "never",
            row.last_result or "",
            str(item["pages"]),
            f"{item['rate_per_day']:.1f}" if item["rate_per_day"] is not None else "",
            span(item["interval_seconds"]) if item["interval_seconds"] is not None else "",
            span(item["expected_delay_seconds"]) if item["expected_delay_seconds"] is not None else "",
            f"{item['overflow_risk']:.2g}" if item["overflow_risk"] is not None else "",
            _next(row, now),
            clean(row.last_error or ""),
        )
    return table


def _next(row: SourceRow, now: float) -> str:
    if row.next_at >= source_store.NEVER:
        return "by hand"
    return "now" if row.next_at <= now else f"in {span(row.next_at - now)}"


def explain(url: str, subject: str, *, as_json: bool) -> bool:
    """Print why a source is polled when it is, or all that is known of a page; False where nothing is."""
    now = time.time()
    with Database(url, exclusive=False, must_exist=True) as db:
        sites = {row.url: row for row in db.call(source_store.sites).values()}
        matching = [row for row in db.call(lambda c: source_store.all_sources(c, active=False)) if row.url == subject]
        counts = db.call(lookup.counts_by_source)
        key = page_key(subject)
        pages = db.call(lambda c: lookup.page(c, page_id(key), key))
    answers = [source_data(row, *counts.get(row.id, (0, 0)), now) | _why(row, now) for row in matching]
    if as_json:
        print_json({"sources": answers, "pages": pages})
        return bool(answers or pages)
    out = console()
    for answer in answers:
        _print_fields(out, {k: v for k, v in answer.items() if k != "bounds"})
        for bound in answer["bounds"]:
            out.print(clean(f"  {bound['kind']:<7} {span(bound['seconds']):>5}  {bound['name']}: {bound['text']}"))
    for page in pages:
        _print_fields(out, {k: v for k, v in page.items() if k not in ("listed", "events", "aliases", "alike")})
        for item in page["listed"]:
            state = "listed" if item["last"] is None else f"left {item['last']}"
            out.print(clean(f"  {item['kind']} {item['url']}: since {item['first']}, {state}"))
        for item in page["aliases"]:
            out.print(clean(f"  also {item['url']}  ({item['evidence']})"))
        for other in page["alike"]:
            out.print(clean(f"  much like {other}, a page of its own: nothing proves that they are one"))
        for item in page["events"]:
            out.print(clean("  " + readable(item)))
    site = sites.get(subject)
    if site is not None:
        text = "its sources are under `monitor status`"
        out.print(clean(f"{site.name}: {_discovery(site, now) if site.discovery_error else text}"))
    return bool(answers or pages or site)


def _why(row: SourceRow, now: float) -> dict[str, Any]:
    siblings = {"sibling_polls_with_news": f"{row.woken_news} of {row.woken} on news of another source"}
    if not row.schedule:
        return siblings | {"bounds": []}
    state = schedule.loads(row.schedule)
    decision = schedule.decide(state, datetime.fromtimestamp(row.last_at or now, UTC))
    return siblings | {
        "decided_by": decision.reason,
        "polls_with_news": f"{state.found - row.woken_news} of {state.polls - row.woken} scheduled",
        "bounds": [
            {"name": b.name, "kind": b.kind, "seconds": round(b.seconds, 1), "text": b.text} for b in decision.bounds
        ],
    }


def _print_fields(out: Console, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None:
            out.print(clean(f"{name.replace('_', ' '):<18} {value}"))
