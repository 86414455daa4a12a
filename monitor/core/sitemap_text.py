"""What of a sitemap is decided before XML: encodings, plain lists of URLs, and what is no sitemap at all (pure)."""

from __future__ import annotations

import codecs
import re

from monitor.core.url import absolute
from monitor.model import NotASitemap, Problem, Row

MAX_PROBLEMS = 200
"""Problems noted of one document; further ones say nothing new."""

MAX_ADDRESS = 16_384
"""Characters; no server takes a longer URL."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"'][^>]*\?>")
# Python knows codecs that are no charset (`punycode`, `unicode_escape`): only real ones are believed. UTF-16 is not
# among them, for a declaration that can be read as ASCII is not in UTF-16.
_CHARSET = re.compile(
    r"utf-?8|(?:iso-?8859|windows|koi8)-\w{1,5}|cp\d{3,4}|latin-?\d|big5(?:-?hkscs)?|gb2312|gbk|gb18030"
    r"|euc-(?:jp|kr|tw)|(?:x-)?s(?:hift[_-]?)?jis|iso-2022-jp|us-ascii|ascii|macintosh|tis-620",
    re.I | re.ASCII,
)
# WHATWG Encoding, section 4.2: these labels mean their supersets.
_WIDER = {
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "tis-620": "cp874",
    "macintosh": "mac_roman",
}
_WRONG_BYTES = 10_000
_BLOCK = 65_536  # bytes decoded at a time: an error carries a copy of what it was found in
_BREAK = re.compile(r"[\r\n]+")
_SPACE = re.compile(r"\s")
_HTML = re.compile(rb"<!doctype html|<(?:html|head|body|script|title|meta)[\s>]", re.I)


def to_utf8(data: bytes, problems: list[Problem]) -> bytes:
    """The document in UTF-8, without a BOM: the BOM decides, then the XML declaration, then UTF-8, then cp1252.

    Never raises. Single bytes that are no UTF-8 are read as cp1252, with a problem; the rest stays as it is.
    """
    encoding = None
    for bom, name in _BOMS:
        if data.startswith(bom):
            data, encoding = data[len(bom) :], name
            break
    if encoding is None:
        encoding = _bare_utf16(data[:4]) or _declared(data, problems)
    if encoding == "utf-8":
        return _mended_utf8(data, problems)
    try:
        return data.decode(_WIDER.get(encoding, encoding)).encode("utf-8")
    except (LookupError, ValueError):
        pass
    if not encoding.startswith("utf-"):
        try:
            utf8 = data.decode("utf-8").encode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            _note_encoding(problems, encoding)
            return utf8
    _note_encoding(problems, encoding)
    try:
        return data.decode(_WIDER.get(encoding, encoding), "replace").encode("utf-8", "replace")
    except LookupError:
        return _mended_utf8(data, problems)


def _bare_utf16(head: bytes) -> str | None:
    """UTF-16 without a BOM shows by its zero bytes (XML 1.0, appendix F)."""
    if len(head) == 4 and not head[1] and not head[3] and head[0] and head[2]:
        return "utf-16-le"
    if len(head) == 4 and not head[0] and not head[2] and head[1] and head[3]:
        return "utf-16-be"
    return None


def _declared(data: bytes, problems: list[Problem]) -> str:
    declared = _DECLARATION.search(data[:4096])
    if declared is None:
        return "utf-8"
    name = declared[1].decode("ascii").lower()
    if _CHARSET.fullmatch(name) is None:
        _note_encoding(problems, name)
        return "utf-8"
    return "utf-8" if name == "utf8" else name


def _mended_utf8(data: bytes, problems: list[Problem]) -> bytes:
    if data.isascii():
        return data
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return data
    parts = []
    at = wrong = 0
    while at < len(data):
        block = data[at : at + _BLOCK]
        try:
            text, used = codecs.utf_8_decode(block, "strict", at + len(block) == len(data))
        except UnicodeDecodeError as error:
            text, used = block[: error.start].decode("utf-8"), error.end
            if error.reason != "unexpected end of data":  # else cut within a character: nothing is wrong with the rest
                text += block[error.start : error.end].decode("cp1252", "replace")
                wrong += 1
        parts.append(text)
        at += used
        if wrong == _WRONG_BYTES:
            parts = [data.decode("cp1252", "replace")]
            break
    if wrong:
        _note_encoding(problems, "utf-8")
    return "".join(parts).encode("utf-8")


def _note_encoding(problems: list[Problem], name: str) -> None:
    problems.append(Problem("encoding.wrong", "document", f"the bytes are not {name} throughout, as they should be"))


def is_text_list(data: bytes) -> bool:
    """Whether the document is a plain list of URLs: its first line is one."""
    first = data[: MAX_ADDRESS + 1].split(b"\n", 1)[0].split(b"\r", 1)[0].strip()
    return first.lower().startswith((b"http://", b"https://")) and b"<" not in first


def read_text(data: bytes, url: str, problems: list[Problem], *, max_rows: int, whole: bool) -> tuple[list[Row], bool]:
    """The rows of a plain list (sitemaps.org, "Text file"): one absolute URL a line; and whether all were read.

    Lines that hold anything but an address are left out, with a problem: not all were read then, but for comments
    (``#``). Of a list that is not `whole` the last line is left out: it may be cut. Raises NotASitemap where most lines
    are no address.
    """
    lines = [line for line in map(str.strip, _BREAK.split(data.decode("utf-8", "replace"))) if line]
    if not whole:
        lines.pop()
    rows: list[Row] = []
    wrong = 0
    for number, line in enumerate(lines, 1):
        if len(rows) == max_rows:
            problems.append(Problem("rows.cap", f"row {max_rows}", f"more than {max_rows} rows; read up to there"))
            whole = False
            break
        address = None
        if line[:8].lower().startswith(("http://", "https://")) and len(line) <= MAX_ADDRESS:
            address = absolute(line, url) if not _SPACE.search(line) else None
        if address is not None:
            rows.append(Row(address))
            continue
        wrong += 1
        whole = whole and line.startswith("#")
        if len(problems) < MAX_PROBLEMS:
            problems.append(Problem("row.address", f"row {number}", f"not an address: {line[:80]!r}"))
    if wrong > len(rows):
        raise NotASitemap("the body is text, but most of its lines are no addresses")
    return rows, whole


def refusal(data: bytes, root: str | None) -> NotASitemap:
    """Why a document without the root element of a sitemap is none; `root` is the name of its first element."""
    head = data[:65_536].lstrip()
    if head.startswith((b"{", b"[")):
        return NotASitemap("the body is JSON, not a sitemap")
    if is_html(head):
        return NotASitemap("the body is an HTML page, not a sitemap")
    if root is None:
        return NotASitemap("the body is neither XML nor a list of addresses")
    return NotASitemap(f"the document's root is <{root[:40]}>, not a sitemap's")


def is_html(data: bytes) -> bool:
    """Whether markup that stands only in pages is in `data`, the part of a document before any sitemap."""
    return _HTML.search(data) is not None
