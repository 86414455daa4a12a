"""Pages, sightings and entries: what the reconciler is given, and its intents written down."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Executable, Table, and_, bindparam, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from monitor.core.page_checks import PageMemory
from monitor.core.reconcile import Changes, Check, KnownEntry, KnownPage, KnownRow
from monitor.store.schema import document, entry, page, page_check, sighting, source

CHUNK = 500


def chunks(items: Iterable[Any], size: int = CHUNK) -> Iterator[list[Any]]:
    """Lists of at most `size` of `items`: databases bound the number of parameters."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def upsert(connection: Connection, table: Table, keys: Sequence[str], rows: list[dict[str, Any]]) -> None:
    """Insert rows or replace the columns given of those with the same `keys`."""
    if not rows:
        return
    connection.execute(_upsert(connection.dialect.name, table, tuple(keys), tuple(rows[0])), rows)


@cache
def _upsert(dialect: str, table: Table, keys: tuple[str, ...], columns: tuple[str, ...]) -> Executable:
    """The statement for such rows; making it costs more than running it."""
    statement = (sqlite if dialect == "sqlite" else postgresql).insert(table)
    replaced = {name: statement.excluded[name] for name in columns if name not in keys}
    made: Executable = statement.on_conflict_do_update(index_elements=list(keys), set_=replaced)
    return made


SPEAKS = and_(source.c.active, source.c.state != "gone")
"""Of a source: what its documents list counts. One that left the configuration or is gone is not read any more, so
that what it listed last would stand for ever. What was ever known of a page is another matter: that stays."""

_PAGE = [c for c in page.c if c.name in KnownPage.__dataclass_fields__]
_ENTRY = [c for c in entry.c if c.name in KnownEntry.__dataclass_fields__]
_ROW = [sighting.c[name] for name in KnownRow.__dataclass_fields__]  # in the order of the fields: rows are many


def known_pages(connection: Connection, site_id: int, ids: Collection[int]) -> dict[int, KnownPage]:
    """The stored pages among `ids`."""
    found = {}
    for batch in chunks(ids):
        query = select(*_PAGE).where(page.c.site_id == site_id, page.c.id.in_(batch))
        for row in connection.execute(query):
            found[row.id] = KnownPage(**row._mapping)
    return found


def known_entries(
    connection: Connection, document_id: int, shown: Collection[str], page_ids: Collection[int]
) -> dict[str, KnownEntry]:
    """Entries of a feed that matter to a read: those shown, those listed until now, those of the same pages."""
    mine = select(*_ENTRY).where(entry.c.document_id == document_id)
    found = {}
    for row in connection.execute(mine.where(or_(entry.c.listed, entry.c.absent > 0))):
        found[row.entry_id] = KnownEntry(**row._mapping)
    for batch in chunks(i for i in shown if i not in found):
        for row in connection.execute(mine.where(entry.c.entry_id.in_(batch))):
            found[row.entry_id] = KnownEntry(**row._mapping)
    for ids in chunks(page_ids):
        for row in connection.execute(mine.where(entry.c.page_id.in_(ids))):
            found.setdefault(row.entry_id, KnownEntry(**row._mapping))
    return found


def entry_ids(connection: Connection, document_id: int, ids: Collection[str]) -> set[str]:
    """Those of `ids` that a feed is known to have had."""
    found: set[str] = set()
    for batch in chunks(ids):
        query = select(entry.c.entry_id).where(entry.c.document_id == document_id, entry.c.entry_id.in_(batch))
        found.update(connection.scalars(query))
    return found


def pending_entries(connection: Connection, document_id: int) -> list[KnownEntry]:
    """Entries that were absent from within the window and are not yet confirmed to be gone."""
    query = select(*_ENTRY).where(entry.c.document_id == document_id, entry.c.absent > 0)
    return [KnownEntry(**row._mapping) for row in connection.execute(query)]


def sightings(connection: Connection, document_id: int, ids: Collection[int]) -> dict[int, KnownRow]:
    """The sightings of these pages by a document, by page id. Pages without a story have none."""
    found: dict[int, KnownRow] = {}
    for batch in chunks(ids):
        query = select(*_ROW).where(sighting.c.document_id == document_id, sighting.c.page_id.in_(batch))
        found.update((row.page_id, KnownRow(*row)) for row in connection.execute(query))
    return found


def missing_pages(connection: Connection, site_id: int) -> frozenset[int]:
    """Ids of the pages of a site that are missing now."""
    query = select(page.c.id).where(page.c.site_id == site_id, page.c.missing_at.is_not(None))
    return frozenset(connection.scalars(query))


