"""What other documents have of the entries that a feed's gap swallowed: archives, further pages, news sitemaps."""

from __future__ import annotations

from dataclasses import replace

from monitor.config import Site
from monitor.core.decode import decode
from monitor.core.http import ACCEPT_FEED, verdict
from monitor.core.reconcile import DocumentMemory, Gap
from monitor.core.reconcile_feed import place_entries
from monitor.core.reconcile_gap import Filled, next_page, rows_within, within_gap
from monitor.core.reconcile_shown import Placed
from monitor.core.reconcile_window import PassedBy
from monitor.fetch import FetchPolicy
from monitor.model import Feed, NotAFeed, NotASitemap, Sitemap
from monitor.parse_pool import ParseCrash
from monitor.runtime import Runtime
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.sources import DocumentRow, SourceRow

PAGES = 10
"""Archives or further pages of a feed that are read for one gap."""

SITEMAPS = 5
"""Files of news sitemaps that are."""


async def fill_gap(run: Runtime, site: Site, source: SourceRow, document: DocumentRow, feed: Feed, gap: Gap) -> Filled:
    """Look for the entries that came and went since the last read of `feed`. Never raises for what servers do.

    Archives and pages first, which have the feed's own entries, until one reaches back to what was known; where none
    does, the news sitemaps of the site. What cannot be read ends the search of its kind.
    """
    policy = run.policy(site, source.known_as)
    entries, closed = await _older_pages(run, document, feed, gap, policy)
    rows: list[tuple[str, Placed]] = []
    if not closed:
        files = await run.db.run(lambda c: source_store.news_files(c, source.site_id, SITEMAPS))
        for url in files:
            sitemap = await _sitemap(run, url, policy)
            if sitemap is not None:
                rows += [(url, placed) for placed in rows_within(sitemap, gap)]
    return Filled(tuple(entries), tuple(rows), closed)


async def _older_pages(
    run: Runtime, document: DocumentRow, feed: Feed, gap: Gap, policy: FetchPolicy
) -> tuple[list[Placed], bool]:
    memory: DocumentMemory = document.memory()
    passed_by = PassedBy.of(memory)
    window, found, here, asked = set(feed.ids), dict[str, Placed](), feed, {feed.url}
    for number in range(1, PAGES + 1):
        url = next_page(feed.url, here, number)
        if url is None or url in asked:
            break
        asked.add(url)
        page = await _page(run, url, policy)
        if page is None:
            break
        ids = page.ids
        stored = await run.db.run(lambda c, ids=ids: page_store.entry_ids(c, document.id, ids))  # type: ignore[misc]
        known = stored | {entry_id for entry_id in ids if passed_by.has(entry_id)}
        swallowed, closed = within_gap(page, gap, known, window)
        placed, _shared = place_entries(replace(page, url=feed.url), memory.state)
        fresh = {item.entry.id: item for item in placed if item.entry.id in swallowed and item.entry.id not in found}
        found |= fresh
        if closed:
            return list(found.values()), True
        if not fresh and window.issuperset(ids):
            break  # the same page again: its address is not understood
        here = page
    return list(found.values()), False


async def _page(run: Runtime, url: str, policy: FetchPolicy) -> Feed | None:
    reply = await run.fetcher.get(url, accept=ACCEPT_FEED, policy=policy)
    if verdict(reply) != "modified":
        return None
    try:
        kind = reply.headers.get("content-type")
        return (await run.pool.feed(decode(reply.body).data, reply.final_url or url, kind))[0]
    except (NotAFeed, ParseCrash):
        return None


async def _sitemap(run: Runtime, url: str, policy: FetchPolicy) -> Sitemap | None:
    reply = await run.fetcher.get(url, policy=policy)
    if verdict(reply) != "modified":
        return None
    try:
        return await run.pool.sitemap(decode(reply.body).data, reply.final_url or url)
    except (NotASitemap, ParseCrash):
        return None
