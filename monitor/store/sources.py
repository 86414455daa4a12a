"""Sites, sources and documents: what is watched, and when it is due."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from monitor.core.health import MOVED_AFTER, Health
from monitor.core.http import Validators
from monitor.core.reconcile import DocumentMemory
from monitor.model import SourceKind
from monitor.store.kinds import change_kind, stays
from monitor.store.schema import document, site, source

INDEX = "index "
"""The origin of a news sitemap that stands behind an index is this and the address of the tree's root."""


NEVER = 32503680000.0
"""The year 3000: when a source that is filled by hand is polled next."""


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A site as stored. Instants in seconds since the epoch."""

    id: int
    name: str
    url: str
    watching_since_at: float | None
    discovered_at: float | None
    discovery_next_at: float | None
    discovery_error: str | None
    announced: str | None = None

    @property
    def announced_hosts(self) -> frozenset[str]:
        """Further hosts whose robots.txt names a sitemap of the site (`cross_submit`)."""
        asked: dict[str, list[float]] = json.loads(self.announced) if self.announced else {}
        return frozenset(host for host, (_at, yes) in asked.items() if yes)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source as stored, with its site's name. Instants in seconds since the epoch."""

    id: int
    site_id: int
    site: str
    kind: SourceKind
    url: str
    origin: str
    active: bool
    state: str
    baseline_at: float | None
    next_at: float
    retry_at: float | None
    last_at: float | None
    last_result: str | None
    last_error: str | None
    last_status: int | None
    failures: int
    failing_since_at: float | None
    schedule: str | None
    reason: str | None
    counts: str | None
    most_new: int
    passes: int
    moves: int
    moved_to: str | None
    stirred: str | None
    woken: int
    woken_news: int

    def health(self) -> Health:
        """What is remembered of its health."""
        return Health(self.state, self.failures, self.failing_since_at, self.moves, self.moved_to)

    @property
    def known_as(self) -> str:
        """The address under which the configuration may set something for it: its own, or that of its index."""
        return self.origin.removeprefix(INDEX) if self.origin.startswith(INDEX) else self.url


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document as stored."""

    id: int
    source_id: int
    url: str
    parent: str | None
    kind: str
    validators_url: str | None
    etag: str | None
    last_modified: str | None
    body_hash: str | None
    read_at: float | None
    complete_at: float | None
    full_at: float | None
    baseline_at: float | None
    quiet: bool
    partials: int
    unlisted: bool
    absent: int
    watched: float
    changes: float
    turn: int | None
    index_lastmod: str | None
    read_lastmod: str | None
    pending: int
    counts: str | None
    suspect: int | None
    error: str | None
    state: str | None
    marks: bytes | None

    def validators(self) -> Validators | None:
        """What to send for a conditional request; None for a full read."""
        if self.validators_url is None or self.unlisted or self.suspect is not None:
            return None
        return Validators(self.validators_url, self.etag, self.last_modified)

    def memory(self) -> DocumentMemory:
        """The reconciler's view of the document."""
        return DocumentMemory(
            url=self.url,
            kind=self.kind,
            read_at=self.read_at,
            baseline_at=self.baseline_at,
            quiet=self.quiet,
            partials=self.partials,
            pending=self.pending,
            counts=tuple(json.loads(self.counts)) if self.counts else (),
            suspect=self.suspect,
            state=json.loads(self.state) if self.state else {},
        )


COLUMNS = [c for c in source.c if c.name in SourceRow.__dataclass_fields__]


_DOCUMENT = [document.c[name] for name in DocumentRow.__dataclass_fields__]


def source_row(row: Any) -> SourceRow:
    """A row of `COLUMNS` and the site's name."""
    return SourceRow(**row._mapping)


def sync_sites(connection: Connection, wanted: Iterable[tuple[str, str]], now: float) -> None:
    """Make the stored sites those of the configuration, (name, url) each.

    A site that left keeps its history, its sources are laid to rest. A site whose URL changed, or that comes back, is
    discovered anew.
    """
    names = []
    for name, url in wanted:
        names.append(name)
        row = connection.execute(select(site).where(site.c.name == name)).first()
        if row is None:
            connection.execute(insert(site).values(name=name, url=url, discovery_next_at=now))
        elif row.url != url:
            connection.execute(update(site).where(site.c.id == row.id).values(url=url, discovery_next_at=now))
    gone = select(site.c.id).where(site.c.name.not_in(names))
    connection.execute(update(source).where(source.c.site_id.in_(gone)).values(active=False))
    connection.execute(update(site).where(site.c.id.in_(gone)).values(discovery_next_at=None))


