"""`monitor check`, `discover` and `schema`: looking without changing anything."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from monitor import discover_site as discovery
from monitor.commands.daemon import fetch_policy
from monitor.commands.tables import clean, console, print_json
from monitor.config import Config, Settings, Site
from monitor.config_types import web_url
from monitor.core.decode import decode
from monitor.core.frontier import section_urls
from monitor.core.http import describe
from monitor.core.page import page_links
from monitor.core.robots import parse_robots
from monitor.core.url import absolute
from monitor.discover_site import Discovered, Found
from monitor.fetch import Fetcher, FetchPolicy


@dataclass(frozen=True, slots=True)
class Trial:
    """One source's trial read."""

    site: str
    found: Found


class NoAddress(Exception):  # noqa: N818 - it says what it is
    """What was given is no address of a site. `str(error)` is one sentence for the user."""


def discover_site(url: str, *, allow_private_networks: bool, as_json: bool) -> int:
    """Print what discovery finds; returns the exit code: 1 where nothing usable was found. Raises NoAddress."""
    try:
        web_url(url if "://" in url else f"https://{url}")
    except ValueError as error:
        raise NoAddress(str(error).format(value=repr(url), raw=url)) from None
    policy = FetchPolicy(user_agent=Settings().user_agent, allow_private_networks=allow_private_networks)
    result = asyncio.run(discovery.discover(url, policy=policy))
    if as_json:
        print_json(discovered_data(result))
    else:
        print_found([Trial("", found) for found in result.all()], with_site=False)
    for problem in result.problems:
        print(f"monitor: {problem}", file=sys.stderr)  # noqa: T201
    if any(found.ok for found in result.all()):
        return 0
    print(f"monitor: no feed and no sitemap found at {result.url}", file=sys.stderr)  # noqa: T201
    return 1


def discovered_data(result: Discovered) -> dict[str, Any]:
    """What `discover --json` prints."""
    names = ("url", "kind", "how", "size", "form", "title", "verdict")

    def plain(found: Found) -> dict[str, Any]:
        return {name: getattr(found, name) for name in names} | {"ok": found.ok}

    return {
        "url": result.url,
        "robots": result.robots_url,
        "feeds": [plain(f) for f in result.feeds],
        "news_sitemaps": [plain(f) for f in result.news_sitemaps],
        "sitemaps": [plain(f) for f in result.sitemaps],
        "problems": list(result.problems),
    }


def check(config: Config, *, as_json: bool) -> int:
    """Read each source of the configuration once; returns the exit code: 1 where one does not work."""
    trials = asyncio.run(_try_all(config))
    if as_json:
        print_json([{"site": t.site, "ok": t.found.ok} | asdict(t.found) for t in trials])
    else:
        print_found(trials, with_site=True)
    bad = [t for t in trials if not t.found.ok]
    for trial in bad:
        print(f"monitor: {trial.site}: {trial.found.url}: {trial.found.verdict}", file=sys.stderr)  # noqa: T201
    return 1 if bad else 0


async def _try_all(config: Config) -> list[Trial]:
    async with Fetcher(fetch_policy(config)) as fetcher:
        tried = await asyncio.gather(*(_try_site(fetcher, site) for site in config.sites))
    return [trial for trials in tried for trial in trials]


async def _try_site(fetcher: Fetcher, site: Site) -> list[Trial]:
    jobs = [
        discovery.try_feed(fetcher, _policy(site.source_settings(url)), url, "sites.yaml") for url in site.feeds or ()
    ]
    jobs += [
        discovery.try_sitemap(fetcher, _policy(site.source_settings(url)), url, "sites.yaml")
        for url in (*(site.sitemaps or ()), *(site.news_sitemaps or ()))
    ]
    if site.crawl is not None:
        jobs += [_try_section(fetcher, site, url) for url in section_urls(site.crawl.sections, site.url)]
    found = list(await asyncio.gather(*jobs))
    if site.feeds is None or site.sitemaps is None:
        result = await discovery.discover(site.url, fetcher=fetcher, policy=_policy(site.settings))
        more = (result.feeds if site.feeds is None else ()) + (
            result.news_sitemaps + result.sitemaps if site.sitemaps is None else ()
        )
        usable = [f for f in more if f.ok or not f.guessed]
        found += usable
        if not found:
            problem = "; ".join(result.problems) or "no feed and no sitemap found; name them under feeds: or sitemaps:"
            found.append(Found(site.url, "feed", "discovery", verdict=problem))
    return [Trial(site.name, f) for f in found]


async def _try_section(fetcher: Fetcher, site: Site, url: str) -> Found:
    """The start of a crawl: whether it can be read, and how many links it has."""
    policy = _policy(site.settings)
    address = absolute("/robots.txt", url) or url
    answer = await fetcher.get(address, policy=policy, accept="text/plain, */*;q=0.5")
    robots = parse_robots(answer.body, status=answer.status or 0, url=address)
    if not robots.allows(url, site.user_agent):
        return Found(url, "crawl", "sites.yaml", verdict="robots.txt does not allow it to be read")
    reply = await fetcher.get(url, policy=policy, accept="text/html, */*;q=0.5")
    if reply.status != 200:
        return Found(url, "crawl", "sites.yaml", verdict=describe(reply))
    content_type = reply.headers.get("content-type")
    links = await asyncio.to_thread(page_links, decode(reply.body).data, url=url, content_type=content_type)
    verdict = "ok" if links else "no link could be read there"
    return Found(url, "crawl", "sites.yaml", size=len(links), form="html", verdict=verdict)


def _policy(settings: Settings) -> FetchPolicy:
    return FetchPolicy(
        user_agent=settings.user_agent,
        allow_private_networks=settings.allow_private_networks,
        proxy=settings.proxy,
        per_host=settings.concurrency.per_host,
        host_delay=settings.concurrency.host_delay,
    )


def print_found(trials: list[Trial], *, with_site: bool) -> None:
    """A table of what was found or tried."""
    if not trials:
        return
    table = Table(box=None, pad_edge=False)
    for name in (["SITE"] if with_site else []) + ["KIND", "FORMAT", "SIZE", "URL", "FOUND BY", "VERDICT"]:
        table.add_column(name, overflow="fold")
    for trial in trials:
        found = trial.found
        cells = [clean(trial.site)] if with_site else []
        cells += [
            clean(found.kind.replace("_", " ")),
            clean(found.form or ""),
            clean(str(found.size)),
            clean(found.url),
            clean(found.how),
            clean(found.verdict),
        ]
        table.add_row(*cells)
    console().print(table)


def print_schema(what: str) -> None:
    """Print the JSON Schema of the configuration, of the events, or of both by name."""
    from monitor.config_schema import json_schema  # noqa: PLC0415
    from monitor.event_schema import event_schema  # noqa: PLC0415

    both = {"sites": json_schema(), "events": event_schema()}
    sys.stdout.write(json.dumps(both[what] if what else both, indent=2) + "\n")
