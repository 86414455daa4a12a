"""Addresses that are much alike, and may be one page (pure).

They stay two pages: that they are one needs evidence (DESIGN, "URLs"). A report that shows them lets somebody look.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from monitor.core.identity import page_id
from monitor.core.url import page_key


class Twins:
    """Pairs that differ only in a trailing slash, in http and https, or in ``www.``.

    First every address is noted, then each is looked at: a site whose addresses are all of one form has no pairs, and
    costs nothing.
    """

    def __init__(self) -> None:
        self._origins: set[str] = set()
        self._slash = [False, False]
        self.possible = False
        self._pairs: dict[tuple[str, str], str] = {}

    def note(self, heads: Iterable[str], *, slashed: int, of: int) -> None:
        """Take note of addresses: what they begin with, and how many `of` them end with a slash."""
        self._origins.update({head if (end := head.find("/", 8)) < 0 else head[:end] for head in heads})
        self._slash = [self._slash[0] or slashed < of, self._slash[1] or slashed > 0]

    def settle(self) -> None:
        """All addresses were noted: can there be pairs among them?"""
        self.possible = all(self._slash) or len({_bare(origin) for origin in self._origins}) < len(self._origins)

    def look(self, url: str, known: Container[int]) -> None:
        """Pair an address with those of `known` (page ids) that are much like it."""
        if self.possible:
            for twin, why in self._twins(url):
                if page_id(page_key(twin)) in known:
                    self._pairs.setdefault((min(url, twin), max(url, twin)), why)

    def _twins(self, url: str) -> list[tuple[str, str]]:
        place = url.find("/", 8)
        origin, path = url[:place], url[place:]
        found = [
            (f"{other}{path}", "http and https" if other.partition(":")[0] != origin.partition(":")[0] else "www.")
            for other in self._origins
            if other != origin and _bare(other) == _bare(origin)
        ]
        if all(self._slash) and len(path) > 1 and path.endswith("/"):
            found.append((url[:-1], "a trailing slash"))
        return found

    def found(self, most: int) -> list[dict[str, Any]]:
        """The pairs, at most so many, as the report has them."""
        return [
            {"urls": list(pair), "why": f"differ only in {why}"} for pair, why in sorted(self._pairs.items())[:most]
        ]


def _bare(origin: str) -> str:
    """An origin without scheme and ``www.``."""
    return origin.partition("://")[2].removeprefix("www.")


def twins_of(url: str) -> tuple[str, ...]:
    """The addresses that differ from a page's only in a trailing slash, in http and https, or in ``www.``."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    other = {"http": "https", "https": "http"}.get(scheme)
    if other is None or "?" in rest or "#" in rest:
        return ()
    twin = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    found = [f"{other}://{host}/{path}", f"{scheme}://{twin}/{path}", f"{other}://{twin}/{path}"]
    if path:
        found.append(url[:-1] if path.endswith("/") else f"{url}/")
    return tuple(found)
