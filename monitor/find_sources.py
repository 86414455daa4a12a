"""Looking for the sources that the configuration does not name, and taking those found into the watch."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping

from sqlalchemy import Connection

from monitor.config import Site
from monitor.discover_site import Discovered, discover
from monitor.faults import sentence
from monitor.model import SourceKind
from monitor.runtime import Runtime
from monitor.store import sources as source_store
from monitor.store.database import StoreError
from monitor.store.due import hasten

log = logging.getLogger("monitor")

REDISCOVER = 86400.0
"""A site's robots.txt and home page are looked at again once a day: new sections bring new feeds."""

DISCOVER_RETRY = 900.0


def configured(site: Site) -> list[tuple[SourceKind, tuple[str, ...] | None]]:
    """What the configuration says of each kind of source; None: discover them."""
    return [("feed", site.feeds), ("sitemap", site.sitemaps), ("news_sitemap", site.news_sitemaps)]


def wants_discovery(site: Site) -> bool:
    """Whether the configuration leaves sources to be found."""
    return site.feeds is None or site.sitemaps is None


def hasten_listings(connection: Connection, sites: Mapping[str, Site]) -> None:
    """Let a shorter `every` or `news_every` count from the last read on, not only from the next."""
    for source in source_store.all_sources(connection):
        if source.kind in ("sitemap", "news_sitemap") and source.site in sites and not source.failures:
            settings = sites[source.site].source_settings(source.known_as).sitemap
            hasten(connection, source.id, settings.news_every if source.kind == "news_sitemap" else settings.every)


async def find_sources(run: Runtime, site: Site) -> str | None:
    """Look for the sources of a site and store them; returns one sentence if there is nothing to watch, or a fault.

    However it ends, the site's next discovery is put off: a fault of ours must not make us ask again and again.
    """
    row_id = run.rows[site.name].id
    try:
        found = await discover(site.url, fetcher=run.fetcher, policy=run.policy(site))
        now = run.clock()
        nothing = not _chosen(site, found) and not any(urls for _kind, urls in configured(site))
        error = None
        if nothing:
            error = "; ".join(found.problems) or "no feed and no sitemap found; name them under feeds: or sitemaps:"
        again = now + (DISCOVER_RETRY if nothing or found.problems else REDISCOVER)
        await run.db.run(lambda c: _store(c, run, site, found, now))
    except StoreError:
        raise
    except Exception as fault:
        log.exception("%s: discovery failed by a fault of the monitor's own", site.url)
        now = run.clock()
        error = sentence(fault)
        again = now + DISCOVER_RETRY * (1.0 + random.random())  # noqa: S311 - spreads retries, guards nothing

    def note(connection: Connection) -> None:
        source_store.set_site(connection, row_id, discovered_at=now, discovery_next_at=again, discovery_error=error)
        run.rows = source_store.sites(connection)

    await run.db.run(note)
    return error


def _store(connection: Connection, run: Runtime, site: Site, found: Discovered, now: float) -> None:
    """Store what was found, as far as the configuration that is in force by now still wants it."""
    current = run.sites.get(site.name)
    if current is None or current.url != site.url:
        return
    source_store.sync_sources(connection, run.rows[site.name].id, _chosen(current, found), now, origins="discovery")


def _chosen(site: Site, found: Discovered) -> list[tuple[SourceKind, str, str]]:
    """Which of the sources found are watched, of the kinds that the configuration leaves open: those that work, and
    those that the site itself names and that only could not be read just now."""
    chosen: list[tuple[SourceKind, str, str]] = []
    if site.feeds is None:
        chosen += [("feed", f.url, f.how) for f in found.feeds if f.ok or f.transient]
    if site.sitemaps is None:
        chosen += [("sitemap", f.url, f.how) for f in found.sitemaps if f.ok or f.transient]
    if site.news_sitemaps is None and site.sitemaps is None:
        chosen += [("news_sitemap", f.url, f.how) for f in found.news_sitemaps if f.ok or f.transient]
    return chosen