def sites(connection: Connection) -> dict[str, SiteRow]:
    """All stored sites by name."""
    return {row.name: SiteRow(**row._mapping) for row in connection.execute(select(site))}


def set_site(connection: Connection, site_id: int, **values: Any) -> None:
    """Write columns of a site."""
    connection.execute(update(site).where(site.c.id == site_id).values(**values))


def sync_sources(
    connection: Connection, site_id: int, wanted: Sequence[tuple[SourceKind, str, str]], now: float, *, origins: str
) -> list[str]:
    """Add the (kind, url, origin) not yet stored and wake those asleep; of an address named twice the first counts.

    `origins` tells who speaks. ``config`` makes the sources it names its own, of the kind it names, gives one that
    comes back a new try even if it is gone for good, and lays to rest those of its own that it names no more. Others,
    such as ``discovery``, wake nothing that is gone and lay none to rest. Returns the URLs laid to rest.
    """
    stored = {row.url: row for row in connection.execute(select(source).where(source.c.site_id == site_id)).all()}
    config = origins == "config"
    named: dict[str, tuple[SourceKind, str]] = {}
    for kind, url, origin in wanted:
        named.setdefault(url, (kind, origin))
    for url, (kind, origin) in named.items():
        row = stored.get(url)
        old = _moved_there(stored.values(), url, kind) if row is None else None
        if old is not None and not config:
            continue  # it is watched, under its former address
        if old is not None and old.url not in named:
            _rename(connection, old.id, old.url, url)
            row = stored.pop(old.url)
        if row is None:
            connection.execute(
                insert(source).values(
                    site_id=site_id, kind=kind, url=url, origin=origin, active=True, state="new", next_at=now
                )
            )
            continue
        for_good = row.state in ("gone", "moved")
        wakes = not row.active and (config or not for_good)
        if wakes and for_good:
            set_source(connection, row.id, state="new", next_at=now, failures=0, failing_since_at=None)
        if wakes or (config and row.origin != "config"):
            set_source(connection, row.id, active=True, origin=origin)
        if (wakes or config) and not stays(row.kind, kind):
            change_kind(connection, row.id, row.kind, kind, now)
    if not config:
        return []
    rested = [row for url, row in stored.items() if row.origin == "config" and row.active and url not in named]
    for row in rested:
        set_source(connection, row.id, active=False)
    return [row.url for row in rested]


def _moved_there(rows: Iterable[Any], url: str, kind: str) -> Any:
    """The active source that has moved to `url`, if there is one."""
    for row in rows:
        if row.moved_to == url and row.moves >= MOVED_AFTER and row.active and stays(row.kind, kind):
            return row
    return None


def _rename(connection: Connection, source_id: int, old: str, url: str) -> None:
    """A source that has moved is known by its new address from now on, with all that is known of it."""
    set_source(connection, source_id, url=url, moves=0, moved_to=None)
    mine = (document.c.source_id == source_id) & document.c.parent.is_(None) & (document.c.url == old)
    connection.execute(update(document).where(mine).values(url=url))


def rest_discovered(connection: Connection, site_id: int, kinds: Sequence[str]) -> None:
    """Lay to rest the sources of `kinds` that discovery found: the configuration names its own now."""
    connection.execute(
        update(source)
        .where(source.c.site_id == site_id, source.c.kind.in_(kinds), source.c.origin != "config")
        .where(source.c.origin.not_like(f"{INDEX}%"))
        .values(active=False)
    )


def settle_indexed(connection: Connection, site_id: int) -> None:
    """What was found behind an index is watched as long as the index is."""
    rows = connection.execute(select(source).where(source.c.site_id == site_id)).all()
    watched = {row.url for row in rows if row.active}
    for row in rows:
        if row.origin.startswith(INDEX) and row.active != (row.origin.removeprefix(INDEX) in watched):
            set_source(connection, row.id, active=not row.active)


def all_sources(connection: Connection, *, active: bool = True) -> list[SourceRow]:
    """Every source with its site's name, in the order of site, kind and id."""
    query = select(*COLUMNS, site.c.name.label("site")).join(site).order_by(site.c.id, source.c.kind, source.c.id)
    if active:
        query = query.where(source.c.active)
    return [source_row(row) for row in connection.execute(query)]


def root_documents(connection: Connection, source_ids: Sequence[int]) -> dict[int, DocumentRow]:
    """The root document of each source that has one."""
    found: dict[int, DocumentRow] = {}
    for start in range(0, len(source_ids), 500):
        batch = source_ids[start : start + 500]
        query = select(*_DOCUMENT).where(document.c.source_id.in_(batch), document.c.parent.is_(None))
        for row in connection.execute(query):
            found.setdefault(row.source_id, DocumentRow(*row))
    return found


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """What the price of polls is reckoned from: a feed's schedule state, and when it is due."""

    id: int
    site: str
    url: str
    state: str
    next_at: float
    schedule: str


