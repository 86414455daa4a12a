"""`monitor import opml` and `monitor export opml`: subscriptions in and out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from monitor.config import Config, ConfigError, loads
from monitor.config_edit import NewSite, add_sites, write_config
from monitor.core.opml import NotOPML, Subscription, parse_opml, write_opml
from monitor.core.url import host_of, registrable
from monitor.deliver.text import counted
from monitor.store import sources as source_store
from monitor.store.database import Database, StoreError

LARGEST = 20_000_000
"""Bytes of a list at most."""


class CannotImport(Exception):  # noqa: N818 - it says what it is
    """The list cannot be taken in. `str(error)` is one sentence for the user."""


def read(file: Path, config: Path, *, site: str | None, quiet: bool) -> None:
    """Add the feeds of an OPML file to `config` as sites, those that are there left out.

    `site` puts all into one site of that name; else feeds of one registrable domain are one site. Raises CannotImport,
    ConfigError, OSError.
    """
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise CannotImport(f"{file}: is larger than {LARGEST // 1_000_000} MB")
    try:
        found = parse_opml(data)
    except NotOPML as error:
        raise CannotImport(f"{file}: {error}") from None
    text = config.read_bytes().decode() if config.exists() else ""
    known = _known(text, config)
    fresh = [one for one in found if one.url not in known]
    sites = _one_site(fresh, site) if site else _by_domain(fresh)
    if fresh:
        write_config(config, add_sites(text, sites, file=str(config), path=config, env=os.environ))
    if not quiet:
        left = f"; {len(found) - len(fresh)} were there already" if len(found) > len(fresh) else ""
        sys.stdout.write(f"{counted(len(fresh), 'feed')} in {counted(len(sites), 'site')} added to {config}{left}\n")


def _known(text: str, path: Path) -> set[str]:
    """The feeds that the configuration names. Variables that only a run needs may be missing."""
    if not text.strip():
        return set()
    env = _Any(os.environ)
    try:
        config = loads(text.removeprefix("\ufeff"), name=str(path), env=env, path=path)
    except ConfigError:
        return set()  # `add_sites` says what is wrong with it
    return {url for site in config.sites for url in site.feeds or ()}


class _Any(dict[str, str]):
    """The environment, in which every variable is set: a secret's value says nothing of the feeds."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "whsec_AAAA"


def _one_site(feeds: list[Subscription], name: str) -> list[NewSite]:
    if not feeds:
        return []
    return [NewSite(_home(feeds[0]), _lists(feeds), name=name)]


def _by_domain(feeds: list[Subscription]) -> list[NewSite]:
    groups: dict[str, list[Subscription]] = {}
    for feed in feeds:
        host = host_of(feed.home or feed.url)
        groups.setdefault(registrable(host) or host, []).append(feed)
    return [NewSite(_home(group[0]), _lists(group)) for group in groups.values()]


def _home(feed: Subscription) -> str:
    """The address of the site: where its list says that it is, without the page."""
    parts = urlsplit(feed.home or feed.url)
    return f"{parts.scheme}://{parts.netloc}/"


def _lists(feeds: list[Subscription]) -> dict[str, list[tuple[str, str]]]:
    # Whoever subscribes wants the feeds; sitemaps are looked for where `sitemaps` is taken out.
    return {"feeds": [(feed.url, feed.title or "") for feed in feeds], "sitemaps": []}


def write(config: Config, database: str, output: Path | None) -> None:
    """Print, or write to a file, the feeds of the configuration and those that discovery found. Raises OSError."""
    found: dict[str, dict[str, Subscription]] = {}
    for site in config.sites:
        found[site.name] = {url: Subscription(url, site.url) for url in site.feeds or ()}
    try:
        with Database(database, exclusive=False, must_exist=True) as db:
            rows = db.call(source_store.all_sources)
    except StoreError:
        rows = []  # nothing was watched so far
    for row in rows:
        if row.kind == "feed" and row.site in found:
            home = next(site.url for site in config.sites if site.name == row.site)
            found[row.site].setdefault(row.url, Subscription(row.url, home))
    data = write_opml([(name, list(feeds.values())) for name, feeds in found.items() if feeds], "monitor")
    if output is None:
        sys.stdout.write(data.decode())
    else:
        output.write_bytes(data)
