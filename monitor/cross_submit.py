"""Cross-submission: a host whose own robots.txt names a site's sitemap lets it list its pages (sitemaps.org).

Rows on hosts that are not the site's make no events. Where such a host is of the same registrable domain, its
robots.txt is asked, once in a while; if it names the sitemap, the host counts as the site's from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from monitor.core.robots import parse_robots
from monitor.core.url import absolute, host_of, page_key, registrable
from monitor.runtime import Runtime
from monitor.store import sources as source_store
from monitor.store.sources import SourceRow

ASK_AGAIN = 7 * 86400.0
MOST_HOSTS = 20
"""Hosts of one site that are asked at a time."""


async def admit_hosts(run: Runtime, source: SourceRow, urls: Iterable[str]) -> None:
    """Ask the hosts of these off-host URLs whether they announce the tree at `source`, and remember what they said."""
    row, site = run.rows[source.site], run.sites[source.site]
    now = run.clock()
    asked: dict[str, list[float]] = json.loads(row.announced) if row.announced else {}
    home = registrable(host_of(site.url))
    origins: dict[str, str] = {}
    for url in urls:
        host = host_of(url)
        known = asked.get(host)
        if host and home is not None and registrable(host) == home and (not known or now - known[0] > ASK_AGAIN):
            origins.setdefault(host, url)
    told = False
    for host, url in list(origins.items())[:MOST_HOSTS]:
        address = absolute("/robots.txt", url)
        if address is None:
            continue
        reply = await run.fetcher.get(address, accept="text/plain, */*;q=0.5", policy=run.policy(site))
        if reply.status is None:
            continue
        robots = parse_robots(reply.body, status=reply.status, url=reply.final_url or address)
        asked[host] = [now, float(page_key(source.url) in {page_key(named) for named in robots.sitemaps})]
        told = True
    if told:
        announced = json.dumps(asked)
        run.rows[source.site] = replace(row, announced=announced)
        await run.db.run(lambda c: source_store.set_site(c, row.id, announced=announced))