def schedules(connection: Connection, after: int, limit: int) -> list[ScheduleRow]:
    """Active feeds that were ever polled, in the order of their ids, from the one behind `after` on."""
    query = (
        select(source.c.id, site.c.name, source.c.url, source.c.state, source.c.next_at, source.c.schedule)
        .select_from(source.join(site))
        .where(source.c.active, source.c.kind == "feed", source.c.schedule.is_not(None), source.c.id > after)
        .order_by(source.c.id)
        .limit(limit)
    )
    return [ScheduleRow(*row) for row in connection.execute(query)]


def news_files(connection: Connection, site_id: int, limit: int) -> list[str]:
    """URLs of the files of a site's news sitemaps that are watched and were read, the ones read last first."""
    query = (
        select(document.c.url)
        .join(source)
        .where(source.c.site_id == site_id, source.c.active, source.c.state != "gone")
        .where(document.c.kind == "news_sitemap", document.c.unlisted.is_(False), document.c.read_at.is_not(None))
        .order_by(document.c.read_at.desc(), document.c.id)
        .limit(limit)
    )
    return list(connection.scalars(query))


SOURCE_SOONER = (
    update(source)
    .where(source.c.id == bindparam("source_id"), source.c.next_at > bindparam("next_at"))
    .values(next_at=bindparam("next_at"), reason=bindparam("reason"))
)
"""Brings a poll forward; one that was polled meanwhile and is due sooner stays as it is."""


def set_source(connection: Connection, source_id: int, **values: Any) -> None:
    """Write columns of a source."""
    connection.execute(update(source).where(source.c.id == source_id).values(**values))


def documents(connection: Connection, source_id: int) -> dict[str, DocumentRow]:
    """The documents of a source by URL."""
    rows = connection.execute(select(document).where(document.c.source_id == source_id))
    return {row.url: DocumentRow(**row._mapping) for row in rows}


def document_by_id(connection: Connection, document_id: int) -> DocumentRow:
    """One document."""
    return DocumentRow(**connection.execute(select(document).where(document.c.id == document_id)).one()._mapping)


def add_document(
    connection: Connection,
    source_id: int,
    url: str,
    kind: str,
    parent: str | None,
    *,
    quiet: bool,
    index_lastmod: str | None = None,
) -> DocumentRow:
    """Store a document that is not known yet and return it; one that is known is returned as it is."""
    found = connection.execute(select(document).where(document.c.source_id == source_id, document.c.url == url)).first()
    if found is not None:
        return DocumentRow(**found._mapping)
    result = connection.execute(
        insert(document).values(
            source_id=source_id, url=url, kind=kind, parent=parent, quiet=quiet, index_lastmod=index_lastmod
        )
    )
    return document_by_id(connection, int((result.inserted_primary_key or [0])[0]))


def set_document(connection: Connection, document_id: int, **values: Any) -> None:
    """Write columns of a document."""
    connection.execute(update(document).where(document.c.id == document_id).values(**values))


def roots(connection: Connection, site_id: int) -> set[str]:
    """URLs of the active sources of a site: an index leaves these children to their own source."""
    return set(connection.scalars(select(source.c.url).where(source.c.site_id == site_id, source.c.active)))


def children(connection: Connection, source_id: int, parent: str) -> list[str]:
    """URLs of the documents that an index listed when it was last read."""
    return list(
        connection.scalars(
            select(document.c.url)
            .where(document.c.source_id == source_id, document.c.parent == parent, document.c.unlisted.is_(False))
            .order_by(document.c.id)
        )
    )


SOURCE_POLLED = (
    update(source)
    .where(source.c.id == bindparam("source_id"))
    .values(
        {
            name: bindparam(name)
            for name in (
                "state",
                "next_at",
                "retry_at",
                "last_at",
                "last_result",
                "last_error",
                "last_status",
                "failures",
                "failing_since_at",
                "schedule",
                "reason",
                "moves",
                "moved_to",
            )
        }
    )
)
"""What every poll writes of its source; many go as one `executemany`."""

DOCUMENT_CONFIRMED = (
    update(document)
    .where(document.c.id == bindparam("document_id"))
    .values(
        {
            name: bindparam(name)
            for name in (
                "validators_url",
                "etag",
                "last_modified",
                "read_at",
                "complete_at",
                "full_at",
                "error",
                "watched",
                "turn",
                "read_lastmod",
            )
        }
    )
)
"""What a read that confirmed a document unchanged writes of it."""
