"""One cheap pass over a feed: where its entries stand in the bytes, their ids and dates, and whether that is sure.

The scan uses expat with namespaces, the parser under feedparser's strict one: what it accepts, feedparser reads
strictly, and entry for entry. So known entries can be cut out byte by byte before feedparser sees the document. What
the scan is not sure of it calls `odd`, and feedparser is given the whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from xml.parsers import expat

MAX_DEPTH = 500
"""Elements within elements; no feed is deeper."""

MAX_ATTRIBUTES = 500
"""Attributes of one element; feedparser takes time by their square."""

_PLAIN = {
    "",
    "http://backend.userland.com/rss",
    "http://blogs.law.harvard.edu/tech/rss",
    "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://purl.org/atom/ns#",
    "http://www.w3.org/2005/atom",
}
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns# about"
_XHTML = "http://www.w3.org/1999/xhtml"
_FOREIGN = ("http://search.yahoo.com/mrss", "http://www.itunes.com/dtds/", "http://www.georss.org/", _XHTML)
_KINDS = {
    "item": "entry",
    "entry": "entry",
    "guid": "id",
    "id": "id",
    "link": "link",
    "pubdate": "published",
    "published": "published",
    "issued": "published",
    "updated": "updated",
    "modified": "updated",
    "lastbuilddate": "updated",
    "source": "source",
    "dc date": "updated",
    "dcterms issued": "published",
    "dcterms modified": "updated",
}
_DUBLIN = {"http://purl.org/dc/elements/1.1/": "dc", "http://purl.org/dc/terms/": "dcterms"}
_CUT = {3, 5, 6, 20}  # expat: no element, unclosed token, partial character, unclosed CDATA section
_START = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<(/?)(?:[A-Za-z]\w*:)?(?:item|entry)(?=[\s>/])", re.I | re.S
)
_NAME = re.compile(rb"<([^\s/>]+)")


@dataclass(slots=True)
class Item:
    """One entry as scanned: its bytes `start` to `end` in the document, and texts as feedparser would give them."""

    start: int
    end: int = 0
    about: str | None = None
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def guid(self) -> str:
        """The entry's own id, "" where it has none."""
        return self.texts.get("id") or self.about or ""

    @property
    def link(self) -> str:
        """Its plain link, "" where it has none or several."""
        return self.texts.get("link", "")

    @property
    def plain_link(self) -> str:
        """A link that feedparser leaves out for another in its attributes (``<link uri="at://...">``)."""
        return self.texts.get("plain", "")

    @property
    def published(self) -> str:
        return self.texts.get("published", "")

    @property
    def updated(self) -> str:
        return self.texts.get("updated", "")


@dataclass(slots=True)
class Scan:
    """`items` up to the end, or to the first error. `odd`: ids and dates are not certain; `error`: expat's."""

    items: list[Item] = field(default_factory=list)
    odd: bool = False
    error: expat.ExpatError | None = None
    excess: str = ""
    """What no feed does, and feedparser should not be given: an element too deep, too many attributes."""
    ancestors: list[bytes] = field(default_factory=list)
    opened: bytes = b""
    """What stands around every entry: the DOCTYPE, and the start tags open there. Empty where they are not the same."""

    @property
    def cut(self) -> bool:
        """Whether the bytes simply end too early."""
        return self.error is not None and self.error.code in _CUT


class _ExcessError(Exception):
    """Stops expat; says why."""


@lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    """What an element is to feedparser: one of `_KINDS`' values, ``""`` for all others, ``"odd"`` where unsure."""
    uri, _, local = name.rpartition(" ")
    uri, local = uri.lower(), local.lower()
    if uri in _PLAIN or "backend.userland.com/rss" in uri:
        return _KINDS.get(local, "")
    if uri in _DUBLIN:
        return _KINDS.get(f"{_DUBLIN[uri]} {local}", "")
    if uri.startswith(_FOREIGN):
        return ""
    return "odd" if local in _KINDS or local == "date" else ""


def scan(data: bytes) -> Scan:
    """Scan a document of UTF-8 bytes that starts with its DOCTYPE or root element."""
    scanner = _Scanner(data)
    result, parser = scanner.result, scanner.parser
    parser.StartElementHandler = scanner.start
    parser.EndElementHandler = scanner.end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        result.error = error
    except _ExcessError as error:
        result.excess = str(error)
    finally:
        parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None  # breaks the cycle
    return result


