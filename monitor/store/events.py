"""The event log and the outbox."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from monitor.core.reconcile import Draft
from monitor.model import Event
from monitor.store.schema import delivery, endpoint, event

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id(seconds: float) -> str:
    """A ULID: 48 bits of milliseconds, 80 bits of chance, in Crockford's base 32; sorts by time."""
    value = int(seconds * 1000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True, slots=True)
class Route:
    """Where events go: an endpoint's name and what it takes. `takes` decides by type, site and the whole event.

    `stop`: what it takes goes to no later one.
    """

    endpoint: str
    takes: Any  # Callable[[Event], bool]; typed loosely, a dataclass field that is called would bind
    stop: bool = False


def recipients(routes: Sequence[Route], made: Event) -> list[str]:
    """The endpoints that an event goes to: all that take it, up to the first of them that stops it."""
    names = []
    for route in routes:
        if route.takes(made):
            names.append(route.endpoint)
            if route.stop:
                break
    return names


@dataclass(frozen=True, slots=True)
class Pending:
    """One delivery to make. `body` is the CloudEvents object as text."""

    seq: int
    endpoint: str
    site: str
    attempts: int
    next_at: float
    id: str
    type: str
    time_at: float
    body: str


def add_events(
    connection: Connection, site: str, drafts: Sequence[Draft], routes: Sequence[Route], now: float
) -> list[Event]:
    """Write events and their deliveries, in order; part of the transaction that holds the state behind them.

    A disabled endpoint gets none: the event log has what it misses.
    """
    off = {name for name, _reason in disabled_endpoints(connection)} if drafts and routes else set()
    events = []
    for draft in drafts:
        made = Event(
            id=new_id(now),
            type=draft.type,
            site=site,
            subject=draft.subject,
            time=datetime.fromtimestamp(now, UTC),
            data=draft.data,
        )
        body = json.dumps(made.envelope(), ensure_ascii=False)
        result = connection.execute(insert(event).values(id=made.id, type=made.type, site=site, time_at=now, body=body))
        seq = int((result.inserted_primary_key or [0])[0])
        rows = [
            {"event_seq": seq, "endpoint": name, "site": site, "state": "pending", "next_at": now}
            for name in recipients(routes, made)
            if name not in off
        ]
        if rows:
            connection.execute(insert(delivery), rows)
        events.append(made)
    return events


def pending_deliveries(
    connection: Connection, now: float, endpoints: Collection[str], per_endpoint: int
) -> list[Pending]:
    """The deliveries that may be tried now, oldest first, at most `per_endpoint` of each endpoint.

    Order holds per endpoint and site: behind a delivery that waits for its retry, later ones of its site wait too.
    """
    disabled = set(connection.scalars(select(endpoint.c.name).where(endpoint.c.disabled_at.is_not(None))))
    found: list[Pending] = []
    for name in endpoints:
        if name in disabled:
            continue
        waiting = (
            select(delivery.c.site)
            .where(delivery.c.endpoint == name, delivery.c.state == "pending", delivery.c.next_at > now)
            .scalar_subquery()
        )
        query = (
            select(
                delivery.c.event_seq,
                delivery.c.endpoint,
                delivery.c.site,
                delivery.c.attempts,
                delivery.c.next_at,
                event.c.id,
                event.c.type,
                event.c.time_at,
                event.c.body,
            )
            .join(event, event.c.seq == delivery.c.event_seq)
            .where(delivery.c.endpoint == name, delivery.c.state == "pending", delivery.c.site.not_in(waiting))
            .order_by(delivery.c.event_seq)
            .limit(per_endpoint)
        )
        found.extend(Pending(*row) for row in connection.execute(query))
    return found


def next_deliveries(connection: Connection, endpoints: Collection[str]) -> dict[str, float]:
    """When the next delivery to each of `endpoints` may be tried; those for which none waits are left out.

    A delivery that waits for its retry holds back its site's later ones: a site's turn comes when all may be tried.
    """
    disabled = select(endpoint.c.name).where(endpoint.c.disabled_at.is_not(None))
    lanes = (
        select(delivery.c.endpoint, func.max(delivery.c.next_at).label("at"))
        .where(
            delivery.c.state == "pending",
            delivery.c.endpoint.in_(list(endpoints)),
            delivery.c.endpoint.not_in(disabled),
        )
        .group_by(delivery.c.endpoint, delivery.c.site)
        .subquery()
    )
    rows = connection.execute(select(lanes.c.endpoint, func.min(lanes.c.at)).group_by(lanes.c.endpoint))
    return {row[0]: row[1] for row in rows}


_DELIVERED = delete(delivery).where(
    delivery.c.event_seq == bindparam("number"), delivery.c.endpoint == bindparam("name")
)


