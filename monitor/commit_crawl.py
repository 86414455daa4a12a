"""What a crawl or an imported list found, committed: listing, pages, events and promises in one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core.reconcile import Changes
from monitor.core.reconcile_crawl import compare_crawl, reconcile_crawl
from monitor.keep_promises import commit_events
from monitor.model import Row
from monitor.runtime import Runtime
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.sources import DocumentRow, SourceRow


def commit_crawl(
    connection: Connection,
    run: Runtime,
    site: Site,
    source: SourceRow,
    document: DocumentRow,
    rows: Sequence[Row] | str,
    state: Mapping[str, Any],
    now: float,
) -> Changes:
    """Write what a document of a crawl lists now. `state` is what to remember of it besides (sections, whole, cut)."""
    rules = run.rules(site)
    memory = replace(document.memory(), kind="crawl")
    read = compare_crawl(
        rows,
        previous=listing_store.text_of(connection, document.id),
        memory=memory,
        scope=rules.scope,
        quiet=document.baseline_at is None and not rules.alert_baseline,
        watched=page_store.missing_pages(connection, source.site_id),
    )
    about = [one.id for one in (*read.new, *read.gone)]
    pages = page_store.known_pages(connection, source.site_id, about)
    unknown = {one.id: (one.key, one.row.url) for one in read.new if one.row and one.id not in pages}
    changes = reconcile_crawl(
        read,
        document=memory,
        known=page_store.sightings(connection, document.id, about),
        pages=pages | listing_store.silent_pages(connection, source.site_id, unknown),
        rules=rules,
        most_new=source.most_new,
        now=datetime.fromtimestamp(now, UTC),
    )
    listing_store.write(connection, source.site_id, document.id, read, now)
    page_store.apply(connection, source.site_id, document.id, changes, document.read_at or now)
    commit_events(run, connection, source.site, source.site_id, changes.events, now)
    kept = {
        "scope": rules.scope.dump(),
        "rows": read.rows,
        "off_host": {"count": read.off_hosts, "sample": list(read.off_host)},
        **state,
    }
    values: dict[str, Any] = {"read_at": now, "complete_at": now, "full_at": now, "state": json.dumps(kept)}
    if changes.baseline:
        values["baseline_at"] = now
    source_store.set_document(connection, document.id, **values)
    return changes
