"""`monitor deliveries`: what waits for an endpoint; tried again, dropped, or sent once more."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.table import Table

from monitor.commands.tables import clean, console, print_json, span
from monitor.config import Config
from monitor.core.reconcile import when
from monitor.runtime import routes_of
from monitor.store import deliveries as delivery_store
from monitor.store.database import Database
from monitor.store.deliveries import Choice, DeliveryRow, EndpointRow


class CannotChooseError(LookupError):
    """What was chosen is not there. The message is a sentence for the user."""


def show(url: str, choice: Choice, *, limit: int | None, as_json: bool) -> None:
    """Print the endpoints, and what waits for them, at most `limit` rows. Raises CannotChooseError."""
    with Database(url, exclusive=False, must_exist=True) as db:
        _known(db, choice)
        endpoints = db.call(delivery_store.endpoints)
        rows = db.call(partial(delivery_store.waiting, choice=choice, limit=limit))
    if choice.endpoint is not None:
        endpoints = [one for one in endpoints if one.name == choice.endpoint]
    if as_json:
        print_json({"endpoints": [_endpoint(one) for one in endpoints], "deliveries": [_delivery(row) for row in rows]})
        return
    _print_tables(endpoints, rows, choice)


def _endpoint(one: EndpointRow) -> dict[str, Any]:
    fields = asdict(one)
    return fields | {"oldest_at": when(one.oldest_at), "next_at": when(one.next_at)}


def _delivery(row: DeliveryRow) -> dict[str, Any]:
    fields = asdict(row)
    return fields | {"time_at": when(row.time_at), "next_at": when(row.next_at)}


def _print_tables(endpoints: list[EndpointRow], rows: list[DeliveryRow], choice: Choice) -> None:
    now, out = time.time(), console()

    def until(at: float | None) -> str:
        return "" if at is None else "now" if at <= now else f"in {span(at - now)}"

    table = Table(box=None, pad_edge=False)
    for name in ("ENDPOINT", "STATE", "PENDING", "PARKED", "OLDEST", "NEXT", "ERROR"):
        table.add_column(name, overflow="fold", justify="right" if name in ("PENDING", "PARKED") else "left")
    for one in endpoints:
        oldest = f"{span(now - one.oldest_at)} ago" if one.oldest_at is not None else ""
        cells = [one.name, one.state, one.pending, one.parked, oldest, until(one.next_at), one.reason or one.error]
        table.add_row(*(clean("" if cell is None else cell) for cell in cells))
    out.print(table)
    if not rows:
        return
    out.print()
    table = Table(box=None, pad_edge=False)
    for name in ("ID", "TYPE", "SITE", "SUBJECT", "ENDPOINT", "STATE", "TRIES", "NEXT", "ERROR"):
        table.add_column(name, overflow="fold", no_wrap=name == "ID")
    for row in rows:
        cells = [row.id, row.type, row.site, row.subject, row.endpoint, row.state, row.attempts, until(row.next_at)]
        table.add_row(*map(clean, [*cells, row.error or ""]))
    out.print(table)
    total = sum(one.pending + one.parked for one in endpoints)
    if not choice.ids and choice.state is None and total > len(rows):
        out.print(clean(f"{total - len(rows):,} more; --limit shows them"))


def retry(url: str, choice: Choice) -> int:
    """Try deliveries again at once; returns the exit code. Raises CannotChooseError."""
    with Database(url, exclusive=False, must_exist=True, writing=True) as db:
        _known(db, choice)
        count = db.call(partial(delivery_store.retry, choice=choice, now=time.time()))
        off = {one.name: one for one in db.call(delivery_store.endpoints) if one.state == "disabled" and one.pending}
    _say(f"{_deliveries(count)} will be tried again")
    for name, one in off.items():
        _say(f"{name} is disabled: {one.reason}; `monitor deliveries retry --endpoint` enables it")
    return 1 if off and choice.ids else 0


def drop(url: str, choice: Choice) -> int:
    """Take deliveries out of the outbox; returns the exit code. Raises CannotChooseError."""
    with Database(url, exclusive=False, must_exist=True, writing=True) as db:
        _known(db, choice)
        count = db.call(partial(delivery_store.drop, choice=choice))
    _say(f"{_deliveries(count)} dropped; the events stay in `monitor events`")
    return 0


def replay(config: Config, url: str, *, since: float, until: float | None, endpoint: str | None) -> int:
    """Send events of the log once more, by the rules of now; returns the exit code. Raises CannotChooseError."""
    names = [alert.name for alert in config.alerts]
    if endpoint is not None and endpoint not in names:
        raise CannotChooseError(f"no alert is named {endpoint!r}; known are {', '.join(names) or 'none'}")
    now = time.time()
    total, after = 0, 0
    with Database(url, exclusive=False, must_exist=True, writing=True) as db:
        off = [one.name for one in db.call(delivery_store.endpoints) if one.state == "disabled"]
        going: int | None = after
        while going is not None:
            added, going = db.call(
                partial(
                    delivery_store.replay,
                    routes=routes_of(config),
                    after=going,
                    since=since,
                    until=now if until is None else until,
                    endpoint_name=endpoint,
                    now=now,
                )
            )
            total += added
    _say(f"{_deliveries(total)} will be sent again")
    left = [name for name in off if endpoint in (None, name) and name in names]
    for name in left:
        _say(f"{name} is disabled, nothing is sent to it; `monitor deliveries retry --endpoint` enables it")
    return 1 if left else 0


def _known(db: Database, choice: Choice) -> None:
    """Raise CannotChooseError where an id or the endpoint of a choice is not there."""
    if choice.endpoint is not None:
        names = db.call(delivery_store.endpoint_names)
        if choice.endpoint not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise CannotChooseError(f"no endpoint is named {choice.endpoint!r}; known are {known}")
    missing = db.call(lambda c: delivery_store.unknown_ids(c, choice.ids)) if choice.ids else []
    if missing:
        raise CannotChooseError(f"nothing waits for the event {missing[0]}; `monitor deliveries` lists what does")


def _deliveries(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count:,} deliveries"


def _say(text: str) -> None:
    print("".join(c if c.isprintable() else " " for c in text), file=sys.stderr)  # noqa: T201
