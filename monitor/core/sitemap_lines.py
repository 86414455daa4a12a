"""The fastest way through a sitemap: straight to lines, where every row is written exactly like the first (pure).

Generators write all rows by one template. Then two replacements turn the document into lines of address and lastmod,
at a tenth of what a tree costs. It is believed only where the result holds no markup any more and each line is an
address and a date that could not be read in two ways: then a parser would have found the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from lxml import etree

from monitor.core.url import absolute, page_key

_OPENING = re.compile(rb"(?:<\?xml[^<>&]*\?>\s*)?(<urlset(?=[\s>])(?:[^<>\"'&/]++|\"[^\"<&]*+\"|'[^'<&]*+')*+>)")
_FIRST = re.compile(
    r"(\s*+<url>\s*+<loc>)[^<]*+(</loc>\s*+)"
    r"(?:(<lastmod>)[^<]*+(</lastmod>\s*+))?+"
    r"((?:<changefreq>[^<&]*+</changefreq>\s*+)?+(?:<priority>[^<&]*+</priority>\s*+)?+</url>)"
)
_DAY = (
    r"20\d\d-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?(?:Z|[+-](?:0\d|1[0-3]):[0-5]\d))?"
)
_CHARACTERS = r"A-Za-z0-9_~!$'()*+,=:@/.-"
_ORIGIN = r"https?://(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*/"
_FIRST_ORIGIN = re.compile(r"https?://[a-z0-9._-]+(?::\d{1,5})?/", re.ASCII)
MOST = 50_000
"""Rows beyond what the protocol allows have a problem to tell, and go the long way."""


@dataclass(frozen=True, slots=True)
class PlainLines:
    """``address TAB lastmod LF`` for each row, in its order.

    `origin` is the scheme and host that all addresses share, None where they may differ. `own_keys` says that each
    address is its own page key (`monitor.core.url.page_key`): there is nothing in it that has two spellings.
    """

    text: str
    origin: str | None
    own_keys: bool


def read_lines(data: bytes) -> PlainLines | None:
    """The rows of a `urlset`; None where the document is not that plain. `data` is as it came, without compression."""
    opening = _OPENING.match(data)
    end = data.rstrip(b" \r\n\t")
    if opening is None or not end.endswith(b"</urlset>"):
        return None
    if not _sound_root(opening[1], data[: opening.start(1)]):
        return None
    try:
        text = data[opening.end() : len(end) - 9].decode("ascii")
    except UnicodeDecodeError:
        return None
    first = _FIRST.match(text)
    if first is None:
        return None
    head, behind_loc, lastmod, behind_lastmod, tail = first.groups()
    body = text.rstrip()
    between = f"{behind_lastmod}{tail}" if lastmod else f"{behind_loc}{tail}"
    if not body.endswith(between):
        return None
    lines = body[len(head) : -len(between)].replace(between + head, "\n")
    lines = lines.replace(behind_loc + lastmod, "\t") if lastmod else lines.replace("\n", "\t\n") + "\t"
    lines += "\n"
    if lines.count("\n") > MOST:
        return None
    origin = _FIRST_ORIGIN.match(lines)
    if origin is None or absolute(origin[0], "") != origin[0]:
        return None
    if _rows_of(origin[0], _CHARACTERS).fullmatch(lines):
        own_keys = "/." not in lines and page_key(origin[0]) == origin[0]
        return PlainLines(lines, origin[0][:-1], own_keys)
    return PlainLines(lines, None, own_keys=False) if _rows_of(_ORIGIN, f"{_CHARACTERS};%?").fullmatch(lines) else None


@lru_cache(maxsize=64)
def _rows_of(origin: str, characters: str) -> re.Pattern[str]:
    origin = origin if origin is _ORIGIN else re.escape(origin)
    return re.compile(rf"(?:{origin}[{characters}]{{0,1900}}+\t(?:{_DAY})?\n)++", re.ASCII)


def _sound_root(tag: bytes, before: bytes) -> bool:
    """Whether the XML declaration and the root's start tag are well-formed, and the encoding one that ASCII is part
    of."""
    declared = re.search(rb"encoding\s*=\s*[\"']([^\"']*)", before)
    if declared is not None and declared[1].lower() not in (b"utf-8", b"us-ascii", b"ascii", b"iso-8859-1", b"utf8"):
        return False
    try:
        etree.fromstring(before + tag + b"</urlset>", etree.XMLParser(no_network=True, resolve_entities=False))
    except etree.XMLSyntaxError:
        return False
    return True
