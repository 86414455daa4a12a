"""What is stored of a site, as the coverage report wants it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from monitor.core.coverage import KINDS, OFF_HOST_SAMPLE, Batch, Coverage, Knowing, Known, Story, cover
from monitor.core.listing_pack import unpack_lines
from monitor.core.url import host_of
from monitor.model import SourceKind
from monitor.store.pages import SPEAKS
from monitor.store.schema import document, event, listing, listing_change, page, sighting, source
from monitor.store.sources import SiteRow

MOST_TWINS = 1000

GOOD = ("modified", "unchanged")


def site_coverage(
    connection: Connection, site: SiteRow, *, hosts: frozenset[str], since: float | None, now: float
) -> Coverage:
    """The coverage report of a site. `hosts` are those that the configuration names, as far as there is one.

    `since`: only pages first known from then on count.
    """
    sources = connection.execute(select(source).where(source.c.site_id == site.id, SPEAKS).order_by(source.c.id)).all()
    documents = connection.execute(
        select(document)
        .select_from(document.join(source))
        .where(source.c.site_id == site.id, SPEAKS, document.c.unlisted.is_(False))
        .order_by(document.c.id)
    ).all()
    states = {row.id: json.loads(row.state) if row.state else {} for row in documents}
    home = host_of(site.url)
    own = hosts | {home} | site.announced_hosts
    own |= {host for state in states.values() for host in (state.get("scope") or [[]])[0]}
    by_source = defaultdict(list)
    for row in documents:
        by_source[row.source_id].append(row)
    known = Known(
        site=site.name,
        home=home,
        hosts=frozenset(own),
        knowing=_knowing(sources, by_source, states),
        stories=_stories(connection, site.id),
        sighted=_sighted(connection, site.id),
        batches=_batches(connection, documents),
        shown=_shown(connection, site.id),
        former=_former(connection, site.id),
    )
    report = cover(known, since=since, until=now)
    report.since = since if since is not None else site.watching_since_at
    report.why = tuple(_why(sources, by_source, states)) + tuple(_gaps(connection, site.name, since))
    report.off_host += [
        {
            "kind": row.kind,
            "url": row.url,
            "count": states[row.id]["off_host"]["count"],
            "sample": states[row.id]["off_host"]["sample"][:OFF_HOST_SAMPLE],
        }
        for row in documents
        if states[row.id].get("off_host", {}).get("count")
    ]
    report.disallowed = [{"url": url} for state in states.values() for url in state.get("disallowed", ())]
    report.duplicates += _same_text(connection, site.id)
    return report


def _knowing(
    sources: Sequence[Any], documents: dict[int, list[Any]], states: dict[int, dict[str, Any]]
) -> list[Knowing]:
    """What each kind could know. A source that fails says nothing for now; the report is not complete then."""
    found: list[Knowing] = []
    for kind in KINDS:
        mine = [row for row in sources if row.kind == kind and row.baseline_at is not None]
        if kind == "crawl":
            told = (_crawl(row, document, states[document.id]) for row in mine for document in documents[row.id])
            found += dict.fromkeys(told)  # the parts of an import say the same
        elif mine:
            read = [row.last_at for row in mine if row.last_result in GOOD]
            # While all of them fail, what they knew last is still known.
            last = [one.complete_at for row in mine for one in documents[row.id] if one.complete_at is not None]
            until = min(read) if read else min(last, default=None)
            found.append(Knowing(kind, min(row.baseline_at for row in mine), until))
    return found


def _crawl(row: Any, one: Any, state: dict[str, Any]) -> Knowing:
    until = state.get("started_at", one.complete_at)
    return Knowing("crawl", row.baseline_at, until, tuple(state.get("sections", ())), state.get("whole", True))


def _why(sources: Sequence[Any], documents: dict[int, list[Any]], states: dict[int, dict[str, Any]]) -> Iterator[str]:
    """Why the report is not complete, a sentence each."""
    for row in sources:
        if row.last_at is None:
            yield f"{row.url} was not read yet"
        elif row.last_result not in GOOD:
            yield f"{row.url}: the last read was no whole one ({row.last_error or row.last_result})"
        elif row.baseline_at is None:
            yield f"{row.url} was never read as a whole"
        for one in documents[row.id]:
            if state := states[one.id].get("cut"):
                yield f"{one.url}: {state}"
    if not sources:
        yield "the site has no sources yet"


def _gaps(connection: Connection, site: str, since: float | None) -> Iterator[str]:
    query = select(event.c.body).where(event.c.site == site, event.c.type == "source.gap").order_by(event.c.seq)
    if since is not None:
        query = query.where(event.c.time_at >= since)
    lost: dict[str, list[int]] = {}
    for body in connection.scalars(query):
        data = json.loads(body)["data"]
        if data["estimated_lost"] or not data["recovered"]:  # else it was filled from elsewhere
            lost.setdefault(data["url"], []).append(data["estimated_lost"])
    for url, counts in lost.items():
        times = "once" if len(counts) == 1 else f"{len(counts)} times"
        yield f"{url}: its window overflowed {times} between two polls; about {sum(counts)} entries were not seen"


def _stories(connection: Connection, site_id: int) -> dict[int, Story]:
    columns = (page.c.id, page.c.url, page.c.first_at, page.c.published_at, page.c.announced, page.c.missing_reason)
    query = select(*columns).where(page.c.site_id == site_id).execution_options(yield_per=10_000)
    stories = {}
    for number, url, first_at, published, announced, reason in connection.execute(query):
        came = published if published is not None else first_at if announced else None
        stories[number] = Story(url, first_at, published, came, reason)
    return stories


def _sighted(connection: Connection, site_id: int) -> dict[SourceKind, set[int]]:
    """The pages with a story that a feed or news sitemap lists or once listed: leaving them by age is no lack."""
    found: dict[SourceKind, set[int]] = {}
    for kind in ("feed", "news_sitemap"):
        query = (
            select(sighting.c.page_id)
            .select_from(sighting.join(document).join(source))
            .where(source.c.site_id == site_id, SPEAKS, document.c.kind == kind)
        )
        found[kind] = set(connection.scalars(query))
    return found


def _former(connection: Connection, site_id: int) -> set[int]:
    query = (
        select(sighting.c.page_id)
        .select_from(sighting.join(document).join(source))
        .where(source.c.site_id == site_id, SPEAKS, document.c.kind == "sitemap", sighting.c.last_at.is_not(None))
    )
    return set(connection.scalars(query))


def _shown(connection: Connection, site_id: int) -> dict[SourceKind, dict[int, float]]:
    """When each kind first listed a page, if that was after its document's baseline."""
    query = (
        select(document.c.kind, sighting.c.page_id, func.min(sighting.c.first_at))
        .select_from(sighting.join(document).join(source))
        .where(source.c.site_id == site_id, SPEAKS, sighting.c.first_at > document.c.baseline_at)
        .group_by(document.c.kind, sighting.c.page_id)
    )
    found: dict[SourceKind, dict[int, float]] = {kind: {} for kind in KINDS}
    for kind, number, first_at in connection.execute(query):
        if kind in found:
            found[kind][number] = first_at
    return found


