"""HTML in one pass over parser events: the elements that matter here, and the text of the main part.

No tree is built: libxml2 links attributes to a tree in quadratic time (80,000 on one element take ten seconds), its
events come in linear time, and depth costs nothing.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Any, Literal

from lxml import etree

MAX_BYTES = 4 * 1024 * 1024
"""What is read of a page; articles are a hundred times smaller."""

_MAX_ITEMS = 10_000
_MAX_SCRIPT = 1024 * 1024

_SKIPPED = frozenset(
    ["script", "style", "noscript", "template", "svg", "iframe", "nav", "footer", "aside", "time", "button", "select"]
)
_WATCHED = _SKIPPED | {"header", "h1", "form", "title"}
_SPACES = re.compile(r"\s+")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.I | re.ASCII)
# Python knows codecs that are no charset (`punycode`, `unicode_escape`), and slow: only real ones are believed.
_KNOWN = re.compile(
    r"utf-?8|utf-?16(?:le|be)?|(?:iso-?8859|windows|koi8)-\w{1,5}|cp\d{3,4}|latin-?\d|big5(?:-?hkscs)?|gb2312|gbk|gb18030"
    r"|euc-(?:jp|kr|tw)|(?:x-)?s(?:hift[_-]?)?jis|iso-2022-jp|us-ascii|ascii|macintosh|tis-620",
    re.I | re.ASCII,
)
# WHATWG Encoding, section 4.2: these labels mean their supersets.
_SUPERSETS = (
    "iso-8859-1=cp1252 iso8859-1=cp1252 latin1=cp1252 latin-1=cp1252 ascii=cp1252 us-ascii=cp1252 iso-8859-9=cp1254 "
    "gb2312=gb18030 gbk=gb18030 shift_jis=cp932 shift-jis=cp932 sjis=cp932 x-sjis=cp932 euc-kr=cp949 tis-620=cp874 "
    "macintosh=mac_roman"
)
_WIDER: dict[str, str] = {name: wider for name, _, wider in (pair.partition("=") for pair in _SUPERSETS.split())}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NOISE = re.compile(rb"<\?.*?(?:\?>|$)|<!.*?(?:-->|(?<!-)>|$)", re.DOTALL)
_FIRST_TAG = re.compile(rb"<([a-z][\w:.-]*)", re.I)
_HTML_TAGS = frozenset(
    b"html head body meta title link base style script div p a h1 h2 article main section header nav span table ul "
    b"center font form frameset noscript img br".split()
)

Region = Literal["articleBody", "article", "main"]


@dataclass(frozen=True, slots=True)
class Element:
    """A start tag: attribute names in lower case, values as written with entities resolved."""

    tag: str
    attributes: dict[str, str]

    def get(self, name: str) -> str:
        """The attribute's value, stripped; empty where it is absent."""
        return self.attributes.get(name, "").strip()

    def tokens(self, name: str) -> list[str]:
        """The attribute's white-space separated tokens in lower case, as in `rel`."""
        return self.attributes.get(name, "").lower().split()


@dataclass(frozen=True, slots=True)
class Markup:
    """What was found in a page, in document order.

    `base` is the first `base href`, empty where there is none. `anchors` are the `a` and `area` that have an `href`.
    `json_ld` holds the raw texts of the scripts of that type. `text` is that of the main part, white space folded.
    """

    title: str | None
    language: str | None
    base: str
    links: tuple[Element, ...]
    metas: tuple[Element, ...]
    anchors: tuple[Element, ...]
    json_ld: tuple[str, ...]
    text: str


def is_html(body: bytes, content_type: str | None) -> bool:
    """Whether the bytes are a page of HTML: by their first element, else by the content type."""
    head = body[:8192].lstrip(b"\xef\xbb\xbf \t\r\n")
    first = None if head.startswith((b"{", b"[", b"%PDF")) else _FIRST_TAG.search(_NOISE.sub(b"", head))
    if first is not None:
        return first[1].lower() in _HTML_TAGS
    declared = (content_type or "").partition(";")[0].strip().lower()
    return declared in ("text/html", "application/xhtml+xml") and not head.startswith(b"%PDF")


def read_markup(body: bytes, content_type: str | None = None) -> Markup:
    """Reads a page of HTML, broken or not. Never raises; what cannot be read is absent."""
    target: Any = _Target()
    parser = etree.HTMLParser(target=target, encoding="utf-8", no_network=True, huge_tree=False)
    try:
        parser.feed(_decode(body, content_type).encode("utf-8", "replace"))
        parser.close()
    except etree.LxmlError:
        pass  # deeper than libxml2 goes, or nothing at all: what came before is kept
    markup: Markup = target.markup()
    return markup


