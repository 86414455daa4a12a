"""`monitor init`: from addresses to a `sites.yaml`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from monitor import discover_site as discovery
from monitor.commands.look import NoAddress, Trial, discovered_data, print_found
from monitor.commands.tables import print_json
from monitor.config import Settings
from monitor.config_edit import NewSite, add_sites, peek, writable, write_config
from monitor.config_types import web_url
from monitor.deliver.text import counted
from monitor.discover_site import Discovered, Found
from monitor.fetch import Fetcher, FetchPolicy

MOST = 50
"""Sources of a kind that are written out; what a page advertises beyond, say a feed for each author, is not."""


def init(urls: Sequence[str], path: Path, *, allow_private_networks: bool, as_json: bool) -> int:
    """Find the sources of each address, write them to `path`; returns the exit code: 1 where one has none.

    Raises NoAddress, ConfigError (the file there is no configuration, or names the site already), OSError.
    """
    wanted = list(dict.fromkeys(map(_address, urls)))
    text = _text(path)
    if text:  # what cannot be added to is told before anybody is asked anything
        add_sites(text, [NewSite(url) for url in wanted], file=str(path), path=path, env=os.environ)
    config = peek(text, path, os.environ) if text else None
    defaults = config.defaults if config else Settings()
    private = allow_private_networks and not defaults.allow_private_networks
    settings = replace(defaults, allow_private_networks=defaults.allow_private_networks or private)
    found = asyncio.run(_discover(wanted, settings))
    usable = [one for one in found if any(source.ok and writable(source.url) for source in one.all())]
    if usable:
        sites = [_site(one, private=private) for one in usable]
        text = _text(path)  # it may have been edited meanwhile
        write_config(path, add_sites(text, sites, file=str(path), path=path, env=os.environ))
    if as_json:
        print_json([discovered_data(one) | {"written": one in usable} for one in found])
    else:
        print_found([Trial(one.url, source) for one in found for source in one.all()], with_site=True)
    for one in found:
        for problem in one.problems:
            _say(problem)
        if one not in usable:
            _say(f"{one.url}: no feed and no sitemap that works was found; not written")
    if usable and not as_json:
        _next(path, len(usable), added=bool(text))
    return 0 if len(usable) == len(found) else 1


def _text(path: Path) -> str:
    return path.read_bytes().decode() if path.exists() else ""


def _address(url: str) -> str:
    try:
        return str(web_url(url if "://" in url else f"https://{url}"))
    except ValueError as error:
        raise NoAddress(str(error).format(value=repr(url), raw=url)) from None


async def _discover(urls: Sequence[str], settings: Settings) -> list[Discovered]:
    policy = FetchPolicy(
        user_agent=settings.user_agent,
        allow_private_networks=settings.allow_private_networks,
        proxy=settings.proxy,
        per_host=settings.concurrency.per_host,
        host_delay=settings.concurrency.host_delay,
    )
    async with Fetcher(policy) as fetcher:
        return list(await asyncio.gather(*(discovery.discover(url, fetcher=fetcher, policy=policy) for url in urls)))


def _site(found: Discovered, *, private: bool) -> NewSite:
    """What is written of a site: sources that work, with why; of others a word."""
    lists: dict[str, list[tuple[str, str]]] = {}
    notes = []
    kinds = (("feeds", found.feeds), ("sitemaps", found.sitemaps), ("news_sitemaps", found.news_sitemaps))
    for key, sources in kinds:
        good = [source for source in sources if source.ok or source.transient]
        working = {url: _why(source) for source in good if (url := writable(source.url)) is not None}
        if working:
            lists[key] = list(working.items())[:MOST]
        if len(working) > MOST:
            notes.append(f"{len(working) - MOST} more {key} were found; `monitor discover` shows them")
        bad = [source for source in sources if source not in good and not source.guessed]
        notes += [f"left out: {source.url} ({source.verdict})" for source in bad[:10]]
    for key in ("feeds", "sitemaps"):
        if key not in lists:
            notes.append(f"no {key} found; `{key}` left out looks for them again each day")
    return NewSite(found.url, lists, notes, private)


def _why(source: Found) -> str:
    if not source.ok:
        return f"{source.how}; could not be read just now"
    return f"{source.how}, {source.form}, {source.size:,} {'entries' if source.kind == 'feed' else 'rows'}"


def _next(path: Path, count: int, *, added: bool) -> None:
    option = "" if path == Path("sites.yaml") else f" -c {path}"
    done = f"{'Added' if added else 'Wrote'} {counted(count, 'site')} {'to' if added else 'as'} {path}"
    sys.stdout.write(
        f"\n{done}. Next:\n"
        f"  monitor check{option}   reads each source once and changes nothing\n"
        f"  monitor run{option}     watches; the first read of each source is a quiet baseline, then news is told\n"
    )


def _say(text: str) -> None:
    print(f"monitor: {text}", file=sys.stderr)  # noqa: T201