def memory_of(connection: Connection, name: str) -> str | None:
    """What an endpoint must remember over a restart."""
    found: str | None = connection.scalar(select(endpoint.c.memory).where(endpoint.c.name == name))
    return found


def delivered(connection: Connection, endpoint_name: str, seqs: Iterable[int], memory: str | None = None) -> None:
    """Those deliveries are done; `memory` is what the endpoint must remember, None for nothing."""
    if memory is not None:
        connection.execute(update(endpoint).where(endpoint.c.name == endpoint_name).values(memory=memory))
    rows = [{"number": seq, "name": endpoint_name} for seq in seqs]
    if rows:
        connection.execute(_DELIVERED, rows)


def postponed(connection: Connection, item: Pending, next_at: float, error: str) -> None:
    """The delivery failed and will be tried again at `next_at`."""
    _set(connection, item, attempts=item.attempts + 1, next_at=next_at, error=error)


def parked(connection: Connection, item: Pending, error: str) -> None:
    """The delivery failed for the last time; it waits for `monitor deliveries retry`."""
    _set(connection, item, state="parked", attempts=item.attempts + 1, error=error)


def _set(connection: Connection, item: Pending, **values: Any) -> None:
    connection.execute(
        update(delivery).where(delivery.c.event_seq == item.seq, delivery.c.endpoint == item.endpoint).values(**values)
    )


def sync_endpoints(connection: Connection, wanted: Sequence[tuple[str, str]]) -> None:
    """Make the stored endpoints those of the configuration, (name, hash of the address) each.

    One whose address changed, or that was away, starts anew: what disabled it is forgotten.
    """
    stored = {row.name: row.address for row in connection.execute(select(endpoint))}
    for name in stored.keys() - {name for name, _address in wanted}:
        connection.execute(delete(endpoint).where(endpoint.c.name == name))
    for name, address in wanted:
        if name not in stored:
            connection.execute(insert(endpoint).values(name=name, address=address))
        elif stored[name] != address:
            anew = {"address": address, "disabled_at": None, "reason": None}
            connection.execute(update(endpoint).where(endpoint.c.name == name).values(**anew))


def disabled_endpoints(connection: Connection) -> list[tuple[str, str | None]]:
    """(name, reason) of the endpoints to which nothing is sent any more."""
    query = select(endpoint.c.name, endpoint.c.reason).where(endpoint.c.disabled_at.is_not(None))
    return [(row.name, row.reason) for row in connection.execute(query.order_by(endpoint.c.name))]


def disable(connection: Connection, name: str, reason: str, now: float) -> None:
    """The endpoint said 410 Gone: nothing more is sent there; what waits for it is parked."""
    off = {"disabled_at": now, "reason": reason}
    if not connection.execute(update(endpoint).where(endpoint.c.name == name).values(**off)).rowcount:
        connection.execute(insert(endpoint).values(name=name, **off))
    connection.execute(
        update(delivery)
        .where(delivery.c.endpoint == name, delivery.c.state == "pending")
        .values(state="parked", error=reason)
    )


def delivery_counts(connection: Connection) -> list[tuple[str, str, int, str | None]]:
    """(endpoint, state, how many, an error of one of them), for `status`."""
    query = (
        select(delivery.c.endpoint, delivery.c.state, func.count(), func.max(delivery.c.error))
        .group_by(delivery.c.endpoint, delivery.c.state)
        .order_by(delivery.c.endpoint)
    )
    return [(row[0], row[1], row[2], row[3]) for row in connection.execute(query)]


def read_events(
    connection: Connection,
    *,
    after: int = 0,
    since: float | None = None,
    types: Sequence[str] = (),
    site: str | None = None,
    limit: int | None = None,
) -> list[tuple[int, dict[str, Any]]]:
    """(sequence number, CloudEvents object) of the log, oldest first. `types` are globs such as ``url.*``."""
    query = select(event.c.seq, event.c.body).where(event.c.seq > after).order_by(event.c.seq)
    if since is not None:
        query = query.where(event.c.time_at >= since)
    if site is not None:
        query = query.where(event.c.site == site)
    if types:
        query = query.where(
            or_(*(event.c.type.like(t.replace("_", r"\_").replace("*", "%"), escape="\\") for t in types))
        )
    if limit is not None:
        query = query.limit(limit)
    return [(row.seq, json.loads(row.body)) for row in connection.execute(query)]


def last_seq(connection: Connection) -> int:
    """The sequence number of the last event of the log; 0 for an empty one."""
    return connection.scalar(select(func.max(event.c.seq))) or 0


def count_by_type(connection: Connection, after: int = 0) -> dict[str, int]:
    """How many events of each type the log has behind sequence number `after`."""
    query = select(event.c.type, func.count()).where(event.c.seq > after).group_by(event.c.type)
    return {row[0]: row[1] for row in connection.execute(query)}
