"""From bytes to an XML text that a feed parser can be given: encoding, junk around the document, what is no feed.

Everything is decided by the bytes, never by URL or content type; a header's charset is asked only where the bytes say
nothing. Sources: XML 1.0 section 2.2 and appendix F, RFC 7303 (which puts the header first; feeds in the wild do not).
"""

from __future__ import annotations

import codecs
import html
import html.entities
import re
from dataclasses import dataclass

from monitor.core.feed_refuse import refuse_binary, refuse_text
from monitor.model import NotAFeed, Problem

MAX_ENTITY_TEXT = 1_000_000
"""Characters that all references to a document's own entities may expand to."""

_ROOTS = {"rss": "rss", "feed": "feed", "entry": "feed", "rdf": "rdf", "channel": "channel"}
_RSS = {"0.90": "rss090", "0.91": "rss091", "0.92": "rss092", "0.93": "rss093", "0.94": "rss094"}
_CDF = re.compile(r"<(?:item|channel)\b[^<>]*\s(?:href|lastmod)\s*=", re.I)
_VERSION = re.compile(r"""\sversion\s*=\s*["']\s*([\w.]{1,20})""")
_MARKS = [
    (codecs.BOM_UTF8, "utf-8", 3),
    (codecs.BOM_UTF32_LE, "utf-32-le", 4),
    (codecs.BOM_UTF32_BE, "utf-32-be", 4),
    (codecs.BOM_UTF16_LE, "utf-16-le", 2),
    (codecs.BOM_UTF16_BE, "utf-16-be", 2),
    (b"\x00\x00\x00<", "utf-32-be", 0),
    (b"<\x00\x00\x00", "utf-32-le", 0),
    (b"\x00<\x00", "utf-16-be", 0),
    (b"<\x00", "utf-16-le", 0),
    (b"\x4c\x6f\xa7\x94", "cp037", 0),
]
# Codecs of Python that are no character encoding of the web, or cost more than they should.
_NO_CHARSETS = {"punycode", "idna", "unicode-escape", "unicode_escape", "raw-unicode-escape", "undefined", "utf-7"}
_WIDER = {"iso8859-1": "cp1252", "ascii": "utf-8", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']\s*([A-Za-z0-9._:-]{1,40})""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})""", re.I)
_DECLARATION = re.compile(r"<\?xml\b[^>]*\?>", re.I)
_ROOT = re.compile(r"<((?:[A-Za-z_][\w.-]*:)?([A-Za-z][\w.-]*))(?=[\s/>])")
_LATER_ROOT = re.compile(r"<\?xml\s|<(?:(?:[a-z]\w*:)?rss|rdf:RDF|feed)(?=[\s>])[^>]*>", re.I)
_RSS_IN_RDF = re.compile(
    r"<(?:[a-z]\w*:)?(?:channel|item)(?=[\s>/])|purl\.org/rss/1\.0/[\"']|netscape\.com/rdf/simple/0\.9/", re.I
)
_MISC = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.S)
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*(?:\[(?P<subset>[^\]]*)\][^>]*)?>", re.I)
_ENTITY = re.compile(
    r"""<!ENTITY\s+(\w{1,40})\s+(?:"(&\#\w{1,8};|[^&"<>%]{0,200})"|'(&\#\w{1,8};|[^&"'<>%]{0,200})')\s*>"""
)
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|(?P<remark><!--.*?(?:-->|\Z)|<\?[^<>]*\?>)"
    r"|&(?:#(?P<code>\d{1,8}|x[0-9a-fA-F]{1,7});|#[0-9a-zA-Z]*;?|(?P<name>\w{1,40});)?",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Document:
    """A feed's text from its root element to that element's end tag, without XML declaration.

    `format` is as in `Feed.format`; `tag` the root's name as written; `whole` says that the root's end tag was there;
    `entities` are names of the document's own; `skipped` added to a line number in `text` gives that in
    the body.
    """

    text: str
    format: str
    tag: str
    whole: bool
    problems: tuple[Problem, ...]
    entities: frozenset[str] = frozenset()
    skipped: int = 0


