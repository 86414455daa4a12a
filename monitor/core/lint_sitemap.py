"""The rules of sitemaps.org and of the search engines for sitemaps and their indexes (pure).

The parser decides what is a row and what is wrong with it; here its problems are given their line and URL, and what
only a checker minds is added. Sources: sitemaps.org/protocol.html and its schemas; Google Search Central, "Build and
submit a sitemap"; the rules of news blocks are in `lint_news`.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from lxml import etree

from monitor.core.dates import parse_date
from monitor.core.decode import decode
from monitor.core.feed import MAX_BYTES
from monitor.core.lint_dates import fits_w3c, in_future
from monitor.core.lint_news import NAMESPACE as NEWS_NAMESPACE
from monitor.core.lint_news import NewsBlocks
from monitor.core.lint_rules import Findings
from monitor.core.sitemap_rows import Reader, local, text_of
from monitor.core.sitemap_text import to_utf8
from monitor.core.sitemap_tree import is_flooded, parse_strictly, read_tree, row_elements
from monitor.core.url import host_of, page_key
from monitor.model import Problem, Row, Sitemap

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_EXTENSIONS = {
    "news": NEWS_NAMESPACE,
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
}
_FIELDS = {"url": ("loc", "lastmod", "changefreq", "priority"), "sitemap": ("loc", "lastmod")}
_FREQUENCIES = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
_PRIORITY = re.compile(r"(?:0(?:\.\d+)?|1(?:\.0+)?|\.\d+)", re.ASCII)
# What RFC 3986 allows nowhere; letters beyond ASCII are left to RFC 3987, which the protocol admits.
_UNESCAPED = re.compile(r"[\s\"<>\\^`{|}\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})")
_INDEX_NAME = re.compile(r"sitemap[_-]?index|index[_-]?sitemap", re.I)
_XML = re.compile(rb"\s*<\?xml\b[^>]{0,300}\?>")
_ENCODING = re.compile(rb"encoding\s*=\s*[\"']\s*([\w.:-]{1,40})")
_ENOUGH_ROWS = 20
_NEARLY_ALL = 0.95


def lint_sitemap(
    data: bytes, url: str, sitemap: Sitemap, findings: Findings, *, now: datetime, published: bool = True
) -> None:
    """Check `data`, of which `parse_sitemap` made `sitemap` (no feed) within `MAX_BYTES`. Never raises.

    `published` says that `url` is where the sitemap can be fetched: else nothing is said of hosts and folders.
    """
    body = decode(data, MAX_BYTES).data[:MAX_BYTES]
    # A file that is too large was cut by the reader, not by its publisher.
    cut = any(problem.rule in ("size.cap", "gzip.cap") for problem in sitemap.problems)
    for problem in sitemap.problems:
        damage = problem.rule in ("xml.damaged", "row.damaged")
        # Problems of rows come again from the reader below, with their line and however many they are.
        again = sitemap.kind != "text" and problem.rule.startswith("row.") and not damage
        # White space may stand before a root, but not before a declaration.
        harmless = problem.rule == "xml.blank" and _XML.match(body) is None
        if not again and not harmless and not (damage and cut):
            findings.problem(problem)
    _check_encoding(body, findings)
    checker = _Checker(url if published else "", sitemap, findings, now)
    root, elements, entities = _elements(to_utf8(body, []), sitemap)
    if not elements:
        for number, row in enumerate(sitemap.rows, 1):
            checker.address(row.url, f"row {number}, {shown(row.url)}")
    if root is not None:
        _check_namespaces(root, elements, findings)
    problems: list[Problem] = []
    reader = Reader(url, problems, feed=False, entities=entities)
    for number, element in enumerate(elements, 1):
        where = f"line {element.sourceline}" if root is not None else f"row {number}"
        checker.row(element, (reader, problems), where)
    checker.finish()
    if not elements and not sitemap.rows and sitemap.complete:
        news = root is not None and NEWS_NAMESPACE in root.nsmap.values()
        findings.add("news.empty" if news else "rows.empty", "document")


def shown(url: str) -> str:
    """An address as part of a place: whole unless it is endless."""
    return url if len(url) <= 200 else f"{url[:200]}..."


def _elements(text: bytes, sitemap: Sitemap) -> tuple[Any, list[Any], frozenset[str]]:
    """The root, the row elements, and the names of the document's own entities.

    No root, and no true line numbers, where the document is not well-formed or declares entities; nothing of a text.
    """
    if sitemap.kind == "text":
        return None, [], frozenset()
    # The declaration names the encoding that the bytes had before; blanks in its place keep what it parts asunder.
    text = _XML.sub(lambda found: b" " + b"\n" * found[0].count(b"\n"), text, count=1)
    own = any(problem.rule == "xml.doctype" for problem in sitemap.problems)
    if not own and not is_flooded(text):
        try:
            root = parse_strictly(text)
            return root, list(row_elements(root, "urlset")), frozenset()
        except etree.XMLSyntaxError:
            pass
    tree = read_tree(text, [])
    if tree.plain is None:
        return None, list(tree.rows), tree.entities
    # Plain behind junk, or behind a root of too many attributes: its rows are well-formed by themselves.
    row, name = (b"<sitemap>", b"sitemapindex") if tree.form == "index" else (b"<url>", b"urlset")
    start = text.find(row)
    if start >= 0:
        try:
            root = parse_strictly(b"<" + name + b">" + text[start:])
            return None, list(row_elements(root, tree.form)), tree.entities
        except etree.XMLSyntaxError:
            pass  # beyond what libxml2 takes: megabytes of white space
    return None, [], tree.entities


def _check_encoding(body: bytes, findings: Findings) -> None:
    """A sitemap must be UTF-8, and say so where it says anything; wrong bytes are the parser's to find."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00<" in body[:8] or b"<\x00" in body[:8]:
        findings.add("encoding.utf8", "document", "it is in UTF-16 or UTF-32")
        return
    declaration = _XML.match(body.removeprefix(b"\xef\xbb\xbf"))
    encoding = _ENCODING.search(declaration[0]) if declaration is not None else None
    name = encoding[1].decode("ascii", "replace") if encoding is not None else "utf-8"
    if name.lower() not in ("utf-8", "utf8"):
        rule = "encoding.declared" if body.isascii() else "encoding.utf8"
        findings.add(rule, "line 1", f"it is declared as {name}")


