"""What waits in the outbox, as an operator sees it: listed, tried again, dropped, or sent once more from the log."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, true, update

from monitor.model import Event
from monitor.store.events import Route, recipients
from monitor.store.schema import delivery, endpoint, event

State = Literal["pending", "parked"]
CHUNK = 1000
"""Events that a replay holds in memory at a time."""


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint and what waits for it. Instants in epoch seconds; `oldest_at` is the time of the oldest event."""

    name: str
    state: Literal["ok", "disabled", "not configured"]
    reason: str | None
    pending: int
    parked: int
    oldest_at: float | None
    next_at: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One event that waits for one endpoint. `next_at` is None where no try is planned."""

    id: str
    type: str
    site: str
    subject: str
    time_at: float
    endpoint: str
    state: State
    attempts: int
    next_at: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which deliveries: those of these events, to this endpoint, in this state; what is left out limits nothing."""

    ids: tuple[str, ...] = ()
    endpoint: str | None = None
    state: State | None = None

    def where(self) -> ColumnElement[bool]:
        """The condition on `delivery`."""
        parts: list[ColumnElement[bool]] = [true()]
        if self.ids:
            parts.append(delivery.c.event_seq.in_(select(event.c.seq).where(event.c.id.in_(self.ids))))
        if self.endpoint is not None:
            parts.append(delivery.c.endpoint == self.endpoint)
        if self.state is not None:
            parts.append(delivery.c.state == self.state)
        return and_(*parts)


def endpoints(connection: Connection) -> list[EndpointRow]:
    """Every endpoint that is configured or that something waits for, by name."""
    known = {row.name: row for row in connection.execute(select(endpoint))}
    waiting: dict[str, dict[str, Any]] = {}
    query = (
        select(
            delivery.c.endpoint,
            delivery.c.state,
            func.count().label("count"),
            func.min(delivery.c.event_seq).label("oldest"),
            func.min(delivery.c.next_at).label("next_at"),
        )
        .group_by(delivery.c.endpoint, delivery.c.state)
        .order_by(delivery.c.endpoint)
    )
    for row in connection.execute(query):
        waiting.setdefault(row.endpoint, {})[row.state] = row
    found = []
    for name in sorted(known.keys() | waiting.keys()):
        mine = waiting.get(name, {})
        of = known.get(name)
        state: Literal["ok", "disabled", "not configured"] = "ok"
        if of is None or of.address is None:
            state = "not configured"
        if of is not None and of.disabled_at is not None:
            state = "disabled"
        oldest = min((row.oldest for row in mine.values()), default=None)
        pending = mine.get("pending")
        found.append(
            EndpointRow(
                name=name,
                state=state,
                reason=of.reason if of is not None else None,
                pending=pending.count if pending else 0,
                parked=mine["parked"].count if "parked" in mine else 0,
                oldest_at=oldest and connection.scalar(select(event.c.time_at).where(event.c.seq == oldest)),
                next_at=pending.next_at if pending and state == "ok" else None,
                error=_last_error(connection, name),
            )
        )
    return found


def _last_error(connection: Connection, name: str) -> str | None:
    """What the first delivery that failed says; the ones behind it were not tried."""
    query = select(delivery.c.error).where(delivery.c.endpoint == name, delivery.c.error.is_not(None))
    found: str | None = connection.scalar(query.order_by(delivery.c.event_seq).limit(1))
    return found


def waiting(connection: Connection, choice: Choice, limit: int | None) -> list[DeliveryRow]:
    """The deliveries of a choice, oldest event first, at most `limit` of them."""
    query = (
        select(
            event.c.id,
            event.c.type,
            event.c.site,
            event.c.body,
            event.c.time_at,
            delivery.c.endpoint,
            delivery.c.state,
            delivery.c.attempts,
            delivery.c.next_at,
            delivery.c.error,
        )
        .join(event, event.c.seq == delivery.c.event_seq)
        .where(choice.where())
        .order_by(delivery.c.event_seq, delivery.c.endpoint)
        .limit(limit)
    )
    return [
        DeliveryRow(
            id=row.id,
            type=row.type,
            site=row.site,
            subject=json.loads(row.body)["subject"],
            time_at=row.time_at,
            endpoint=row.endpoint,
            state=row.state,
            attempts=row.attempts,
            next_at=row.next_at if row.state == "pending" else None,
            error=row.error,
        )
        for row in connection.execute(query)
    ]


