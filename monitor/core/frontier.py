"""Where a crawl goes next: breadth first below its sections, each page once, out of every trap (pure).

Calendars, session ids, sort orders and paths that grow without end make sites infinite; a crawler that follows all
links never comes home. Bounded here: depth, length, repeated folders, queries of one path, and chains of pages whose
addresses differ in their digits only.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.core.url import absolute, host_of, is_site_host, page_key

MAX_DEPTH = 10
"""Links from a section's start at most."""

MAX_LENGTH = 2000
MAX_FOLDERS = 16
MAX_REPEATS = 2
"""Times that one folder stands in a path: ``/a/b/a/b/a/b/`` is a link that leads back into itself."""

MAX_QUERIES = 20
"""Different queries of one path that are followed."""

MAX_CHAIN = 6
"""Pages in a row, each found on the one before, that differ only in digits: the next page, the month before."""

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Link:
    """A page to visit: its depth, and how many pages of the same form led to it in a row. `start`: a section's own."""

    url: str
    depth: int = 0
    chain: int = 0
    start: bool = False


def section_urls(sections: Sequence[str], home: str) -> tuple[str, ...]:
    """The absolute addresses of sections, as the configuration names them, against the site's home page."""
    found = (absolute(section, home) for section in sections)
    return tuple(dict.fromkeys(url for url in found if url is not None))


class Frontier:
    """The pages that a crawl has to visit, and those it has seen. `bounded` counts what was left out, by the bound."""

    def __init__(self, starts: Sequence[str], hosts: frozenset[str]) -> None:
        self._hosts = hosts
        self._below = [(host_of(url), _path(url).rstrip("/")) for url in starts]
        self._seen = {page_key(url) for url in starts}
        self._queries: Counter[str] = Counter()
        self._waiting = deque(Link(url, start=True) for url in starts)
        self.bounded: Counter[str] = Counter()

    def __len__(self) -> int:
        """Pages that wait to be visited."""
        return len(self._waiting)

    def take(self, most: int) -> list[Link]:
        """The next pages to visit, those found first, at most so many."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def is_below(self, url: str) -> bool:
        """Whether a page lies below one of the sections, on a host of the site."""
        host = host_of(url)
        if not is_site_host(host, self._hosts | {start for start, _path in self._below}):
            return False
        path = _path(url)
        return any(
            path == prefix or path.startswith(f"{prefix}/")
            for start, prefix in self._below
            if is_site_host(host, self._hosts if start in self._hosts else frozenset([start]))
        )

    def meet(self, url: str) -> bool:
        """Note a page that a redirect or a canonical link led to; False where it was seen before."""
        key = page_key(url)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def offer(self, urls: Iterable[str], on: Link) -> None:
        """Take the links that were found on a page: those below the sections, not seen yet and within bounds."""
        for url in urls:
            if not self.is_below(url):
                continue
            key = page_key(url)
            if key in self._seen:
                continue
            self._seen.add(key)
            chain = on.chain + 1 if _form(url) == _form(on.url) else 0
            bound = self._bound(url, on.depth + 1, chain)
            if bound is None:
                self._waiting.append(Link(url, on.depth + 1, chain))
            else:
                self.bounded[bound] += 1

    def _bound(self, url: str, depth: int, chain: int) -> str | None:
        """The bound that a link would break, if any."""
        if depth > MAX_DEPTH:
            return "depth"
        folders = [folder for folder in _path(url).split("/") if folder]
        if len(url) > MAX_LENGTH or len(folders) > MAX_FOLDERS:
            return "length"
        if folders and max(Counter(folders).values()) > MAX_REPEATS:
            return "repeated folders"
        if chain > MAX_CHAIN:
            return "chain"
        if "?" in url:
            path = url.partition("?")[0]
            self._queries[path] += 1
            if self._queries[path] > MAX_QUERIES:
                return "queries"
        return None


def _path(url: str) -> str:
    return "/" + "".join(url.partition("#")[0].partition("?")[0].split("/", 3)[3:])


def _form(url: str) -> str:
    return _DIGITS.sub("0", url)