def _batches(connection: Connection, documents: Sequence[Any]) -> Callable[[SourceKind], Iterable[Batch]]:
    """What the listings hold, document by document; of a news sitemap also what has left it by age."""

    def batches(kind: SourceKind) -> Iterator[Batch]:
        for row in documents:
            if row.kind != kind or kind == "feed":
                continue
            text = connection.scalar(select(listing.c.text).where(listing.c.document_id == row.id))
            lines = unpack_lines(text)
            if kind == "news_sitemap":
                changes = select(listing_change.c.removed).where(listing_change.c.document_id == row.id)
                lines += [line for removed in connection.scalars(changes) for line in unpack_lines(removed)]
            first_at = row.baseline_at if row.baseline_at is not None else row.read_at or 0.0
            urls = [line.partition("\t")[0] for line in lines]
            dated = kind == "crawl" and not all(line.endswith("\t") for line in lines)
            yield Batch(urls, first_at, [_date(line) for line in lines] if dated else ())

    return batches


def _date(line: str) -> float | None:
    """The publication date that a crawl noted of a page."""
    text = line.partition("\t")[2].partition("\t")[0]
    return datetime.fromisoformat(text).timestamp() if text else None


def _same_text(connection: Connection, site_id: int) -> list[dict[str, Any]]:
    """Pages whose main text was found to be the same, word for word."""
    mine = (page.c.site_id == site_id, page.c.fingerprint.is_not(None), page.c.missing_at.is_(None))
    often = select(page.c.fingerprint).where(*mine).group_by(page.c.fingerprint).having(func.count() > 1)
    query = select(page.c.fingerprint, page.c.url).where(*mine, page.c.fingerprint.in_(often)).order_by(page.c.url)
    groups: dict[str, list[str]] = {}
    for fingerprint, url in connection.execute(query):
        groups.setdefault(fingerprint, []).append(url)
    return [{"urls": urls, "why": "have the same text"} for urls in list(groups.values())[:MOST_TWINS]]
