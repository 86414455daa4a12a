"""`monitor` as a library: the parts of the product, without its database.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor import schedule as schedule
    from monitor.core.feed import parse_feed as parse_feed
    from monitor.core.sitemap import parse_sitemap as parse_sitemap
    from monitor.core.url import page_key as page_key
    from monitor.discover_site import Discovered as Discovered
    from monitor.discover_site import discover as discover
    from monitor.model import Entry as Entry
    from monitor.model import Event as Event
    from monitor.model import Feed as Feed
    from monitor.model import NotAFeed as NotAFeed
    from monitor.model import NotASitemap as NotASitemap
    from monitor.model import Problem as Problem
    from monitor.model import Row as Row
    from monitor.model import Sitemap as Sitemap
    from monitor.read_tree import SitemapFile as SitemapFile
    from monitor.read_tree import read_sitemaps as read_sitemaps

_HOMES = {
    "parse_feed": "monitor.core.feed",
    "parse_sitemap": "monitor.core.sitemap",
    "page_key": "monitor.core.url",
    "discover": "monitor.discover_site",
    "Discovered": "monitor.discover_site",
    "read_sitemaps": "monitor.read_tree",
    "SitemapFile": "monitor.read_tree",
    **dict.fromkeys(
        ("Entry", "Event", "Feed", "NotAFeed", "NotASitemap", "Problem", "Row", "Sitemap"), "monitor.model"
    ),
}
__all__ = [
    "Discovered",
    "Entry",
    "Event",
    "Feed",
    "NotAFeed",
    "NotASitemap",
    "Problem",
    "Row",
    "Sitemap",
    "SitemapFile",
    "discover",
    "page_key",
    "parse_feed",
    "parse_sitemap",
    "read_sitemaps",
    "schedule",
]


def __getattr__(name: str) -> Any:
    if name == "schedule":
        return importlib.import_module("monitor.schedule")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'monitor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
