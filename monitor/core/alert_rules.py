"""What an alert's rules look at in an event: its title, address, section and authors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

LONGEST = 2000
"""Characters of one text that a pattern is held against: texts come from strangers, patterns may be slow."""


@dataclass(frozen=True, slots=True)
class Facts:
    """An event as rules see it. `sections`: the folders of its address, such as ``/news/politics/``, and its tags."""

    title: str | None
    url: str
    sections: tuple[str, ...]
    authors: tuple[str, ...]


def facts(subject: str, data: Mapping[str, Any]) -> Facts:
    """What rules look at, of an event's subject and data."""
    entry = data.get("entry") or {}
    url = data.get("url") or subject
    folders = _path(url).rpartition("/")[0] + "/"
    return Facts(
        title=entry.get("title") or data.get("title") or None,
        url=url,
        sections=(folders, *map(str, entry.get("tags") or ())),
        authors=tuple(map(str, entry.get("authors") or ())),
    )


def _path(url: str) -> str:
    try:
        return urlsplit(url[:LONGEST]).path
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Match:
    """Regular expressions, searched for in parts of an event; `text` in all of them."""

    text: str | None = None
    title: str | None = None
    url: str | None = None
    section: str | None = None
    author: str | None = None

    def every(self, found: Facts) -> bool:
        """Whether each expression that is given is found."""
        return all(self._each(found))

    def some(self, found: Facts) -> bool:
        """Whether any expression that is given is found."""
        return any(self._each(found))

    def _each(self, found: Facts) -> list[bool]:
        title = (found.title,) if found.title else ()
        everything = (*title, found.url, *found.sections, *found.authors)
        parts = (
            (self.text, everything),
            (self.title, title),
            (self.url, (found.url,)),
            (self.section, found.sections),
            (self.author, found.authors),
        )
        return [_found(pattern, texts) for pattern, texts in parts if pattern is not None]


def _found(pattern: str, texts: tuple[str, ...]) -> bool:
    search = _compiled(pattern).search
    return any(search(text[:LONGEST]) for text in texts)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
