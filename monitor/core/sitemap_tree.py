"""From the bytes of an XML sitemap to its row elements, whole or damaged (pure).

Three steps, each only where the one before failed: the document as it is, strictly; the document mended in ways that
lose no row; and out of what is damaged, those rows that are well-formed each by itself. Nothing is ever taken from an
element that was not closed, which is what a recovering parser does: it makes URLs out of halves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import html5
from typing import Any, Literal

from lxml import etree

from monitor.core.sitemap_plain import PlainRow, read_plain
from monitor.core.sitemap_text import is_html, refusal
from monitor.model import Problem

Form = Literal["urlset", "index", "feed"]

_ROOTS: dict[bytes, Form] = {
    b"urlset": "urlset",
    b"sitemapindex": "index",
    b"rss": "feed",
    b"feed": "feed",
    b"rdf": "feed",
}
_ROOT = re.compile(rb"<((?:[a-z_][\w.-]*:)?(urlset|sitemapindex|rss|feed|rdf))(?=[\s/>])", re.I)
_PROLOG = re.compile(
    rb"(?:\s++|\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|(<!DOCTYPE[^\[<>]*+(?:\[(?:[^\]\"'<]++|\"[^\"]*+\"|'[^']*+'|<!--(?:.*?-->|.*)|<)*+\]\s*+)?+>))*+",
    re.DOTALL | re.I,
)
_FIRST = re.compile(rb"<([A-Za-z_][\w.:-]*)")
_OWN_ENTITY = re.compile(rb"<!ENTITY\s+([\w.:-]+)\s")
_JUNK = 262_144  # bytes of warnings before the document that are searched for its root

# An unclosed CDATA section or comment runs to the end, once: looked for at each opening it would cost quadratic time.
_SPECIAL = rb"<!(?:(\[CDATA\[(?:.*?\]\]>|.*))|(--.*?-->)|(--.*))"
_MENDABLE = re.compile(
    _SPECIAL + rb"|&(?!(?:amp|lt|gt|quot|apos);)(?:#([0-9]{1,9}|x[0-9a-f]{1,8});|([a-z][\w.-]{0,40});)?",
    re.DOTALL | re.I,
)
_NAMES = re.compile(_SPECIAL + rb"|</?[A-Za-z_][\w.:-]*", re.DOTALL)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r"))
_TAG_PREFIX = re.compile(rb"</?([A-Za-z_][\w.-]*):")
_ATTRIBUTE_PREFIX = re.compile(rb"\s([A-Za-z_][\w.-]*):[A-Za-z_][\w.-]*\s*=\s*[\"']")
_DECLARED = re.compile(rb"xmlns:([A-Za-z_][\w.-]*)\s*=")
_OPENING = re.compile(rb"<[\w.:-]+(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>")
_ATTRIBUTES = re.compile(rb"\s[^\s=<>\"'/]+\s*=\s*(?:\"[^\"<]*+\"|'[^'<]*+')")

_POSITION = re.compile(r", line \d+, column \d+.*", re.DOTALL)

_MAX_PREFIXES = 200
_MAX_ATTRIBUTES = 1_000
_LONG_TAG = 16_384
_GROUP = 1_000
_MAX_BROKEN = 5_000
_MAX_MENDS = 500_000  # ampersands, comments and CDATA sections; a document with more is left damaged


@dataclass(frozen=True, slots=True)
class Tree:
    """A document's row elements in document order. Iterate `rows` once, or where `plain` is given read that instead.

    `form` is told by the root. `whole` is False where anything may have been lost. `entities` are names of the
    document's own: they are not expanded but stand in the texts as ``&name;``.
    """

    form: Form
    rows: Iterator[Any]
    whole: bool
    entities: frozenset[str] = frozenset()
    plain: list[PlainRow] | None = None


@dataclass(slots=True)
class _Mending:
    data: bytes
    prefixes: list[bytes]
    done: list[tuple[str, str]] = field(default_factory=list)


def read_tree(data: bytes, problems: list[Problem]) -> Tree:
    """The row elements of a document in UTF-8. Raises NotASitemap where no root of a sitemap begins."""
    prolog = _PROLOG.match(data)
    start = prolog.end() if prolog is not None else 0
    root = _ROOT.match(data, start)
    clean = True
    if root is None:
        root = _root_behind_junk(data, start)
        clean = False
        problems.append(Problem("xml.leading", "start", "there is text before the document"))
    elif not data.startswith(b"<"):
        problems.append(Problem("xml.blank", "start", "there is white space before the document"))
    if root[2].isupper() and root[2] != b"RDF":
        problems.append(Problem("xml.case", "document", "element names are in upper case"))
    doctype = (prolog[1] or b"") if prolog is not None else b""
    own = frozenset(name.decode("ascii", "replace") for name in _OWN_ENTITY.findall(doctype)[:_MAX_PREFIXES])
    if own:
        problems.append(Problem("xml.doctype", "start", "the document declares entities; they are not expanded"))
    form = _ROOTS[root[2].lower()]
    body = data[root.start() :] if root.start() else data
    plain = read_plain(body)
    if plain is not None:
        return Tree(form, iter(()), clean, plain=plain)
    rows, whole = _rows(body, form, problems, data.count(b"\n", 0, root.start()))
    return Tree(form, rows, whole and clean, own)


def _root_behind_junk(data: bytes, start: int) -> re.Match[bytes]:
    """The root behind warnings that a server wrote before the document."""
    first = _FIRST.search(data, start, start + _JUNK)
    root = _ROOT.search(data, start, start + _JUNK)
    if root is None or data[start : start + 1] in (b"{", b"[") or is_html(data[start : root.start()]):
        raise refusal(data[start:], first[1].decode("ascii", "replace") if first is not None else None)
    return root


def _rows(data: bytes, form: Form, problems: list[Problem], lines: int) -> tuple[Iterator[Any], bool]:
    flooded = is_flooded(data)
    first: etree.XMLSyntaxError | None = None
    if not flooded:
        try:
            return row_elements(parse_strictly(data), form), True
        except etree.XMLSyntaxError as error:
            first = error
    mending = _mend(data)
    for step in () if flooded or not _has_end(mending.data) else (_root_replaced, _names_lowered):
        step(mending)
        try:
            root = parse_strictly(mending.data)
        except etree.XMLSyntaxError as error:
            first = error
        else:
            problems.extend(Problem(rule, "document", message) for rule, message in mending.done)
            return row_elements(root, form), True
    if first is None:
        problems.append(Problem("xml.attributes", "document", f"an element with over {_MAX_ATTRIBUTES} attributes"))
    else:
        line = (first.position[0] or 1) + lines if first.position else 1
        problems.append(Problem("xml.damaged", f"line {line}", f"not well-formed: {_POSITION.sub('', first.msg)}"))
    return _of_pieces(mending, form, problems), False


def _has_end(data: bytes) -> bool:
    """Whether the root, which `data` begins with, is closed anywhere: no mending completes a document that was cut."""
    root, opening = _ROOT.match(data), _OPENING.match(data)
    if root is None or (opening is not None and opening[0].endswith(b"/>")):
        return True
    return re.search(rb"</%s\s*+>" % re.escape(root[1]), data, re.I) is not None


def parse_strictly(data: bytes) -> Any:
    """The root of a document in UTF-8 that is not flooded; raises XMLSyntaxError for what is not well-formed."""
    # Without `huge_tree` libxml2 stops at a depth of 256 and at texts of 10 MB.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        remove_blank_text=True,
    )
    return etree.fromstring(data, parser)


def is_flooded(data: bytes) -> bool:
    """Whether an element has so many attributes that the parser would take quadratic time over them.

    A tag of that length spans a whole aligned block without a `<`.
    """
    block = _LONG_TAG // 2
    at = 0
    while (at := _block_without_tag(data, at, block)) >= 0:
        opening = data.rfind(b"<", 0, at)
        end = data.find(b"<", at)
        end = len(data) if end < 0 else end
        count = 0
        if opening >= 0 and _FIRST.match(data, opening):
            for count, _ in enumerate(_ATTRIBUTES.finditer(data, opening, end), 1):
                if count > _MAX_ATTRIBUTES:
                    return True
        at = (end // block + 1) * block
    return False


def _block_without_tag(data: bytes, at: int, block: int) -> int:
    return next((i for i in range(at, len(data), block) if data.find(b"<", i, i + block) < 0), -1)


def _mend(data: bytes) -> _Mending:
    """Mend what loses no row: forbidden characters, unknown entities, bare ampersands, comments of the wrong form."""
    done: list[tuple[str, str]] = []
    plain = data.translate(None, _CONTROLS).replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")
    if len(plain) != len(data):
        done.append(("xml.control", "characters that XML forbids were taken out"))
    entities = 0

    def mended(found: re.Match[bytes]) -> bytes:
        nonlocal entities
        section, comment, unclosed, number, name = found.groups()
        if section is not None or unclosed is not None:
            return found[0]
        if comment is not None:
            return b""
        entities += 1
        if number is not None:
            return _character(number)
        return _entity(name) if name is not None else b"&amp;" + found[0][1:]

    data = _MENDABLE.sub(mended, plain, _MAX_MENDS)
    if entities:
        done.append(("xml.entity", "an ampersand stands alone or names a character that XML does not know"))
    prefixes = {found[1] for found in _TAG_PREFIX.finditer(data)} | {f[1] for f in _ATTRIBUTE_PREFIX.finditer(data)}
    prefixes -= {b"xml", b"xmlns"}
    if prefixes - {found[1] for found in _DECLARED.finditer(data)}:
        done.append(("xml.prefix", "a namespace prefix is used but not declared"))
    return _Mending(data, sorted(prefixes)[:_MAX_PREFIXES], done)


def _character(number: bytes) -> bytes:
    """A numeric reference as a number, of a character that XML allows; nothing of any other."""
    code = int(number[1:], 16) if number[:1] in b"xX" else int(number)
    allowed = code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return b"&#%d;" % code if allowed else b""


def _entity(name: bytes) -> bytes:
    character = html5.get(name.decode("ascii", "replace") + ";")
    return b"&amp;%s;" % name if character is None else "".join(f"&#{ord(c)};" for c in character).encode()


def _declarations(mending: _Mending) -> bytes:
    return b"".join(b' xmlns:%s="urn:prefix:%s"' % (name, name) for name in mending.prefixes)


def _root_replaced(mending: _Mending) -> None:
    """Write the root's tag anew: doubled attributes and missing namespaces in it are no reason to lose anything."""
    opening = _OPENING.match(mending.data)
    if opening is None:
        return
    name = _FIRST.match(mending.data)
    assert name is not None
    lines = b"\n" * opening[0].count(b"\n")
    close = b"/>" if opening[0].endswith(b"/>") else b">"
    mending.data = b"<" + name[1] + _declarations(mending) + lines + close + mending.data[opening.end() :]
    if not mending.done:
        mending.done.append(("xml.root", "attributes, comments or namespaces are not well-formed"))


