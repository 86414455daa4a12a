"""Listings as stored: what each sitemap document lists, which documents list a page, what a listing was before.

A listing is kept as its compressed lines, beside the sorted ids of its pages in buckets of about a hundred, so that
one page can be looked up among millions by one query, and one that comes or goes rewrites a kilobyte.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from monitor.core.listing import ListingRead
from monitor.core.listing_pack import pack_bucket, unpack_bucket, unpack_ids, unpack_lines
from monitor.core.reconcile import KnownPage
from monitor.store.pages import SPEAKS, chunks, upsert
from monitor.store.schema import document, listed, listing, listing_change, source

BUCKET = 96
"""Ids in a bucket, on average, when a listing is written whole."""

MOST_BITS = 16
HISTORY = 90 * 86400.0
"""Seconds for which it can be told what a document listed."""

FEW = 300
"""Up to so many pages are looked up one by one; for more the listings of the site are read through."""


def text_of(connection: Connection, document_id: int) -> bytes | None:
    """The packed lines of a document; None where it was never read."""
    found: bytes | None = connection.scalar(select(listing.c.text).where(listing.c.document_id == document_id))
    return found


def write(connection: Connection, site_id: int, document_id: int, read: ListingRead, now: float) -> None:
    """Store what a read found, as far as it differs from what is stored."""
    if read.listing is None:
        return
    stored = connection.execute(select(listing.c.bits).where(listing.c.document_id == document_id)).first()
    bits = stored.bits if stored else 0
    if read.ids is not None:
        count = len(read.ids) // 8
        fitting = min(MOST_BITS, max(0, (count // BUCKET).bit_length()))
        if stored is None or not bits - 1 <= fitting <= bits + 1:
            bits = fitting
            _write_ids(connection, site_id, document_id, read.ids, bits, None)
        else:
            _write_ids(connection, site_id, document_id, read.ids, bits, {_bucket(n, bits) for n in read.moved_ids})
    values = {"document_id": document_id, "rows": read.listed, "bits": bits, "text": read.listing, "changed_at": now}
    upsert(connection, listing, ("document_id",), [values])
    if read.added or read.removed:
        changes = {"document_id": document_id, "at": now, "added": read.added, "removed": read.removed}
        upsert(connection, listing_change, ("document_id", "at"), [changes])
        connection.execute(
            delete(listing_change).where(
                listing_change.c.document_id == document_id, listing_change.c.at < now - HISTORY
            )
        )


def _bucket(number: int, bits: int) -> int:
    """The number of a bucket: unique over all sizes of buckets."""
    return (1 << bits) | (number >> (63 - bits))


def _write_ids(
    connection: Connection, site_id: int, document_id: int, packed: bytes, bits: int, touched: Collection[int] | None
) -> None:
    mine = delete(listed).where(listed.c.document_id == document_id)
    if touched is None:
        connection.execute(mine)
    else:
        for batch in chunks(touched):
            connection.execute(mine.where(listed.c.site_id == site_id, listed.c.bucket.in_(batch)))
    ids = unpack_ids(packed)
    rows = []
    for bucket in range(1 << bits, 2 << bits) if touched is None else touched:
        first = (bucket - (1 << bits)) << (63 - bits)
        low, high = bisect_left(ids, first), bisect_left(ids, first + (1 << (63 - bits)))
        if low < high:
            part = pack_bucket(packed[low * 8 : high * 8], bucket)
            rows.append({"site_id": site_id, "bucket": bucket, "document_id": document_id, "ids": part})
    if rows:
        connection.execute(insert(listed), rows)


def listing_documents(
    connection: Connection, site_id: int, ids: Collection[int], *, ever: bool = False
) -> dict[int, list[int]]:
    """Which documents list each of these pages now, by page id; pages that none lists are left out.

    Documents that no index lists any more do not speak, nor those of a source that is not read any more. `ever`: the
    latter count too, for what they listed is known, though it is not listed now.
    """
    found: dict[int, list[int]] = {}
    if not ids:
        return found
    query = (
        select(listed.c.document_id, listed.c.bucket, listed.c.ids)
        .select_from(listed.join(document).join(source))
        .where(listed.c.site_id == site_id, document.c.unlisted.is_(False))
    )
    if not ever:
        query = query.where(SPEAKS)
    if len(ids) > FEW:
        wanted = set(ids)
        for row in connection.execute(query):
            for number in wanted.intersection(unpack_bucket(row.ids, row.bucket)):
                found.setdefault(number, []).append(row.document_id)
        return found
    by_bucket: dict[int, list[int]] = {}
    for number in ids:
        for bits in range(MOST_BITS + 1):
            by_bucket.setdefault(_bucket(number, bits), []).append(number)
    rows = connection.execute
    for batch in chunks(by_bucket):
        for row in rows(query.where(listed.c.bucket.in_(batch))):
            packed = unpack_bucket(row.ids, row.bucket)
            for number in by_bucket[row.bucket]:
                place = bisect_left(packed, number)
                if place < len(packed) and packed[place] == number:
                    found.setdefault(number, []).append(row.document_id)
    return found


def silent_pages(connection: Connection, site_id: int, wanted: Mapping[int, tuple[str, str]]) -> dict[int, KnownPage]:
    """Those of the pages, (key, url) by id, that no row of their own but a listing of the site makes known."""
    where = listing_documents(connection, site_id, wanted, ever=True)
    if not where:
        return {}
    since: dict[int, float] = {}
    for batch in chunks({d for documents in where.values() for d in documents}):
        query = select(document.c.id, func.coalesce(document.c.baseline_at, document.c.read_at, 0.0))
        since.update((row[0], row[1]) for row in connection.execute(query.where(document.c.id.in_(batch))))
    return {
        number: KnownPage(
            number, *wanted[number], None, min(since[d] for d in documents), announced=False, stored=False
        )
        for number, documents in where.items()
    }


def rows_listed(connection: Connection, document_ids: Sequence[int]) -> int:
    """How many pages the documents list, counted once for each document."""
    total = 0
    for batch in chunks(document_ids):
        total += connection.scalar(select(func.sum(listing.c.rows)).where(listing.c.document_id.in_(batch))) or 0
    return total


def ids_of(connection: Connection, document_id: int) -> Iterable[int]:
    """The ids of the pages that a document lists."""
    query = select(listed.c.bucket, listed.c.ids).where(listed.c.document_id == document_id)
    for row in connection.execute(query).all():
        yield from unpack_bucket(row.ids, row.bucket)


def retire(connection: Connection, document_id: int, now: float) -> None:
    """The document lists nothing any more. Its history stays for its time."""
    text = text_of(connection, document_id)
    if text is None:
        return
    connection.execute(delete(listed).where(listed.c.document_id == document_id))
    connection.execute(delete(listing).where(listing.c.document_id == document_id))
    upsert(
        connection,
        listing_change,
        ("document_id", "at"),
        [{"document_id": document_id, "at": now, "added": b"", "removed": text}],
    )


def lines_at(connection: Connection, document_id: int, moment: float) -> set[str] | None:
    """The lines of a document at an instant; None where it was not read by then, or the history does not reach back.

    Walks back from the listing of now through what changed since.
    """
    known = select(document.c.baseline_at, document.c.read_at).where(document.c.id == document_id)
    row = connection.execute(known).one()
    since = row.baseline_at if row.baseline_at is not None else row.read_at
    if since is None or since > moment:
        return None
    lines = set(unpack_lines(text_of(connection, document_id)))
    changes = (
        select(listing_change)
        .where(listing_change.c.document_id == document_id, listing_change.c.at > moment)
        .order_by(listing_change.c.at.desc())
    )
    for change in connection.execute(changes).all():
        lines.difference_update(unpack_lines(change.added))
        lines.update(unpack_lines(change.removed))
    return lines


def kinds_listing(connection: Connection, site_id: int, page_id: int) -> list[str]:
    """The kinds of the sitemap documents that list a page now, those with the oldest baseline first."""
    documents = listing_documents(connection, site_id, [page_id]).get(page_id, [])
    query = select(document.c.kind).where(document.c.id.in_(documents)).order_by(document.c.baseline_at)
    return list(dict.fromkeys(connection.scalars(query)))


def documents_of_site(connection: Connection, site_id: int) -> list[Any]:
    """Every document of a site's sitemaps: its columns, `root` and `source_counts` of its source, `changed_at`."""
    query = (
        select(
            document,
            source.c.url.label("root"),
            source.c.counts.label("source_counts"),
            listing.c.changed_at,
        )
        .select_from(document.join(source).outerjoin(listing))
        .where(source.c.site_id == site_id, source.c.kind.in_(("sitemap", "news_sitemap")))
        .order_by(source.c.id, document.c.id)
    )
    return list(connection.execute(query).all())
