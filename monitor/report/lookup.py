"""All that is known of one page, and how much of a source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from monitor.core.coverage_twins import twins_of
from monitor.core.identity import page_id
from monitor.core.listing_pack import Line, parse_line, unpack_lines
from monitor.core.reconcile import when
from monitor.core.url import page_key
from monitor.store import listings as listing_store
from monitor.store.schema import document, event, listing, sighting, site, source
from monitor.store.schema import page as page_table


def page(connection: Connection, number: int, key: str) -> list[dict[str, Any]]:
    """For each site that knows the page: its state, who listed it when, and its events.

    A page without a story has no state of its own: it is a line of a listing.
    """
    found = []
    for one in connection.execute(select(site).order_by(site.c.id)).all():
        row = connection.execute(
            select(page_table).where(page_table.c.site_id == one.id, page_table.c.id == number, page_table.c.key == key)
        ).first()
        listed = _sightings(connection, one.id, number, row.url) if row else []
        listed += _lines(connection, one.id, number, key, {item["url"] for item in listed if item["last"] is None})
        if row is None and not listed:
            continue
        url = row.url if row else listed[0]["observed_url"]
        events = _events(connection, one.name, url)
        found.append(
            {
                "site": one.name,
                "url": url,
                "key": key,
                "title": row.title if row else listed[0]["title"],
                "first_seen": when(row.first_at) if row else listed[0]["first"],
                "announced": row.announced if row else False,
                "changed": when(row.changed_at) if row else None,
                "missing_since": when(row.missing_at) if row else None,
                "missing_reason": row.missing_reason if row else None,
                "published": when(row.published_at) if row else None,
                "asked": when(row.checked_at) if row else None,
                "listed": sorted(listed, key=lambda item: item["first"] or ""),
                "aliases": _aliases(url, listed, events),
                "alike": _alike(connection, one.id, key),
                "events": events,
            }
        )
    return found


def _aliases(url: str, listed: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The other addresses that were taken for this page, each with what says so."""
    found: dict[str, str] = {}
    for item in listed:
        if item["observed_url"] != url:
            found.setdefault(item["observed_url"], f"listed so by {item['kind']} {item['url']}: the same page key")
    for envelope in events:
        observed, page = envelope["data"].get("observed_url"), envelope["data"].get("page") or {}
        if observed and observed != url:
            found.setdefault(observed, f"listed so by {envelope['data']['found_in']['kind']}: the same page key")
        if page.get("final_url") and page["final_url"] != url:
            found.setdefault(page["final_url"], f"the page redirects there (seen {envelope['time']})")
    return [{"url": other, "evidence": evidence} for other, evidence in found.items()]


def _alike(connection: Connection, site_id: int, key: str) -> list[str]:
    """Known pages whose addresses are much like this one's. They stay apart: nothing proves that they are one."""
    wanted = {page_id(page_key(twin)): page_key(twin) for twin in twins_of(key)}
    rows = connection.execute(
        select(page_table.c.id, page_table.c.key).where(page_table.c.site_id == site_id, page_table.c.id.in_(wanted))
    )
    known = {row.id for row in rows if wanted[row.id] == row.key}
    known |= listing_store.listing_documents(connection, site_id, wanted).keys()
    return sorted(wanted[number] for number in known)


def _sightings(connection: Connection, site_id: int, number: int, url: str) -> list[dict[str, Any]]:
    rows = connection.execute(
        select(
            document.c.kind,
            document.c.url,
            sighting.c.url.label("observed"),
            sighting.c.first_at,
            sighting.c.last_at,
            sighting.c.lastmod,
            sighting.c.title,
        )
        .select_from(sighting.join(document).join(source))
        .where(sighting.c.page_id == number, source.c.site_id == site_id)
        .order_by(sighting.c.first_at)
    )
    return [
        {
            "kind": item.kind,
            "url": item.url,
            "observed_url": item.observed or url,
            "first": when(item.first_at),
            "last": when(item.last_at),
            "lastmod": item.lastmod,
            "title": item.title,
        }
        for item in rows
    ]


def _lines(connection: Connection, site_id: int, number: int, key: str, but: set[str]) -> list[dict[str, Any]]:
    """What listings say of the page, without those of the documents at `but`."""
    documents = listing_store.listing_documents(connection, site_id, [number]).get(number, [])
    found = []
    for row in connection.execute(select(document).where(document.c.id.in_(documents))).all():
        line = None if row.url in but else _line(unpack_lines(listing_store.text_of(connection, row.id)), key)
        if line is not None:
            found.append(
                {
                    "kind": row.kind,
                    "url": row.url,
                    "observed_url": line.url,
                    "first": when(row.baseline_at if row.baseline_at is not None else row.read_at),
                    "last": None,
                    "lastmod": line.lastmod,
                    "title": line.title,
                }
            )
    return found


def _line(lines: list[str], key: str) -> Line | None:
    start = f"{key}\t"
    plain = next((line for line in lines if line.startswith(start)), None)  # nearly all addresses are their own key
    line = plain or next((line for line in lines if page_key(line.partition("\t")[0]) == key), None)
    return parse_line(line) if line is not None else None


def _events(connection: Connection, name: str, url: str) -> list[dict[str, Any]]:
    bodies = connection.scalars(
        select(event.c.body)
        .where(event.c.site == name, event.c.body.contains(json.dumps(url)[1:-1], autoescape=True))
        .order_by(event.c.seq)
        .limit(200)
    )
    return [envelope for envelope in map(json.loads, bodies) if envelope["subject"] == url]


def counts_by_source(connection: Connection) -> Mapping[int, tuple[int, int]]:
    """(documents, pages listed now) of each source."""
    sighted = (
        select(sighting.c.document_id, func.count().label("rows"))
        .where(sighting.c.last_at.is_(None))
        .group_by(sighting.c.document_id)
        .subquery()
    )
    rows = connection.execute(
        select(
            document.c.source_id,
            func.count(document.c.id),
            func.coalesce(func.sum(func.coalesce(listing.c.rows, sighted.c.rows)), 0),
        )
        .select_from(
            document.outerjoin(listing, listing.c.document_id == document.c.id).outerjoin(
                sighted, sighted.c.document_id == document.c.id
            )
        )
        .group_by(document.c.source_id)
    )
    return {row[0]: (row[1], int(row[2])) for row in rows}