class _Scanner:
    """The state of one scan: expat calls `start` and `end` for every element."""

    __slots__ = (
        "based",
        "data",
        "depth",
        "first",
        "item",
        "item_depth",
        "kind",
        "offsets",
        "parser",
        "pieces",
        "result",
        "source_depth",
    )

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.based = b"base=" in data
        self.result = Scan()
        self.parser = expat.ParserCreate("utf-8", " ")
        self.parser.buffer_text = True
        self.depth = 0
        self.item_depth = 0  # 0: outside of entries
        self.source_depth = 0
        self.item = Item(0)
        self.kind = ""
        self.offsets: list[int] = []
        self.first: tuple[int, ...] = ()  # `offsets` at the first entry
        self.pieces: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH or len(attributes) > MAX_ATTRIBUTES:
            raise _ExcessError("too deep" if self.depth > MAX_DEPTH else "full of attributes")
        kind = _kind(name)
        if not self.item_depth:
            self._outside(kind, attributes)
        elif self.parser.CharacterDataHandler is not None or kind in ("entry", "odd"):
            self.result.odd = True
        elif kind and not self.source_depth:
            self._inside(kind, attributes)

    def _outside(self, kind: str, attributes: dict[str, str]) -> None:
        result = self.result
        if kind == "entry":
            self.item_depth, self.source_depth = self.depth, 0
            self.item = Item(self.parser.CurrentByteIndex, about=(attributes.get(_RDF) or "").strip() or None)
            result.odd = result.odd or "href" in attributes or "lastmod" in attributes
            if not result.items:
                result.ancestors = [_name_at(self.data, offset) for offset in self.offsets]
                self.first = tuple(self.offsets)
                result.opened = self._opened()
            elif self.first != tuple(self.offsets):
                result.opened = b""
        else:
            self.offsets.append(self.parser.CurrentByteIndex)
            result.odd = result.odd or kind == "odd"

    def _opened(self) -> bytes:
        """The bytes before the root, and every open start tag: no attribute holds a bare `<` (XML 1.0, 3.1)."""
        root = self.offsets[0] if self.offsets else self.parser.CurrentByteIndex
        tags = (self.data[start : self.data.find(b"<", start + 1)] for start in self.offsets)
        return b"\0".join([self.data[:root], *(tag.rstrip() for tag in tags), b""])

    def _inside(self, kind: str, attributes: dict[str, str]) -> None:
        direct = self.depth == self.item_depth + 1
        if kind == "source":
            self.source_depth = self.depth
        elif kind == "link" and ("href" in attributes or not direct):
            if attributes.get("rel", "alternate").lower() == "alternate":
                self.item.texts["link"] = ""  # which of several links is meant is feedparser's to say
        elif direct:
            self.kind = "plain" if kind == "link" and ("uri" in attributes or "url" in attributes) else kind
            self.pieces = []
            self.parser.CharacterDataHandler = self.pieces.append
        else:
            self.result.odd = True

    def end(self, name: str) -> None:
        depth = self.depth
        if not self.item_depth:
            self.offsets.pop()
        elif self.parser.CharacterDataHandler is not None:
            self.parser.CharacterDataHandler = None
            self._note("".join(self.pieces).strip())
        elif depth == self.source_depth:
            self.source_depth = 0
        elif depth == self.item_depth:
            position = self.parser.CurrentByteIndex
            self.item.end = self.data.find(b">", position) + 1
            self.result.odd = self.result.odd or self.data[position : position + 2] != b"</"
            self.result.items.append(self.item)
            self.item_depth = 0
        self.depth = depth - 1

    def _note(self, text: str) -> None:
        """Keep one text of an entry, unless feedparser would do something to it that is not done here."""
        kind, texts = self.kind, self.item.texts
        if kind == "id":
            self.result.odd = self.result.odd or kind in texts or not text
        elif kind in ("link", "plain"):
            # Double encoding is undone by feedparser, references in a link are read again, and it knows of xml:base.
            mojibake = not text.isascii() and any("\x7f" < char <= "\xff" for char in text)
            relative = self.based and not text.startswith(("http://", "https://"))
            if "link" in texts or mojibake or relative or "///" in text or "&" in text:
                text = ""
            elif kind == "plain":
                texts["link"] = ""
        texts[kind] = text


def _name_at(data: bytes, offset: int) -> bytes:
    found = _NAME.match(data, offset)
    return found[1] if found else b""


def closed(data: bytes, result: Scan) -> bytes:
    """A document that was cut, up to its last whole entry and closed after it."""
    if not result.items:
        return b""
    return data[: result.items[-1].end] + b"".join(b"</" + name + b">" for name in reversed(result.ancestors))


def without(data: bytes, items: list[Item]) -> bytes:
    """The document's bytes without those of `items`, which are in document order."""
    parts, position = [], 0
    for item in items:
        parts.append(data[position : item.start])
        position = item.end
    parts.append(data[position:])
    return b"".join(parts)


def count_tags(data: bytes, limit: int) -> tuple[int, bool, int]:
    """For a document that is not well-formed: start tags of entries, whether each is closed in turn, and the byte at
    which the last one starts that is not closed (-1 where all are). Counting ends one after `limit`."""
    starts, in_turn, open_at = 0, True, -1
    for found in _START.finditer(data):
        if found[1] is None:
            continue
        if found[1]:
            in_turn = in_turn and open_at >= 0
            open_at = -1
        else:
            starts += 1
            in_turn = in_turn and open_at < 0
            open_at = found.start()
            if starts > limit:
                break
    return starts, in_turn and open_at < 0, open_at
