"""A configuration as the engine reads it: every default applied, every path and name resolved.

Intervals are seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from monitor.config_alerts import Alert
from monitor.core.url import host_of, is_site_host, matches
from monitor.model import SourceKind


def _default_user_agent() -> str:
    try:
        version = metadata.version("monitor")
    except metadata.PackageNotFoundError:
        version = "0"
    return f"monitor/{version} (feed and sitemap monitor)"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Most requests at the same time over all (`total`) and to one host, and the seconds between two to one host."""

    total: int = 100
    per_host: int = 2
    host_delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Poll:
    """Bounds and aim of polling; intervals in seconds. Exactly one of `target_delay`, `requests_per_day` is set."""

    min: float = 60.0
    max: float = 86400.0
    target_delay: float | None = 600.0
    requests_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class SitemapSettings:
    """How sitemap trees are read; `every` and `news_every` in seconds."""

    every: float = 21600.0
    news_every: float = 600.0
    max_files: int = 50_000
    max_depth: int = 5
    confirm_missing: int = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """What `defaults`, a site and a source may each set; a value here is already the one that counts."""

    user_agent: str = field(default_factory=_default_user_agent, repr=False)
    allow_private_networks: bool = False
    proxy: str | None = field(default=None, repr=False)
    concurrency: Concurrency = Concurrency()
    poll: Poll = Poll()
    sitemap: SitemapSettings = SitemapSettings()
    baseline: Literal["quiet", "alert"] = "quiet"


@dataclass(frozen=True, slots=True)
class Expect:
    """A coverage promise: a page that matches `pages` is listed by a source of `kind` within `within` seconds."""

    pages: str
    kind: SourceKind
    within: float


@dataclass(frozen=True, slots=True)
class Crawl:
    """A bounded link crawl: it starts at `sections` and stays below them; `every` in seconds."""

    sections: tuple[str, ...]
    max_pages: int = 500
    every: float = 86400.0


@dataclass(frozen=True, slots=True)
class Changes:
    """Whether pages are fetched to confirm a change, and how many at most to test a sitemap's lastmod."""

    verify: Literal["auto", "always", "never"] = "auto"
    sample: int = 20


@dataclass(frozen=True, slots=True, repr=False)
class Site:
    """One publisher. `None` for a list of sources means: discover them; an empty tuple means: none.

    `hosts` are the further hosts that the configuration names, lower case; `own_hosts` has the site's own, too.
    """

    name: str
    url: str
    settings: Settings
    hosts: tuple[str, ...] = ()
    feeds: tuple[str, ...] | None = None
    sitemaps: tuple[str, ...] | None = None
    news_sitemaps: tuple[str, ...] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    expect: tuple[Expect, ...] = ()
    crawl: Crawl | None = None
    changes: Changes = Changes()
    overrides: tuple[tuple[str, Settings], ...] = ()

    def __repr__(self) -> str:
        # URLs may hold keys that came from the environment.
        return f"Site(name={self.name!r})"

    @property
    def user_agent(self) -> str:
        return self.settings.user_agent

    @property
    def allow_private_networks(self) -> bool:
        return self.settings.allow_private_networks

    @property
    def proxy(self) -> str | None:
        return self.settings.proxy

    @property
    def concurrency(self) -> Concurrency:
        return self.settings.concurrency

    @property
    def poll(self) -> Poll:
        return self.settings.poll

    @property
    def sitemap(self) -> SitemapSettings:
        return self.settings.sitemap

    @property
    def baseline(self) -> Literal["quiet", "alert"]:
        return self.settings.baseline

    def source_settings(self, url: str) -> Settings:
        """The settings of the source at `url`, as written in the configuration: its own, else the site's."""
        return next((settings for source, settings in self.overrides if source == url), self.settings)

    def match_page(self, url: str) -> bool:
        """Whether the page at `url` is watched: by `include` (all, where there is none) and not by `exclude`."""
        if self.include and not any(matches(pattern, url) for pattern in self.include):
            return False
        return not any(matches(pattern, url) for pattern in self.exclude)

    @property
    def own_hosts(self) -> frozenset[str]:
        """The hosts that are the site's, lower case: that of its home page, and `hosts`."""
        return frozenset((host_of(self.url), *self.hosts))

    def owns_host(self, host: str) -> bool:
        """Whether `host` (lower case) is the site's; ``www.`` and the bare name count as one."""
        return is_site_host(host, self.own_hosts)


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration. `path` is None when it came from no file; `database` is an SQLAlchemy URL."""

    path: Path | None
    database: str = field(repr=False)
    defaults: Settings
    alerts: tuple[Alert, ...]
    sites: tuple[Site, ...]

    def site(self, name: str) -> Site | None:
        """The site of this name, or None."""
        return next((site for site in self.sites if site.name == name), None)


def default_name(url: str) -> str:
    """The name of a site that was given none: the host of its URL without ``www.``."""
    name = re.sub(r"[^a-z0-9._-]+", "-", host_of(url).removeprefix("www.")).strip("-._")
    return name[:100] or "site"


def free_name(name: str, taken: Iterable[str], mark: str) -> str:
    """`name`, or `name` with `mark` and the lowest number from 2 on that is not `taken`."""
    names = set(taken)
    number = 2
    result = name
    while result in names:
        result = f"{name}{mark}{number}"
        number += 1
    return result
