"""`monitor status`, `explain` and `events`: what the database knows, printed."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitor import schedule
from monitor.core.identity import page_id
from monitor.core.reconcile import when
from monitor.core.url import page_key
from monitor.deliver.text import readable
from monitor.report import lookup
from monitor.store import events as event_store
from monitor.store import sources as source_store
from monitor.store.database import Database
from monitor.store.sources import SourceRow

PAGE = 1000
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
    if as_json:
        print_json(data)
        return
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
    out = console()
    out.print(table)
    for name, site in sites.items():
        if site.discovery_error:
            out.print(clean(f"{name}: {site.discovery_error}"))
    for name, reason in off:
        out.print(clean(f"{name} is disabled, nothing is sent to it: {reason}"))
    for endpoint, state, count, error in waiting:
        out.print(clean(f"{count} deliveries {state} for {endpoint}" + (f": {error}" if error else "")))


def _next(row: SourceRow, now: float) -> str:
    if row.next_at >= source_store.NEVER:
        return "by hand"
    return "now" if row.next_at <= now else f"in {span(row.next_at - now)}"


def explain(url: str, subject: str, *, as_json: bool) -> bool:
    """Print why a source is polled when it is, or all that is known of a page; False where nothing is."""
    now = time.time()
    with Database(url, exclusive=False, must_exist=True) as db:
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
    return bool(answers or pages)


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


def events(url: str, *, since: float | None, types: Sequence[str], site: str | None, follow: bool, form: str) -> None:
    """Print the event log, and go on with `follow` until interrupted or until nobody reads."""
    with Database(url, exclusive=False, must_exist=True) as db:
        after = 0
        try:
            while True:
                found = db.call(
                    partial(event_store.read_events, after=after, since=since, types=types, site=site, limit=PAGE)
                )
                for seq, envelope in found:
                    after = seq
                    line = readable(envelope) if form == "table" else json.dumps(envelope, ensure_ascii=False)
                    sys.stdout.write(line + "\n")
                sys.stdout.flush()
                if len(found) == PAGE:
                    continue
                if not follow:
                    return
                time.sleep(0.5)
        except BrokenPipeError:
            # The reader has what it wanted. Python would flush again at exit, and complain.
            sys.stdout = open("/dev/null", "w")  # noqa: SIM115, PTH123
        except KeyboardInterrupt:
            return
