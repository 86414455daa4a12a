"""All that is known of one page."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, select

from monitor.core.reconcile import when
from monitor.store.schema import document, event, sighting, site, source
from monitor.store.schema import page as page_table


def page_rows(connection: Connection, number: int, key: str) -> list[Any]:
    """The stored pages of this key, one for each site that has it."""
    query = (
        select(page_table, site.c.name.label("site"))
        .join(site)
        .where(page_table.c.id == number, page_table.c.key == key)
    )
    return list(connection.execute(query).all())


def page(connection: Connection, number: int, key: str) -> list[dict[str, Any]]:
    """For each site that knows the page: its state, who listed it when, and its events."""
    found = []
    for row in page_rows(connection, number, key):
        listed = connection.execute(
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
            .where(sighting.c.page_id == number, source.c.site_id == row.site_id)
            .order_by(sighting.c.first_at)
        )
        bodies = connection.scalars(
            select(event.c.body)
            .where(event.c.site == row.site, event.c.body.contains(json.dumps(row.url)[1:-1], autoescape=True))
            .order_by(event.c.seq)
            .limit(200)
        )
        events = [envelope for envelope in map(json.loads, bodies) if envelope["subject"] == row.url]
        found.append(
            {
                "site": row.site,
                "url": row.url,
                "key": row.key,
                "title": row.title,
                "first_seen": when(row.first_at),
                "announced": row.announced,
                "changed": when(row.changed_at),
                "missing_since": when(row.missing_at),
                "missing_reason": row.missing_reason,
                "asked": when(row.checked_at),
                "listed": [
                    {
                        "kind": item.kind,
                        "url": item.url,
                        "observed_url": item.observed or row.url,
                        "first": when(item.first_at),
                        "last": when(item.last_at),
                        "lastmod": item.lastmod,
                        "title": item.title,
                    }
                    for item in listed
                ],
                "events": events,
            }
        )
    return found