def apply(connection: Connection, site_id: int, document_id: int, changes: Changes, seen_at: float) -> None:
    """Write the intents of one read, all but events (see `store.events`).

    `seen_at` is when a feed last listed what it now dropped.
    """
    upsert(
        connection,
        page,
        ("site_id", "id"),
        [
            {
                "site_id": site_id,
                "id": p.id,
                "key": p.key,
                "url": p.url,
                "title": p.title,
                "first_at": p.first_at,
                "published_at": p.published_at,
                "announced": p.announced,
                "changed_at": p.changed_at,
                "changed": p.changed,
                "missing_at": p.missing_at,
                "missing_reason": p.missing_reason,
            }
            for p in changes.pages.values()
        ],
    )
    if changes.dropped:
        connection.execute(
            update(sighting)
            .where(sighting.c.document_id == document_id, sighting.c.page_id == bindparam("page"))
            .values(last_at=seen_at, absent=0),
            [{"page": number} for number in changes.dropped],
        )
    upsert(connection, sighting, ("document_id", "page_id"), [_sighting(document_id, row) for row in changes.rows])
    for batch in chunks(changes.forgotten):
        connection.execute(delete(entry).where(entry.c.document_id == document_id, entry.c.entry_id.in_(batch)))
    upsert(connection, entry, ("document_id", "entry_id"), [_entry(document_id, e) for e in changes.entries])


def add_checks(connection: Connection, site_id: int, document_id: int, checks: Sequence[Check], now: float) -> None:
    """Note the pages that must be asked; a question already open is replaced by the newer one, and stays put off."""
    upsert(
        connection,
        page_check,
        ("site_id", "page_id", "why"),
        [
            {
                "site_id": site_id,
                "page_id": check.page_id,
                "why": check.why,
                "document_id": document_id,
                "detail": json.dumps(check.detail),
                "asked_at": now,
            }
            for check in {(c.page_id, c.why): c for c in checks}.values()
        ],
    )


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """A page that must be asked. `tries` are the askings without an answer, `put_off_at` is when the first was."""

    document_id: int
    check: Check
    tries: int
    put_off_at: float | None


def open_checks(connection: Connection, site_id: int, now: float) -> list[OpenCheck]:
    """Every page of a site that must be asked by now, oldest question first."""
    query = select(page_check).where(page_check.c.site_id == site_id, page_check.c.due_at <= now)
    return [
        OpenCheck(row.document_id, Check(row.page_id, row.why, json.loads(row.detail)), row.tries, row.put_off_at)
        for row in connection.execute(query.order_by(page_check.c.asked_at))
    ]


def sites_with_checks(connection: Connection, now: float) -> list[int]:
    """Ids of the sites that have pages to ask by now."""
    return list(connection.scalars(select(page_check.c.site_id).where(page_check.c.due_at <= now).distinct()))


def put_off_check(connection: Connection, site_id: int, one: OpenCheck, due_at: float, tries: int, now: float) -> None:
    """Leave a check open until `due_at`."""
    connection.execute(
        update(page_check)
        .where(
            page_check.c.site_id == site_id,
            page_check.c.page_id == one.check.page_id,
            page_check.c.why == one.check.why,
        )
        .values(due_at=due_at, tries=tries, put_off_at=now if one.put_off_at is None else one.put_off_at)
    )


def close_check(connection: Connection, site_id: int, check: Check) -> None:
    """The page was asked."""
    connection.execute(
        delete(page_check).where(
            page_check.c.site_id == site_id, page_check.c.page_id == check.page_id, page_check.c.why == check.why
        )
    )


def page_memory(connection: Connection, site_id: int, page_id: int) -> PageMemory:
    """What earlier reads of a page left."""
    row = connection.execute(
        select(page.c.etag, page.c.last_modified, page.c.url, page.c.fingerprint).where(
            page.c.site_id == site_id, page.c.id == page_id
        )
    ).one()
    return PageMemory(row.etag, row.last_modified, row.url, row.fingerprint)


def set_page(connection: Connection, site_id: int, page_id: int, **values: Any) -> None:
    """Write columns of a page."""
    connection.execute(update(page).where(page.c.site_id == site_id, page.c.id == page_id).values(**values))


def listed_by(connection: Connection, site_id: int, page_id: int) -> set[str]:
    """The kinds of the documents of the site that list the page now, as far as sightings tell."""
    query = (
        select(document.c.kind)
        .select_from(sighting.join(document).join(source))
        .where(sighting.c.page_id == page_id, source.c.site_id == site_id, sighting.c.last_at.is_(None), SPEAKS)
    )
    return set(connection.scalars(query))