def _check_namespaces(root: Any, elements: list[Any], findings: Findings) -> None:
    place = f"line {root.sourceline}"
    namespace = etree.QName(root).namespace or ""
    if not namespace:
        findings.add("namespace.missing", place, f'xmlns="{NAMESPACE}"')
    elif namespace != NAMESPACE:
        findings.add("namespace.wrong", place, f"{namespace[:100]!r} instead of {NAMESPACE}")
    seen: set[tuple[str, str]] = set()
    for element in elements:
        for child in element:
            name, at = local(child.tag), etree.QName(child).namespace or ""
            if name in _EXTENSIONS and at != _EXTENSIONS[name] and (name, at) not in seen and len(seen) < 100:
                seen.add((name, at))
                said = f"{name} is in {at[:100]!r} instead of {_EXTENSIONS[name]}"
                findings.add("namespace.extension", f"line {child.sourceline}", said)


class _Checker:
    """Goes through the rows of one document. `url` is where it is published, empty where that is not known."""

    def __init__(self, url: str, sitemap: Sitemap, findings: Findings, now: datetime) -> None:
        self._url = url
        self._host = host_of(url) if url else ""
        # By their keys, so that a default port or an escape makes no other folder.
        self._folder = page_key(url).partition("?")[0].rpartition("/")[0] + "/"
        self._scheme = self._folder.partition(":")[0]
        self._index = sitemap.kind == "index"
        self._findings = findings
        self._now = now
        self._news = NewsBlocks(now, findings)
        self._first: dict[str, str] = {}
        self._lastmods: Counter[str] = Counter()
        self._rows = 0

    def row(self, element: Any, read: tuple[Reader, list[Problem]], where: str) -> None:
        """Check one `url` or `sitemap` element, which starts at `where`."""
        reader, problems = read
        problems.clear()
        rows: list[Row] = reader.row(element)
        written = next((text_of(child) for child in element if local(child.tag) == "loc"), "")
        place = f"{where}, {shown(written)}" if written else where
        for problem in problems:
            said = f"{problem.message}: {written[:80]!r}" if problem.rule == "row.relative" else problem.message
            self._findings.add(problem.rule, place, said)
        relative = any(problem.rule == "row.relative" for problem in problems)
        for row in rows:
            if not relative:
                self.address(row.url, place)
        self._rows += 1
        for child in element:
            self._field(child, local(element.tag), place)

    def address(self, address: str, place: str) -> None:
        """Check a usable, absolute address of a row."""
        add = self._findings.add
        if found := _UNESCAPED.search(address):
            add("row.escape", place, f"{found[0]!r} at character {found.start() + 1}")
        before = self._first.setdefault(address, place)
        if before is not place:
            add("loc.duplicate", place, f"it is also at {before.partition(',')[0]}")
        if self._index and address == self._url:
            add("index.self", place)
        elif self._index and _INDEX_NAME.search(address.rpartition("/")[2]):
            add("index.nested", place)
        if not self._url:
            return
        scheme = address.partition(":")[0].lower()
        host = host_of(address)
        if host != self._host:
            add("loc.host", place, f"{host} is not {self._host}")
        elif scheme != self._scheme:
            add("loc.scheme", place, f"{scheme} is not {self._scheme}")
        elif not address.startswith(self._folder) and not page_key(address).startswith(self._folder):
            add("index.folder" if self._index else "loc.folder", place, urlsplit(self._folder).path)

    def _field(self, element: Any, row: str, place: str) -> None:
        """Check one child element of a row."""
        name, namespace = local(element.tag), etree.QName(element).namespace or ""
        text = text_of(element)
        if name in _EXTENSIONS or (namespace not in ("", NAMESPACE) and namespace != _namespace(element.getparent())):
            if name == "news":
                self._news.check(element, place)
            return
        if name not in _FIELDS.get(row, ()):
            index = row == "sitemap" and name in _FIELDS["url"]
            self._findings.add("index.field" if index else "row.element", place, name[:40])
        elif name == "lastmod":
            self._lastmod(text, place)
        elif name == "changefreq" and text.lower() not in _FREQUENCIES:
            self._findings.add("row.changefreq", place, repr(text[:40]))
        elif name == "priority" and _PRIORITY.fullmatch(text) is None:
            self._findings.add("row.priority", place, repr(text[:40]))

    def _lastmod(self, text: str, place: str) -> None:
        if not text:
            self._findings.add("lastmod.empty", place)
            return
        date = parse_date(text)
        if date.instant is None:
            return  # the reader has said so
        self._lastmods[date.text] += 1
        if not fits_w3c(text):
            self._findings.add("lastmod.form", place, f"{date.text[:40]!r} is not of that form")
        timed = date.zone and date.precision in ("minute", "second")
        if in_future(date.instant, self._now, zone=timed):
            self._findings.add("lastmod.future", place, date.text)

    def finish(self) -> None:
        """Tell what shows only over all rows."""
        self._news.finish()
        for text, count in self._lastmods.most_common(1):
            if self._rows >= _ENOUGH_ROWS and count >= _NEARLY_ALL * self._rows:
                rule = "lastmod.identical" if ":" in text else "lastmod.one-day"
                self._findings.add(rule, "document", f"{count} of {self._rows} rows have {text}")


def _namespace(element: Any) -> str:
    return etree.QName(element).namespace or "" if element is not None else ""