def unknown_ids(connection: Connection, ids: Collection[str]) -> list[str]:
    """Those of `ids` for which nothing waits, in the order given."""
    query = select(event.c.id).join(delivery, delivery.c.event_seq == event.c.seq).where(event.c.id.in_(ids))
    known = set(connection.scalars(query))
    return [one for one in ids if one not in known]


def endpoint_names(connection: Connection) -> list[str]:
    """Names of all endpoints that are configured or that something waits for."""
    configured = connection.scalars(select(endpoint.c.name)).all()
    return sorted({*configured, *connection.scalars(select(delivery.c.endpoint).distinct())})


def retry(connection: Connection, choice: Choice, now: float) -> int:
    """Try these again at once, with all their attempts before them; returns how many they are.

    An endpoint that is chosen whole, and not by single events, is enabled where it was disabled: that is what was
    asked for.
    """
    if not choice.ids:
        enable = update(endpoint).where(endpoint.c.disabled_at.is_not(None))
        if choice.endpoint is not None:
            enable = enable.where(endpoint.c.name == choice.endpoint)
        connection.execute(enable.values(disabled_at=None, reason=None))
    again = update(delivery).where(choice.where()).values(state="pending", attempts=0, next_at=now, error=None)
    return connection.execute(again).rowcount


def drop(connection: Connection, choice: Choice) -> int:
    """Take these out of the outbox; the events stay in the log. Returns how many they were."""
    return connection.execute(delete(delivery).where(choice.where())).rowcount


def replay(
    connection: Connection,
    routes: Sequence[Route],
    *,
    after: int,
    since: float,
    until: float,
    endpoint_name: str | None,
    now: float,
) -> tuple[int, int | None]:
    """Put up to `CHUNK` events of the log into the outbox again, to all endpoints that take them now, or to one.

    Events of `since` to `until` (epoch seconds), behind sequence number `after`. Returns how many deliveries were
    added or, where they were parked, taken up again; and the number to go on from, None at the end.
    """
    query = (
        select(event.c.seq, event.c.id, event.c.site, event.c.body)
        .where(event.c.seq > after, event.c.time_at >= since, event.c.time_at <= until)
        .order_by(event.c.seq)
        .limit(CHUNK)
    )
    off = set(connection.scalars(select(endpoint.c.name).where(endpoint.c.disabled_at.is_not(None))))
    found = connection.execute(query).all()
    wanted = {
        (row.seq, name): row.site
        for row in found
        for name in recipients(routes, _event(row.body, row.site))
        if name not in off and endpoint_name in (None, name)
    }
    if wanted:
        first, last = min(wanted)[0], max(wanted)[0]
        stored = select(delivery).where(delivery.c.event_seq >= first, delivery.c.event_seq <= last)
        for row in connection.execute(stored).all():
            if row.state == "pending":
                wanted.pop((row.event_seq, row.endpoint), None)
            elif (row.event_seq, row.endpoint) in wanted:
                mine = and_(delivery.c.event_seq == row.event_seq, delivery.c.endpoint == row.endpoint)
                connection.execute(delete(delivery).where(mine))
        rows = [
            {"event_seq": seq, "endpoint": name, "site": site, "state": "pending", "next_at": now}
            for (seq, name), site in wanted.items()
        ]
        if rows:
            connection.execute(insert(delivery), rows)
    return len(wanted), found[-1].seq if len(found) == CHUNK else None


def _event(body: str, site: str) -> Event:
    """An event of the log, as the rules of an endpoint see it."""
    envelope = json.loads(body)
    moment = datetime.fromisoformat(envelope["time"])
    return Event(envelope["id"], envelope["type"], site, envelope["subject"], moment, envelope["data"])
