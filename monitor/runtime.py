"""What a running monitor is made of: configuration, database, fetcher, parse workers, a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.config import Config, Site
from monitor.core.http import Reply
from monitor.core.reconcile import Rules, Scope
from monitor.core.url import host_of
from monitor.fetch import Fetcher, FetchPolicy
from monitor.network import OfflineError, is_silence
from monitor.parse_pool import ParsePool
from monitor.schedule import USUAL, Population
from monitor.store.database import Database
from monitor.store.events import Route
from monitor.store.sources import SiteRow, SourceRow


@dataclass(slots=True)
class Runtime:
    """The parts that the steps of a poll share. `clock` gives seconds since the epoch; `wake` asks for delivery."""

    config: Config
    db: Database
    fetcher: Fetcher
    pool: ParsePool
    clock: Callable[[], float] = time.time
    wake: Callable[[], None] = lambda: None
    sites: dict[str, Site] = field(default_factory=dict)
    rows: dict[str, SiteRow] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    prices: dict[tuple[float | None, float | None], float] = field(default_factory=dict)
    aims: set[tuple[float | None, float | None]] = field(default_factory=set)
    population: Population = USUAL

    def use(self, config: Config) -> None:
        """Take `config` as the one in force."""
        self.config = config
        self.sites = {site.name: site for site in config.sites}
        self.routes = routes_of(config)

    def policy(self, site: Site, url: str | None = None) -> FetchPolicy:
        """How to fetch for a site, or for its source that the configuration knows as `url`."""
        settings = site.settings if url is None else site.source_settings(url)
        return FetchPolicy(
            user_agent=settings.user_agent,
            allow_private_networks=settings.allow_private_networks,
            proxy=settings.proxy,
            total=self.config.defaults.concurrency.total,
            per_host=settings.concurrency.per_host,
            host_delay=settings.concurrency.host_delay,
        )

    async def reached(self, source: SourceRow, site: Site, reply: Reply) -> None:
        """Raise OfflineError where a source gave no answer for want of a network of our own."""
        if is_silence(reply, proxied=site.source_settings(source.known_as).proxy is not None):
            sound = source.failures == 0 and source.last_at is not None
            hosts = len({host_of(site.url) for site in self.config.sites})
            if await self.fetcher.network.is_out(host_of(source.url), sound=sound, hosts=hosts):
                raise OfflineError("the monitor's own network is down")

    def rules(self, site: Site, url: str | None = None) -> Rules:
        """What the reconciler needs of the configuration of a site, or of its source known as `url`."""
        settings = site.settings if url is None else site.source_settings(url)
        row = self.rows.get(site.name)
        hosts = site.own_hosts | (row.announced_hosts if row else frozenset())
        return Rules(
            site=site.name,
            scope=Scope(hosts, tuple(site.include), tuple(site.exclude)),
            confirm_missing=settings.sitemap.confirm_missing,
            alert_baseline=settings.baseline == "alert",
            verify=site.changes.verify,
            sample=site.changes.sample,
            since_at=row.watching_since_at if row else None,
        )


def routes_of(config: Config) -> list[Route]:
    """Where the events of a configuration go, in its order."""
    return [Route(alert.name, alert.takes_event, alert.stop) for alert in config.alerts]