def has_pending(connection: Connection, source_id: int, confirm: int) -> bool:
    """Whether pages left a sitemap of the source and are not yet confirmed to be gone."""
    query = (
        select(sighting.c.page_id)
        .join(document)
        .where(document.c.source_id == source_id, document.c.kind == "sitemap")
        .where(sighting.c.last_at.is_not(None), sighting.c.absent < confirm)
        .limit(1)
    )
    return connection.scalar(query) is not None


def count_absences(connection: Connection, source_id: int, limit: int) -> None:
    """One more complete read of the tree that lacked these rows; counted up to one beyond `limit`."""
    mine = select(document.c.id).where(document.c.source_id == source_id)
    connection.execute(
        update(sighting)
        .where(sighting.c.document_id.in_(mine), sighting.c.last_at.is_not(None), sighting.c.absent <= limit)
        .values(absent=sighting.c.absent + 1)
    )


@dataclass(frozen=True, slots=True)
class Lacking:
    """A page that a document of a tree listed once and lacked in `absent` complete reads since."""

    page: KnownPage
    kind: str
    document_url: str
    last_at: float
    absent: int


def lacking(connection: Connection, site_id: int, source_id: int, confirm: int) -> list[Lacking]:
    """The pages, not missing yet, that a sitemap document of the source has lacked `confirm` times."""
    query = (
        select(*_PAGE, document.c.kind, document.c.url.label("document_url"), sighting.c.last_at, sighting.c.absent)
        .select_from(sighting.join(document).join(source).join(page, page.c.id == sighting.c.page_id))
        .where(
            document.c.source_id == source_id,
            SPEAKS,
            document.c.kind == "sitemap",
            page.c.site_id == site_id,
            page.c.missing_at.is_(None),
            sighting.c.last_at.is_not(None),
            sighting.c.absent >= confirm,
        )
    )
    return [
        Lacking(KnownPage(**{c.name: row._mapping[c.name] for c in _PAGE}), *row[len(_PAGE) :])
        for row in connection.execute(query).all()
    ]


def other_sightings(connection: Connection, site_id: int, page_id: int, but: str) -> list[tuple[str, bool, int]]:
    """(kind, listed, absent) of each document of the site, but the one at `but`, that ever listed a page."""
    query = (
        select(document.c.kind, sighting.c.last_at.is_(None), sighting.c.absent)
        .select_from(sighting.join(document).join(source))
        .where(sighting.c.page_id == page_id, source.c.site_id == site_id, document.c.url != but, SPEAKS)
    )
    return [(kind, bool(listed), absent) for kind, listed, absent in connection.execute(query)]


def forget_moved(connection: Connection, site_id: int, ids: Collection[int]) -> None:
    """These pages only moved to another file: those without a story become lines of its listing again."""
    files = select(document.c.id).join(source).where(source.c.site_id == site_id, source.c.kind != "feed")
    told = (
        select(page.c.id)
        .where(page.c.site_id == site_id, page.c.announced.is_(False))
        .where(page.c.changed_at.is_(None), page.c.missing_at.is_(None), page.c.checked_at.is_(None))
    )
    for batch in chunks(ids):
        silent = list(connection.scalars(told.where(page.c.id.in_(batch))))
        connection.execute(delete(sighting).where(sighting.c.page_id.in_(silent), sighting.c.document_id.in_(files)))
        still = (
            select(sighting.c.page_id)
            .select_from(sighting.join(document).join(source))
            .where(source.c.site_id == site_id)
        )
        kept = set(connection.scalars(still.where(sighting.c.page_id.in_(silent))))
        asked = select(page_check.c.page_id).where(page_check.c.site_id == site_id, page_check.c.page_id.in_(silent))
        kept |= set(connection.scalars(asked))
        gone = [number for number in silent if number not in kept]
        connection.execute(delete(page).where(page.c.site_id == site_id, page.c.id.in_(gone)))


def _sighting(document_id: int, row: KnownRow) -> dict[str, Any]:
    return {
        "document_id": document_id,
        "page_id": row.page_id,
        "url": row.url,
        "first_at": row.first_at,
        "last_at": row.last_at,
        "absent": row.absent,
        "lastmod": row.lastmod,
        "title": row.title,
        "title_at": row.title_at,
    }


def _entry(document_id: int, known: KnownEntry) -> dict[str, Any]:
    return {
        "document_id": document_id,
        "entry_id": known.entry_id,
        "page_id": known.page_id,
        "page_key": known.page_key,
        "title": known.title,
        "content_hash": known.content_hash,
        "previous_hash": known.previous_hash,
        "flips": known.flips,
        "published_at": known.published_at,
        "updated_at": known.updated_at,
        "first_at": known.first_at,
        "listed": known.listed,
        "absent": known.absent,
    }
