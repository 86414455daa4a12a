"""A source that is to be read as another kind from now on."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, select, update

from monitor.model import SourceKind
from monitor.store import listings as listing_store
from monitor.store.schema import document, entry, sighting, source

_UNREAD: dict[str, Any] = {
    "validators_url": None,
    "etag": None,
    "last_modified": None,
    "body_hash": None,
    "full_at": None,
    "suspect": None,
    "error": None,
}
_NEVER_READ: dict[str, Any] = _UNREAD | {
    "read_at": None,
    "complete_at": None,
    "baseline_at": None,
    "quiet": True,
    "partials": 0,
    "watched": 0.0,
    "changes": 0.0,
    "turn": None,
    "pending": 0,
    "counts": None,
    "state": None,
}


def stays(stored: str, named: str) -> bool:
    """Whether a source stored as one kind need not change for being named as another: a news sitemap may be found, by
    its content, among the sitemaps."""
    return stored == named or (stored, named) == ("news_sitemap", "sitemap")


def change_kind(connection: Connection, source_id: int, before: str, kind: SourceKind, now: float) -> None:
    """Read a source as `kind` from now on, as a new try and at once.

    Between the two kinds of sitemaps what it lists stays known. A feed has entries where a sitemap has a listing: what
    was made of the one says nothing of the other, so its next read is a baseline again. The pages stay known.
    """
    fresh: dict[str, Any] = {
        "kind": kind,
        "state": "new",
        "next_at": now,
        "schedule": None,
        "reason": None,
        "passes": 0,
        "failures": 0,
        "failing_since_at": None,
        "last_error": None,
        "moves": 0,
        "moved_to": None,
    }
    mine = document.c.source_id == source_id
    if "feed" not in (before, kind):
        connection.execute(update(document).where(mine, document.c.kind != "index").values(kind=kind, **_UNREAD))
    else:
        fresh |= {"baseline_at": None, "counts": None, "most_new": 0}
        numbers = select(document.c.id).where(mine)
        for number in connection.scalars(numbers).all():
            listing_store.retire(connection, number, now)
        connection.execute(delete(sighting).where(sighting.c.document_id.in_(numbers)))
        connection.execute(delete(entry).where(entry.c.document_id.in_(numbers)))
        connection.execute(update(document).where(mine).values(**_NEVER_READ, unlisted=document.c.parent.is_not(None)))
        connection.execute(update(document).where(mine, document.c.parent.is_(None)).values(kind=kind))
    connection.execute(update(source).where(source.c.id == source_id).values(**fresh))
