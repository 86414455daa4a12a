"""What the trees of a site lack: pages that no file lists any more, files that no index does."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, select, update

from monitor.core.absences import Absence
from monitor.core.identity import page_id
from monitor.core.listing_pack import parse_line, unpack_lines
from monitor.core.reconcile import Changes, KnownPage, KnownRow
from monitor.core.url import page_key
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store.schema import document
from monitor.store.sources import DocumentRow, SourceRow


def find_absences(connection: Connection, source: SourceRow, confirm: int) -> list[Absence]:
    """Pages that a tree has lacked `confirm` times and no sitemap lists, with all else that ever listed them.

    Those that another file lists only moved; such as have no story are forgotten.
    """
    lacking = page_store.lacking(connection, source.site_id, source.id, confirm)
    where = listing_store.listing_documents(connection, source.site_id, {one.page.id for one in lacking})
    kinds: dict[int, str] = {}
    for batch in page_store.chunks({d for documents in where.values() for d in documents}):
        rows = connection.execute(select(document.c.id, document.c.kind).where(document.c.id.in_(batch)))
        kinds.update((row.id, row.kind) for row in rows)
    listing = {number: {kinds[d] for d in documents} for number, documents in where.items()}
    moved = {one.page.id for one in lacking if "sitemap" in listing.get(one.page.id, ())}
    page_store.forget_moved(connection, source.site_id, moved)
    found = []
    for one in lacking:
        if one.page.id in moved:
            continue
        others = page_store.other_sightings(connection, source.site_id, one.page.id, one.document_url)
        others += [(kind, True, 0) for kind in sorted(listing.get(one.page.id, ()))]
        found.append(Absence(one.page, one.kind, one.document_url, one.last_at, one.absent, tuple(others)))
    return found


def retire_unlisted(
    connection: Connection,
    source: SourceRow,
    documents: Iterable[DocumentRow],
    visited: Collection[int],
    confirm: int,
    now: float,
) -> None:
    """After a complete read of a tree: files that it led to no more speak no longer, and retire after `confirm` reads.

    What a retired sitemap listed, and no other file does, has been lacking in as many reads.
    """
    for one in documents:
        if one.id in visited:
            continue
        absent = one.absent + 1 if one.unlisted else 1
        values = {"unlisted": True, "absent": absent, "validators_url": None, "etag": None, "last_modified": None}
        connection.execute(update(document).where(document.c.id == one.id).values(**values, body_hash=None))
        if absent < confirm:
            continue
        if one.kind == "sitemap":
            _drop_pages(connection, source, one, confirm)
        listing_store.retire(connection, one.id, now)


def _drop_pages(connection: Connection, source: SourceRow, one: DocumentRow, confirm: int) -> None:
    """Give the pages of a file that retires a row of their own, where no other file lists them.

    The tree's absences are counted next: these then stand at `confirm`.
    """
    text = listing_store.text_of(connection, one.id)
    if text is None:
        return
    told = {page_id(page_key(line.url)): line for line in map(parse_line, unpack_lines(text))}
    for batch in page_store.chunks(told, 10_000):
        elsewhere = listing_store.listing_documents(connection, source.site_id, batch)
        lost = [number for number in batch if number not in elsewhere]
        known = page_store.known_pages(connection, source.site_id, lost)
        seen = page_store.sightings(connection, one.id, lost)
        first_at = one.baseline_at or one.read_at or 0.0
        changes = Changes()
        for number in lost:
            line = told[number]
            page = known.get(number)
            if page is None:
                page = KnownPage(number, page_key(line.url), line.url, line.title, first_at, announced=False)
                changes.pages[number] = page
            row = seen.get(number) or KnownRow(number, None, first_at, line.lastmod, line.title)
            changes.rows.append(
                KnownRow(number, row.url, row.first_at, row.lastmod, row.title, one.read_at, confirm - 1, row.title_at)
            )
        page_store.apply(connection, source.site_id, one.id, changes, one.read_at or 0.0)
