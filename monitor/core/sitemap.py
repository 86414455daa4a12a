"""Sitemaps of every form: bytes in, rows and problems out (pure).

Read by local name, whatever the namespace (sitemaps.org 0.9 and its relatives, none, prefixed, undeclared, upper case).
A strict parse first; where that fails, damaged XML is cut back to what was closed before the damage, so that no URL is
ever made from an unclosed element, and the read is marked as not complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from monitor.core.dates import parse_date
from monitor.core.decode import CAP, decode
from monitor.core.sitemap_rows import Reader, local
from monitor.core.sitemap_text import is_text_list, read_text, refuse, to_utf8
from monitor.model import NotASitemap, Problem, Row, Sitemap

MAX_ROWS = 1_000_000
PROTOCOL_ROWS = 50_000
PROTOCOL_NEWS = 1_000
PROTOCOL_LOC = 2_048

_ROOTS = {"urlset": "urlset", "sitemapindex": "index", "rss": "feed", "feed": "feed", "rdf": "feed"}
_CONTAINERS = frozenset({"url", "sitemap", "item", "entry"})


def parse_sitemap(data: bytes, url: str, *, max_rows: int = MAX_ROWS, cap: int = CAP) -> Sitemap:
    """Read a sitemap: urlset, index, text list, RSS, Atom or RDF; gzip is peeled off.

    Raises only NotASitemap, for HTML, JSON, error documents, an empty body or anything else that is no sitemap. Of
    damaged documents the rows that were closed before the damage are returned, with `complete` False.
    """
    peeled = decode(data, cap=cap)
    problems = list(peeled.problems)
    body = peeled.data
    complete = peeled.complete
    if len(body) > cap:
        problems.append(Problem("size.cap", f"byte {cap}", f"larger than {cap} bytes; read up to there"))
        body, complete = body[:cap], False
    text = to_utf8(body, problems)
    stripped = text.lstrip()
    if not stripped:
        raise NotASitemap("the body is empty" if complete else "the compressed data is damaged from the start")
    if is_text_list(stripped):
        rows = read_text(stripped, url, problems, max_rows)
        if not complete and rows:
            rows.pop()  # the last line of a cut list may itself be cut
        return Sitemap("text", url, tuple(rows), complete, problems=tuple(problems))
    start = stripped.find(b"<")
    refuse(stripped)
    if start > 0 or len(stripped) != len(text):
        problems.append(Problem("xml.leading", "start", "there is text before the document"))
        stripped = stripped[start:]
    root, whole = _tree(stripped, problems)
    return _sitemap(root, url, complete and whole, problems, max_rows)


def _parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        recover=recover,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )


_HTML_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SPECIAL = re.compile(rb"<!\[CDATA\[.*?\]\]>|" + _HTML_ENTITY.pattern, re.DOTALL)


def _tree(data: bytes, problems: list[Problem]) -> tuple[Any, bool]:
    """The document's root element, and whether nothing of it can have been lost."""
    try:
        return etree.fromstring(data, _parser(recover=False)), True
    except etree.XMLSyntaxError as error:
        first = error
    mended, sloppy = _mend(data)
    if sloppy:
        try:
            root = etree.fromstring(mended, _parser(recover=False))
        except etree.XMLSyntaxError as error:
            first = error
        else:
            for rule, message in sloppy:
                problems.append(Problem(rule, "document", message))
            return root, True
    line = first.position[0] if first.position else 0
    problems.append(Problem("xml.damaged", f"line {line}", f"not well-formed: {first.msg}"))
    kept = _closed_part(mended)
    try:
        root = etree.fromstring(kept, _parser(recover=True))
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        raise NotASitemap(f"not XML that can be read: {first.msg}")
    return root, False


def _mend(data: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    """Mend what loses no row: control characters, unknown entities, bare ampersands, undeclared prefixes."""
    done: list[tuple[str, str]] = []
    if _CONTROL.search(data):
        data = _CONTROL.sub(b"", data)
        done.append(("xml.control", "control characters, which XML forbids, were taken out"))

    def unescape(match: re.Match[bytes]) -> bytes:
        return match[0] if match[0].startswith(b"<") else b"&amp;"

    fixed = _SPECIAL.sub(unescape, data)
    if fixed != data:
        data = fixed
        done.append(("xml.entity", "an ampersand stands alone or names an entity that XML does not know"))
    head = re.search(rb"<[A-Za-z_][^\s/>]*", data)
    if head is not None:
        used = set(re.findall(rb"<([A-Za-z_][\w.-]*):", data[:2_000_000]))
        declared = set(re.findall(rb"xmlns:([A-Za-z_][\w.-]*)\s*=", data[:2_000_000]))
        if missing := used - declared - {b"xml"}:
            names = b"".join(b' xmlns:%s="urn:undeclared:%s"' % (name, name) for name in sorted(missing))
            data = data[: head.end()] + names + data[head.end() :]
            done.append(("xml.prefix", "a namespace prefix is used but not declared"))
    return data, done


_CLOSE = re.compile(rb"</(?:[\w.-]+:)?(?:url|sitemap|item|entry)\s*>", re.IGNORECASE)


def _closed_part(data: bytes) -> bytes:
    """Everything up to the end of the last row that was closed: what follows may be half a URL."""
    last = None
    for last in _CLOSE.finditer(data):
        pass
    return data[: last.end()] if last else data[: data.find(b">") + 1] or data


def _sitemap(root: Any, url: str, complete: bool, problems: list[Problem], max_rows: int) -> Sitemap:
    name = local(root.tag)
    kind = _ROOTS.get(name.lower())
    if kind is None:
        raise NotASitemap(f"the document's root is <{name[:40]}>, not a sitemap's")
    if name != name.lower() and name.lower() != "rdf":
        problems.append(Problem("xml.case", "root", "element names are in upper case"))
    reader = Reader(url, problems, parse_date)
    rows: list[Row] = []
    news = 0
    for element in _rows(root):
        rows.extend(reader.row(element, kind))
        if rows and rows[-1].news is not None:
            news += 1
        if len(rows) >= max_rows:
            problems.append(Problem("rows.cap", f"row {max_rows}", f"more than {max_rows} rows; read up to there"))
            complete = False
            break
    if len(rows) > PROTOCOL_ROWS:
        problems.append(Problem("rows.protocol", "document", f"{len(rows)} rows; the protocol allows {PROTOCOL_ROWS}"))
    if news > PROTOCOL_NEWS:
        problems.append(Problem("news.protocol", "document", f"{news} news entries; Google reads {PROTOCOL_NEWS}"))
    if kind == "urlset" and rows and all(row.child for row in rows):
        kind = "index"
    return Sitemap(kind, url, tuple(rows), complete, is_news=news > 0, problems=tuple(problems))  # type: ignore[arg-type]


def _rows(root: Any) -> Iterator[Any]:
    for element in root.iter(etree.Element):
        if local(element.tag).lower() in _CONTAINERS:
            yield element