def _names_lowered(mending: _Mending) -> None:
    """Elements opened in one case and closed in another."""
    mending.data = _NAMES.sub(lambda found: found[0] if found[0].startswith(b"<!") else found[0].lower(), mending.data)
    mending.prefixes = sorted({*mending.prefixes, *(name.lower() for name in mending.prefixes)})
    mending.done.append(("xml.case", "element names are closed in another case than they were opened in"))
    _root_replaced(mending)


_ROW_NAMES = {True: ("item", "entry"), False: ("url", "sitemap")}


def row_elements(root: Any, form: Form) -> Iterator[Any]:
    """The row elements below `root`, in document order."""
    names = [spelt for name in _ROW_NAMES[form == "feed"] for spelt in (name, name.upper(), name.title())]
    iterator: Iterator[Any] = root.iter(*(f"{{*}}{name}" for name in names))
    return iterator


def _of_pieces(mending: _Mending, form: Form, problems: list[Problem]) -> Iterator[Any]:
    """The rows that are well-formed each by itself."""
    head, tail = b"<urlset" + _declarations(mending) + b">", b"</urlset>"
    pieces = _pieces(mending.data, form == "feed")
    broken = 0
    while group := [piece for piece, _ in zip(pieces, range(_GROUP), strict=False)]:
        work = [group]
        while work and broken <= _MAX_BROKEN:
            part = work.pop()
            try:
                root = None if is_flooded(joined := b"".join(part)) else parse_strictly(head + joined + tail)
            except etree.XMLSyntaxError:
                root = None
            if root is not None:
                yield from root
            elif len(part) == 1:
                broken += 1
            else:
                work += [part[len(part) // 2 :], part[: len(part) // 2]]
    if broken:
        problems.append(Problem("row.damaged", "document", f"{broken} rows are damaged themselves and left out"))


def _pieces(data: bytes, feed: bool) -> Iterator[bytes]:
    """Every stretch from a row's start tag to its end tag that has no other start tag within."""
    names = b"|".join(name.encode() for name in _ROW_NAMES[feed])
    token = re.compile(rb"<!--|<!\[CDATA\[|<(/?)((?:[\w.-]+:)?(?:" + names + rb"))(?=[\s/>])", re.I)
    at = 0
    start, opened = -1, b""
    while found := token.search(data, at):
        at = found.end()
        if found[2] is None:
            end = b"-->" if found[0] == b"<!--" else b"]]>"
            at = data.find(end, at)
            if at < 0:
                return
        elif not found[1]:
            start, opened = found.start(), found[2].lower()
        elif start >= 0 and found[2].lower() == opened:
            at = data.find(b">", at) + 1
            if not at:
                return
            yield data[start:at]
            start = -1