def read_document(data: bytes, url: str, content_type: str | None) -> Document:
    """Find the feed in `data`; raises NotAFeed with a sentence on what is there instead."""
    problems: list[Problem] = []
    refuse_binary(data)
    text = decode(data, content_type, problems)
    start, found = _find_root(text, url, problems)
    name, local = found[1], found[2].lower()
    if local not in _ROOTS or (local == "rdf" and not _RSS_IN_RDF.search(text, found.start())):
        refuse_text(text, url, found[2])
    prolog, body = text[start : found.start()], text[found.start() :]
    body, whole = _trim(body, name, problems)
    skipped = text.count("\n", 0, found.start())
    entities: frozenset[str] = frozenset()
    if doctype := _DOCTYPE.search(prolog):
        declared = _own_entities(doctype["subset"] or "", body, problems)
        if declared:
            entities = frozenset(declared)
            lines = "".join(f'<!ENTITY {key} "{value}">\n' for key, value in declared.items())
            body = f"<!DOCTYPE {name} [\n{lines}]>\n{body}"
            skipped -= len(declared) + 2
    kind = _format(_ROOTS[local], text[found.start() : text.find(">", found.start()) + 1], text)
    return Document(body, kind, name, whole, tuple(problems), entities, skipped)


def _format(root: str, opening: str, text: str) -> str:
    """The format's name, by root element, version attribute and namespace."""
    if root == "rdf":
        return "rdf"
    if root == "channel":
        return "cdf" if _CDF.search(text) else "rss20"
    found = _VERSION.search(opening)
    version = found[1] if found else ""
    if root == "feed":
        return "atom03" if version.startswith("0.") or "purl.org/atom/ns" in opening.lower() else "atom10"
    return _RSS.get(version[:4], "rss20")


def decode(data: bytes, content_type: str | None, problems: list[Problem]) -> str:
    """`data` as text: byte-order mark, else UTF-8 where it proves itself, else the declaration, else the header."""
    for mark, encoding, skip in _MARKS:
        if data.startswith(mark):
            return _cleaned(_forced(data[skip:], encoding, problems), problems)
    declared = _DECLARED.search(data[:1000])
    named = _codec(declared[1].decode("ascii") if declared else None, problems)
    header = _CHARSET.search(content_type or "")
    stated = _codec(header[1], problems) if header else None
    if named is None and not (stated or "").startswith("iso2022"):  # whose bytes are all ASCII
        named = "utf-8"
    for encoding in filter(None, (named, stated)):
        single = encoding.startswith(("cp12", "iso8859", "koi8", "mac"))
        # A single-byte label over bytes that are valid UTF-8 beyond ASCII is wrong all but certainly.
        for actual in ("utf-8", encoding) if single else (encoding,):
            try:
                text = data.decode(actual)
            except UnicodeDecodeError:
                continue
            if actual != encoding and not text.isascii():
                problems.append(
                    Problem("encoding.label", "byte 0", f"Labelled as {encoding}, but the bytes are UTF-8.")
                )
            return _cleaned(text, problems)
        if encoding != "utf-8":
            problems.append(Problem("encoding.label", "byte 0", f"The bytes are labelled as {encoding}, but are not."))
    return _cleaned(_forced(data, "utf-8", problems), problems)


def _codec(label: str | None, problems: list[Problem]) -> str | None:
    if label is None:
        return None
    try:
        name = codecs.lookup(label).name
        if name in _NO_CHARSETS:
            raise LookupError(label)
        b"".decode(name)  # refuses what is a codec, but not of text
    except (LookupError, ValueError):
        problems.append(Problem("encoding.unknown", "byte 0", f"There is no character encoding {label!r}."))
        return None
    return _WIDER.get(name, "utf-8" if name.startswith(("utf-16", "utf_16", "utf-32")) else name)


