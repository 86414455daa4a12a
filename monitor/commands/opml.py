"""`monitor import opml` and `monitor export opml`: subscriptions in and out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from monitor.config import Config
from monitor.config_edit import (
    NewSite,
    add_sites,
    addresses_from_environment,
    peek,
    place,
    writable,
    write_config,
)
from monitor.core.opml import NotOPML, Subscription, parse_opml, write_opml
from monitor.core.url import absolute, host_of, registrable
from monitor.deliver.text import counted
from monitor.store import sources as source_store
from monitor.store.database import Database, sqlite_path

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
    there = peek(text, config, os.environ)
    known = {url for one in (there.sites if there else ()) for url in one.feeds or ()}
    new = [one for one in found if one.url not in known]
    fresh = [one for one in new if _home(one) and writable(one.url)]
    groups = _one_site(fresh, site) if site else _by_domain(fresh)
    taken = {} if site else {place(one.url): one.name for one in (there.sites if there else ())}
    sites = [group for group in groups if place(group.url) not in taken]
    if sites:
        write_config(config, add_sites(text, sites, file=str(config), path=config, env=os.environ))
    added = sum(len(one.lists["feeds"]) for one in sites)
    if not quiet:
        left = f"; {len(found) - len(new)} were there already" if len(found) > len(new) else ""
        sys.stdout.write(f"{counted(added, 'feed')} in {counted(len(sites), 'site')} added to {config}{left}\n")
    missed = [
        f"{counted(len(one.lists['feeds']), 'feed')} of {one.url} left out, as {config} has that site as"
        f" {taken[place(one.url)]!r}: name them there under 'feeds:', or give a new site a name with --site"
        for one in groups
        if one not in sites
    ]
    missed += [f"{one.url!r} left out: it is no address that can be watched" for one in new if one not in fresh]
    if missed:
        raise CannotImport("\n".join(missed))


def _one_site(feeds: list[Subscription], name: str) -> list[NewSite]:
    if not feeds:
        return []
    return [NewSite(_home(feeds[0]) or feeds[0].url, _lists(feeds), name=name)]


def _by_domain(feeds: list[Subscription]) -> list[NewSite]:
    groups: dict[str, list[Subscription]] = {}
    for feed in feeds:
        host = host_of(feed.home or feed.url)
        groups.setdefault(registrable(host) or host, []).append(feed)
    return [NewSite(_home(group[0]) or group[0].url, _lists(group)) for group in groups.values()]


def _home(feed: Subscription) -> str | None:
    """The address of the site: where its list says that it is, without the page; None where that is no address."""
    return writable(absolute("/", feed.home or feed.url) or "")


def _lists(feeds: list[Subscription]) -> dict[str, list[tuple[str, str]]]:
    # Whoever subscribes wants the feeds; sitemaps are looked for where `sitemaps` is taken out.
    titles = {url: feed.title or "" for feed in feeds if (url := writable(feed.url)) is not None}
    return {"feeds": list(titles.items()), "sitemaps": []}


def without_secrets(path: Path) -> Config | None:
    """The configuration, though variables that only a run needs may be missing; None where it is broken."""
    try:
        return peek(path.read_bytes().decode(), path, os.environ)
    except (OSError, UnicodeDecodeError):
        return None


def write(config: Config, database: str, output: Path | None) -> None:
    """Print, or write to a file, the feeds of the configuration and those that discovery found.

    Addresses that hold a secret are left out, and counted on stderr. Raises OSError, StoreError.
    """
    secret = frozenset[str]()
    if config.path is not None:
        secret = addresses_from_environment(config.path.read_bytes().decode(), config.path, os.environ)

    def hides(url: str) -> bool:
        return url in secret or "@" in urlsplit(url).netloc

    homes = {site.name: None if hides(site.url) else site.url for site in config.sites}
    found = {site.name: dict.fromkeys(site.feeds or ()) for site in config.sites}
    for row in _watched(database):
        if row.kind == "feed" and row.site in found:
            found[row.site].setdefault(row.url)
    hidden = {url for feeds in found.values() for url in feeds if hides(url)}
    groups = [
        (name, [Subscription(url, homes[name]) for url in feeds if url not in hidden]) for name, feeds in found.items()
    ]
    data = write_opml([(name, feeds) for name, feeds in groups if feeds], "monitor")
    if output is None:
        sys.stdout.write(data.decode())
    else:
        output.write_bytes(data)
    if hidden:
        text = f"monitor: {counted(len(hidden), 'feed')} left out: the address holds a secret"
        print(text, file=sys.stderr)  # noqa: T201


def _watched(database: str) -> list[source_store.SourceRow]:
    path = sqlite_path(database)
    if path is not None and not path.exists():
        return []  # nothing was watched so far
    with Database(database, exclusive=False, must_exist=True) as db:
        return db.call(source_store.all_sources)