def _decode(body: bytes, content_type: str | None) -> str:
    body = body[:MAX_BYTES]
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(encoding, "replace").replace("\0", "")
    declared = _CHARSET.search(content_type or "") or _CHARSET.search(body[:4096].decode("latin-1"))
    name = declared[1].lower() if declared is not None and _KNOWN.fullmatch(declared[1]) else None
    if name is not None and not name.startswith("utf-16"):  # a tag in ASCII cannot be in UTF-16
        try:
            return body.decode(_WIDER.get(name, name), "replace").replace("\0", "")
        except LookupError:
            pass
    try:
        return body.decode("utf-8").replace("\0", "")
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"
        return body.decode("utf-8" if cut else "cp1252", "replace").replace("\0", "")


class _Target:
    """Takes the parser's events (lxml's parser target interface)."""

    def __init__(self) -> None:
        self._title: list[str] = []
        self._language: str | None = None
        self._base = ""
        self._links: list[Element] = []
        self._metas: list[Element] = []
        self._anchors: list[Element] = []
        self._scripts: list[str] = []
        self._script: list[str] | None = None
        self._script_size = 0
        self._depth = 0
        self._inside = dict.fromkeys(_WATCHED, 0)
        self._skipping = 0
        self._chunks: list[tuple[str, bool]] = []
        self._open: list[tuple[Region, int, int]] = []
        self._regions: dict[Region, list[tuple[int, int]]] = {"articleBody": [], "article": [], "main": []}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if tag in _WATCHED:
            self._inside[tag] += 1
            self._skipping += tag in _SKIPPED
        if tag in ("link", "meta", "a", "area"):
            self._keep(tag, attributes)
        elif tag == "base":
            self._base = self._base or attributes.get("href", "").strip()
        elif tag == "html":
            self._language = self._language or attributes.get("lang") or attributes.get("xml:lang")
        elif tag == "script" and attributes.get("type", "").strip().lower().startswith("application/ld+json"):
            self._script = []
        region = _region(tag, attributes)
        if region is not None and not any(kind == region for kind, _, _ in self._open):
            self._open.append((region, self._depth, len(self._chunks)))

    def _keep(self, tag: str, attributes: dict[str, str]) -> None:
        kept = self._links if tag == "link" else self._metas if tag == "meta" else self._anchors
        if len(kept) < _MAX_ITEMS and (tag == "meta" or "href" in attributes):
            kept.append(Element(tag, dict(attributes)))

    def data(self, text: str) -> None:
        if self._script is not None:
            self._script_size += len(text)
            if self._script_size <= _MAX_SCRIPT:
                self._script.append(text)
        elif self._inside["title"]:
            if not self._inside["svg"]:
                self._title.append(text)
        elif not self._skipping and (not self._inside["header"] or self._inside["h1"]):
            self._chunks.append((text, self._inside["form"] > 0))

    def end(self, tag: str) -> None:
        if tag in _WATCHED and self._inside[tag]:
            self._inside[tag] -= 1
            self._skipping -= tag in _SKIPPED
        if tag == "title" and self._title and not self._inside["svg"]:
            self._title.append("\0")  # a second title is another one
        if tag == "script" and self._script is not None:
            self._scripts.append("".join(self._script))
            self._script = None
        while self._open and self._open[-1][1] >= self._depth:
            self._close_region()
        self._depth -= 1

    def _close_region(self) -> None:
        region, _, first = self._open.pop()
        self._regions[region].append((first, len(self._chunks)))

    def close(self) -> None:
        while self._open:
            self._close_region()

    def markup(self) -> Markup:
        self.close()
        titles = (_fold(title) for title in "".join(self._title).split("\0"))
        return Markup(
            title=next(filter(None, titles), None),
            language=(self._language or "").strip() or None,
            base=self._base,
            links=tuple(self._links),
            metas=tuple(self._metas),
            anchors=tuple(self._anchors),
            json_ld=tuple(self._scripts),
            text=self._text(),
        )

    def _text(self) -> str:
        """The article's text, else that of main, else all of it; forms count only where all the text is in one."""
        for forms in (False, True):
            for region in self._regions.values():
                texts = [self._slice(first, last, forms) for first, last in region]
                if text := max(texts, key=len, default=""):
                    return text
            if text := self._slice(0, len(self._chunks), forms):
                return text
        return ""

    def _slice(self, first: int, last: int, forms: bool) -> str:
        return _fold(" ".join(text for text, in_form in self._chunks[first:last] if forms or not in_form))


def _region(tag: str, attributes: dict[str, str]) -> Region | None:
    if "articlebody" in attributes.get("itemprop", "").lower().split():
        return "articleBody"
    if tag == "article":
        return "article"
    return "main" if tag == "main" or attributes.get("role") == "main" else None


def _fold(text: str) -> str:
    return _SPACES.sub(" ", text).strip()
