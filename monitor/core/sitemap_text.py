"""What of a sitemap is decided before XML: encodings, plain lists of URLs, and what is no sitemap at all (pure)."""

from __future__ import annotations

import codecs
import re

from monitor.core.url import absolute
from monitor.model import NotASitemap, Problem, Row

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"'][^>]*\?>")


def to_utf8(data: bytes, problems: list[Problem]) -> bytes:
    """The document in UTF-8 without its XML declaration: BOM first, then the declaration, then UTF-8, then cp1252."""
    encoding = None
    for bom, name in _BOMS:
        if data.startswith(bom):
            data, encoding = data[len(bom) :], name
            break
    if encoding is None and data[:4] in (b"<\0?\0", b"<\0u\0", b"<\0s\0"):
        encoding = "utf-16-le"
    elif encoding is None and data[:4] in (b"\0<\0?", b"\0<\0u", b"\0<\0s"):
        encoding = "utf-16-be"
    declared = _DECLARATION.search(data[:4096])
    if encoding is None and declared is not None:
        encoding = declared[1].decode("ascii").lower()
    text = _text(data, encoding or "utf-8", problems)
    return re.sub(rb"<\?xml\b[^>]{0,400}\?>", b"", text.encode("utf-8", "replace"), count=1)


def _text(data: bytes, encoding: str, problems: list[Problem]) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError, ValueError):
        pass
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    problems.append(Problem("encoding.wrong", "document", f"the bytes are not {encoding}, as the document says"))
    return text


def is_text_list(data: bytes) -> bool:
    """Whether the document is a plain list of URLs: its first line is one."""
    first = data.split(b"\n", 1)[0].split(b"\r", 1)[0].strip()
    return first.lower().startswith((b"http://", b"https://")) and b"<" not in first


def read_text(data: bytes, url: str, problems: list[Problem], max_rows: int) -> list[Row]:
    """The rows of a plain list (sitemaps.org, "Text file"): one absolute URL a line."""
    rows = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        text = line.strip().strip("\ufeff")
        if not text:
            continue
        address = absolute(text, url) if text.lower().startswith(("http://", "https://")) else None
        if address is None:
            if len(problems) < 200:
                problems.append(Problem("row.address", f"line {number}", f"not an address: {text[:80]!r}"))
            continue
        rows.append(Row(address))
        if len(rows) >= max_rows:
            break
    return rows


def refuse(data: bytes) -> None:
    """Raise NotASitemap for what is plainly something else."""
    head = data[:2048].lstrip().lower()
    if head.startswith((b"{", b"[")):
        raise NotASitemap("the body is JSON, not a sitemap")
    if head.startswith((b"<!doctype html", b"<html")) or re.search(rb"<(?:html|head|body)[\s>]", head):
        raise NotASitemap("the body is an HTML page, not a sitemap")
    if b"<" not in data[:65_536]:
        raise NotASitemap("the body is neither XML nor a list of addresses")
