"""What the sources of a site have shown of one another, and the polls that news brings forward."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, func, insert, select, update

from monitor.core.siblings import Pair, Stirred
from monitor.store.schema import document, sibling, site, source
from monitor.store.sources import SourceRow

_SOURCE = [c for c in source.c if c.name in SourceRow.__dataclass_fields__]


def siblings(connection: Connection, site_id: int, source_id: int, limit: int) -> list[tuple[SourceRow, int, Pair]]:
    """The other sources of the site that answer, those due last first: each with the number of its files, and what
    news in `source_id` has shown of it."""
    files = select(func.count()).where(document.c.source_id == source.c.id, document.c.unlisted.is_(False))
    query = (
        select(*_SOURCE, site.c.name.label("site"), files.scalar_subquery(), *_PAIR)
        .join(site)
        .join(sibling, (sibling.c.source_b == source.c.id) & (sibling.c.source_a == source_id), isouter=True)
        .where(source.c.site_id == site_id, source.c.id != source_id, source.c.active, source.c.failures == 0)
        .where(source.c.state == "ok", source.c.kind != "crawl")
        .order_by(source.c.next_at.desc())
        .limit(limit)
    )
    width = len(_SOURCE)
    names = [c.name for c in _SOURCE]
    found = []
    for row in connection.execute(query):
        values = tuple(row)
        one = SourceRow(**dict(zip(names, values[:width], strict=True)), site=values[width])
        pair = Pair(*values[width + 2 :]) if values[width + 2] is not None else Pair()
        found.append((one, int(values[width + 1]), pair))
    return found


_PAIR = (sibling.c.trials, sibling.c.hits, sibling.c.chance, sibling.c.lag)


def stirred(connection: Connection, source_id: int) -> Stirred:
    """What a source is to look for, as stored now."""
    return Stirred.from_text(connection.scalar(select(source.c.stirred).where(source.c.id == source_id)))


def stir(connection: Connection, source_id: int, stirred: Stirred, at: float | None, reason: str) -> None:
    """Note what a source is to look for, and bring its next poll forward to `at` if that is sooner."""
    where = update(source).where(source.c.id == source_id)
    connection.execute(where.values(stirred=stirred.to_text()))
    if at is not None:
        connection.execute(where.where(source.c.next_at > at).values(next_at=at, reason=reason))


def pairs(connection: Connection, sources_a: Collection[int], source_b: int) -> dict[int, Pair]:
    """What news in each of `sources_a` has shown of `source_b`, where anything."""
    query = select(sibling.c.source_a, *_PAIR).where(
        sibling.c.source_b == source_b, sibling.c.source_a.in_(list(sources_a))
    )
    return {row[0]: Pair(*row[1:]) for row in connection.execute(query)}


def settle(
    connection: Connection, source_b: int, stirred: Stirred, changed: dict[int, Pair], *, woken: bool, found: bool
) -> None:
    """Store what a poll showed of its siblings, and count it if their news had brought it forward."""
    if changed:
        connection.execute(delete(sibling).where(sibling.c.source_b == source_b, sibling.c.source_a.in_(list(changed))))
        rows = [
            {"source_a": of, "source_b": source_b, "trials": p.trials, "hits": p.hits, "chance": p.chance, "lag": p.lag}
            for of, p in changed.items()
        ]
        connection.execute(insert(sibling), rows)
    values = {"stirred": stirred.to_text()}
    counts = {"woken": source.c.woken + 1, "woken_news": source.c.woken_news + int(found)} if woken else {}
    connection.execute(update(source).where(source.c.id == source_b).values(**values, **counts))
