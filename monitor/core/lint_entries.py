"""What the rules of all feed formats share: places, own children of an element, dates, ids (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from lxml import etree

from monitor.core.dates import parse_date
from monitor.core.feed_entry import instant
from monitor.core.lint_dates import in_future
from monitor.core.lint_rules import Findings
from monitor.core.sitemap_rows import text_of

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.I | re.ASCII)


class Marks:
    """A feed document's elements and where findings go. `offset` is added to line numbers; None: they are not true."""

    def __init__(self, findings: Findings, now: datetime, offset: int | None) -> None:
        self.findings = findings
        self.now = now
        self.items: list[Any] = []
        """The entries in document order, as `entry N` of a parser's problem counts them."""
        self._names: dict[Any, tuple[int, str]] = {}
        self._offset = offset
        self._ids: dict[str, str] = {}

    def take(self, items: Iterable[Any], named: Callable[[Any], str]) -> None:
        """Take the entries of the document; `named` gives the link or title of one, for its place."""
        self.items = list(items)
        self._names = {item: (number, named(item)) for number, item in enumerate(self.items, 1)}

    def place(self, element: Any, entry: Any = None) -> str:
        """Line of `element`, and the link of the entry that it belongs to."""
        number, name = self._names.get(element if entry is None else entry, (0, ""))
        if self._offset is not None:
            where = f"line {element.sourceline + self._offset}"
        else:
            where = f"entry {number}" if number else f"<{etree.QName(element).localname}>"
        return f"{where}, {name}" if name else where

    def entry_place(self, text: str) -> str:
        """The place of a parser's problem at `entry N`, "" where that is not known better."""
        number = text.removeprefix("entry ")
        if number.isdecimal() and 0 < int(number) <= len(self.items):
            return self.place(self.items[int(number) - 1])
        return ""

    def add(self, rule: str, element: Any, detail: str = "", *, entry: Any = None) -> None:
        """Note that `rule` is broken at `element`, which is within `entry`, where it is in one."""
        self.findings.add(rule, self.place(element, entry), detail)

    def unique(self, rule: str, key: str, element: Any) -> None:
        """Note `rule` where an entry before `element` has the same `key`."""
        place = self.place(element)
        before = self._ids.setdefault(key, place)
        if before is not place:
            self.findings.add(rule, place, f"{key[:100]!r} is also that of {before.partition(',')[0]}")

    def date(self, element: Any, rule: str, fits: Callable[[str], object], *, entry: Any = None) -> None:
        """Check the date that `element` holds against the form of its format; `rule` names that form.

        A text that is no date at all is the parser's to find in entries, and noted here elsewhere; an empty text is
        no date to check.
        """
        text = text_of(element)
        moment = instant(text) if text else None
        if moment is None:
            if entry is None and text:
                self.add("feed.date", element, f"{text[:60]!r} is no date")
            return
        if not fits(text):
            self.add(rule, element, f"{text[:60]!r} is not of that form", entry=entry)
        if entry is not None and in_future(moment, self.now, zone=parse_date(text).zone):
            self.add("entry.future", element, text[:60], entry=entry)


def children(element: Any, *names: str) -> Iterator[Any]:
    """The child elements of these names that are of the element's own format, not of an extension."""
    prefix = element.tag.rpartition("}")[0]
    tags = {f"{prefix}}}{name}" if prefix else name for name in names}
    return (child for child in element if child.tag in tags)


def first(element: Any, name: str) -> Any:
    """The first such child, None where there is none."""
    return next(children(element, name), None)


def first_text(element: Any, name: str) -> str:
    """The text of the first such child, "" where there is none."""
    found = first(element, name)
    return text_of(found) if found is not None else ""


def is_absolute(address: str) -> bool:
    """Whether an address begins with a scheme."""
    return _SCHEME.match(address) is not None


def label(*texts: str) -> str:
    """What an entry is called in a place: the first of these that it has, cut where it is endless."""
    return next((text[:200] for text in texts if text), "")
