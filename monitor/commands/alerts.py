"""`monitor alerts test`: a sample event to each endpoint of the configuration, and what it answers."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.table import Table

from monitor.commands.daemon import fetch_policy
from monitor.commands.tables import clean, console, print_json
from monitor.config import Alert, Config, StdoutAlert
from monitor.deliver import endpoints
from monitor.deliver.sinks import Receipt
from monitor.fetch import Fetcher
from monitor.model import Event, format_instant
from monitor.store.events import Pending, new_id


@dataclass(frozen=True, slots=True)
class Trial:
    """How a sample went: `ok`, what the endpoint answered or why it failed, and the seconds it took."""

    endpoint: str
    ok: bool
    answer: str
    seconds: float


def sample(site: str, now: float) -> Pending:
    """An event that is told apart from real ones by its `test` field and its address, which leads nowhere."""
    moment = datetime.fromtimestamp(now, UTC)
    url = "https://www.example.com/news/test-of-this-alert"
    data = {
        "site": site,
        "url": url,
        "observed_url": url,
        "found_in": {"kind": "feed", "url": "https://www.example.com/feed.xml"},
        "entry": {
            "id": "urn:example:test",
            "title": "A test of this alert",
            "published": format_instant(moment),
            "updated": None,
            "authors": ["monitor"],
            "tags": ["Test"],
            "summary": None,
        },
        "delay_seconds": 0.0,
        "late": False,
        "test": True,
    }
    event = Event(new_id(now), "url.new", site, url, moment, data)
    body = json.dumps(event.envelope(), ensure_ascii=False)
    return Pending(0, "", site, 0, now, event.id, event.type, now, body)


def send_samples(config: Config, *, as_json: bool, only: str | None) -> int:
    """Send the sample and show each answer; returns the exit code: 1 where one failed.

    Rules, quiet hours and limits are passed over, the database is not touched. Raises LookupError where no alert has
    the name `only`.
    """
    chosen = [alert for alert in config.alerts if only in (None, alert.name)]
    if only is not None and not chosen:
        known = ", ".join(repr(alert.name) for alert in config.alerts) or "none"
        raise LookupError(f"no alert is named {only!r}; known are {known}")
    trials = asyncio.run(_try_all(config, chosen, as_json=as_json))
    if as_json:
        print_json(
            [{"endpoint": t.endpoint, "ok": t.ok, "answer": t.answer, "seconds": round(t.seconds, 3)} for t in trials]
        )
    else:
        table = Table(box=None, pad_edge=False)
        for name in ("ENDPOINT", "RESULT", "ANSWER"):
            table.add_column(name, overflow="fold")
        for trial in trials:
            table.add_row(*map(clean, [trial.endpoint, "ok" if trial.ok else "failed", trial.answer]))
        console().print(table)
    bad = [trial for trial in trials if not trial.ok]
    for trial in bad:
        print(f"monitor: {trial.endpoint}: {trial.answer}", file=sys.stderr)  # noqa: T201
    if not trials:
        print("monitor: the configuration has no alerts: events go to the log alone", file=sys.stderr)  # noqa: T201
    return 1 if bad else 0


async def _try_all(config: Config, alerts: list[Alert], *, as_json: bool) -> list[Trial]:
    async with Fetcher(fetch_policy(config)) as fetcher:
        return list(await asyncio.gather(*(_try(config, alert, fetcher, as_json=as_json) for alert in alerts)))


async def _try(config: Config, alert: Alert, fetcher: Fetcher, *, as_json: bool) -> Trial:
    began, now = time.perf_counter(), time.time()
    # A JSON document is all that goes to standard output; the line that would have is its answer.
    shown = io.StringIO() if as_json and isinstance(alert, StdoutAlert) else None
    try:
        sink = endpoints.build_one(alert, fetcher, fetcher.policy, shown)
        receipt = await sink.send([sample(config.sites[0].name, now)], now)
    except ValueError as error:
        receipt = Receipt("failed", str(error))
    ok = receipt.outcome == "delivered"
    answer = (receipt.answer if ok else receipt.error) or ""
    if isinstance(alert, StdoutAlert) and ok:
        answer = shown.getvalue().rstrip("\n") if shown is not None else "the line above"
    return Trial(alert.name, ok, answer, time.perf_counter() - began)