def _forced(data: bytes, encoding: str, problems: list[Problem]) -> str:
    """Decoded for sure: with replacement characters where a few bytes are bad, as windows-1252 where most are."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"byte {error.start}"
    text = data.decode(encoding, "replace")
    bad = text.count("\ufffd")
    if encoding == "utf-8" and bad > sum(map(len, re.findall(r"[^\x00-\x7f\ufffd]+", text))):
        problems.append(Problem("encoding.label", where, "The bytes are not UTF-8; they were read as windows-1252."))
        return data.decode("cp1252", "replace")
    problems.append(Problem("encoding.invalid", where, f"{bad} bytes are not {encoding}; they were replaced."))
    return text


def _cleaned(text: str, problems: list[Problem]) -> str:
    if found := _ILLEGAL.search(text):
        place = f"line {text.count(chr(10), 0, found.start()) + 1}"
        problems.append(
            Problem("xml.character", place, f"U+{ord(found[0]):04X} is not allowed in XML; it was dropped.")
        )
        text = _ILLEGAL.sub("", text)
    return text


def _find_root(text: str, url: str, problems: list[Problem]) -> tuple[int, re.Match[str]]:
    """Where the document starts, and its root's start tag."""
    start = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    if start == len(text):
        raise NotAFeed("The body is empty.")
    found = _root_after(text, start)
    if found is None or found[2].lower() not in _ROOTS:
        later = _LATER_ROOT.search(text, start, start + 65536)
        page = found is not None and found[2].lower() in ("html", "head", "body")
        moved = _root_after(text, later.start()) if later and not page and later.start() > start else None
        if moved is None or moved[2].lower() not in _ROOTS or later is None:
            if found is None:
                refuse_text(text, url, None)
            return start, found
        problems.append(
            Problem("xml.before", "line 1", f"There is text before the document: {text[start : later.start()][:80]!r}.")
        )
        return later.start(), moved
    if start and _DECLARATION.match(text, start) and text[:start] != "\ufeff":
        problems.append(Problem("xml.before", "line 1", "There is white space before the XML declaration."))
    return start, found


def _root_after(text: str, start: int) -> re.Match[str] | None:
    place = _MISC.match(text, start)
    position = place.end() if place else start
    if doctype := _DOCTYPE.match(text, position):
        place = _MISC.match(text, doctype.end())
        position = place.end() if place else doctype.end()
    return _ROOT.match(text, position)


def _trim(body: str, name: str, problems: list[Problem]) -> tuple[str, bool]:
    """`body` up to the end tag of its root, and whether that was there."""
    end = body.rfind(f"</{name}")
    close = body.find(">", end) if end >= 0 else -1
    if close < 0 or body[end + 2 + len(name) : close].strip():
        ends = list(re.finditer(rf"</{re.escape(name)}\s*>", body, re.I))
        if not ends:
            return body, re.match(r"<[^<>]*/>\s*\Z", body) is not None
        close = ends[-1].end() - 1
    rest = body[close + 1 :]
    misc = _MISC.match(rest)
    if misc is not None and misc.end() < len(rest):
        problems.append(
            Problem("xml.after", "end", f"There is text after the document: {rest[misc.end() :][:80].strip()!r}.")
        )
    return body[: close + 1], True


def _own_entities(subset: str, body: str, problems: list[Problem]) -> dict[str, str]:
    """The harmless entities of a DOCTYPE: plain text, bounded in what all references to them expand to."""
    declared = {name: value or other for name, value, other in _ENTITY.findall(subset)[:300]}
    used = {name: value for name, value in declared.items() if f"&{name};" in body}
    if sum(len(value) * body.count(f"&{name};") for name, value in used.items()) > MAX_ENTITY_TEXT:
        problems.append(
            Problem("xml.entities", "line 1", "The document's entities would expand too far; none was read.")
        )
        return {}
    if subset.count("<!ENTITY") > len(declared):
        problems.append(Problem("xml.entities", "line 1", "Entities that are not plain text were not read."))
    return used


def mend_references(document: Document) -> str:
    """The text with every `&` that XML does not allow made a character or `&amp;`, CDATA sections left alone.
    Comments, which may be what is malformed, and processing instructions are dropped.

    Names of HTML's characters become those; what is no reference at all stays readable as it was written.
    """

    def mend(found: re.Match[str]) -> str:
        whole, code, name = found[0], found["code"], found["name"]
        if whole[0] == "<":
            return "" if found["remark"] else whole
        if code is not None:
            return _character(int(code[1:], 16) if code[0] == "x" else int(code)) or whole
        if name is None:
            return "&amp;" + whole[1:]
        if name in ("amp", "lt", "gt", "quot", "apos") or name in document.entities:
            return whole
        return html.entities.html5.get(f"{name};") or "&amp;" + whole[1:]

    return _REFERENCE.sub(mend, document.text)


def _character(number: int) -> str:
    """What a reference to a character becomes; "" where it may stay as it is."""
    if number in (9, 10, 13, 32, 160):
        return chr(number)
    if 0x7F < number < 0xA0:
        return html.unescape(f"&#{number};")  # windows-1252, as browsers read it
    allowed = 0x20 <= number < 0xD800 or 0xE000 <= number < 0xFFFE or 0x10000 <= number <= 0x10FFFF
    return "" if allowed else "\ufffd"
