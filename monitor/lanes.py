"""How many polls of one host may be under way, so that a slow one leaves room for all others.

A poll that waits for its host's turn holds a place among the polls; what its host cannot take on soon need not be
started. Each kind of source has a lane of its own at a host: a large sitemap, read for hours, must not keep feeds out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from monitor.config import Site

Lane = tuple[str, str]

AHEAD = 2
"""Polls under way in a lane, for each request that its host takes at a time: the next stands ready when one ends."""


def lane_of(kind: str, url: str) -> Lane:
    """The lane of a source: its kind, and its host and port as written."""
    return kind, url.partition("://")[2].partition("/")[0].lower()


def width(site: Site, url: str, total: int) -> int:
    """Most polls under way in the lane of the source at `url`; `total` requests go out at a time over all."""
    settings = site.source_settings(url) if site.overrides else site.settings
    return min(AHEAD * settings.concurrency.per_host, total)


class Lanes:
    """The lanes of one look at what is due; `busy` are those of the polls under way, one for each.

    A host that answers fast ends more polls between two looks than its lane is wide: it may have more while fewer than
    half of all places (two for each of the `total` requests) are taken. The other half stands open to all.
    """

    def __init__(self, busy: Iterable[Lane], total: int) -> None:
        self._count = Counter(busy)
        self._taken = self._count.total()
        self._total = total

    def take(self, site: Site, kind: str, url: str) -> bool:
        """Take a place in the lane of a source, if one is free."""
        lane = lane_of(kind, url)
        if self._taken >= self._total and self._count[lane] >= width(site, url, self._total):
            return False
        self._count[lane] += 1
        self._taken += 1
        return True
