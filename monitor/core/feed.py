"""Feeds: RSS 0.90 to 2.0, RDF, Atom 0.3 and 1.0, CDF (read by feedparser) and JSON Feed, from bytes to values.

Sources: RSS 2.0 (rssboard.org), RSS 1.0 (purl.org/rss/1.0), RFC 4287 (Atom), jsonfeed.org 1.1; what feedparser does
is described in its own documentation and, where that is silent, in the source of release 6.0.14.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from xml.parsers import expat

import feedparser
from feedparser.api import PREFERRED_XML_PARSERS

from monitor.core.feed_bytes import Document, mend_references, read_document
from monitor.core.feed_channel import read_channel
from monitor.core.feed_entry import Candidate, absolute, identify, instant, read_entry
from monitor.core.feed_marks import marks_of
from monitor.core.feed_scan import Item, Scan, closed, count_tags, scan, without
from monitor.core.jsonfeed import looks_like_json, parse_json_feed
from monitor.model import Feed, Problem

# A driver of Python 2 that every parse searches the disk for in vain; and the scan relies on expat being the parser.
PREFERRED_XML_PARSERS.clear()

MAX_ENTRIES = 50_000
"""Entries of one document that are read; further ones are counted as lost."""

MAX_BYTES = 100_000_000
"""Size of a compressed body once it is unpacked."""

_XML_TYPES = re.compile(
    r"(?:application|text)/(?:[\w.+-]*\+)?xml(?:-dtd|-external-parsed-entity)?\Z|application/(?:octet-stream|rss|atom)\Z",
    re.I,
)
_HEADERS = {"content-type": "application/xml; charset=utf-8"}
_TOO_MANY = Problem("feed.too-many", "feed", f"Only the first {MAX_ENTRIES} entries were read.")
# Extensions that feedparser fails on when they are misplaced; titles, texts, links and dates are not among them.
_EXTENSIONS = re.compile(
    rb"</?(?!(?:content|dc|dcterms|atom|feedburner|rdf|sy|rss):)\w+:[^<>]*>|</?(?:image|textinput|where)\b[^<>]*>", re.I
)
_UNDECLARED = re.compile(rb"(</?)(?:rss|atom):(?=\w)", re.I)
# A run of letters that no text has; feedparser's search for e-mail addresses takes time by its square.
_ENDLESS = re.compile(rb"[\w.+-]{4000,}", re.A)


def parse_feed(data: bytes, url: str, content_type: str | None = None, known: frozenset[str] = frozenset()) -> Feed:
    """Read a feed of any format from `data`, which was fetched from `url` (the base of relative links).

    `known` are ids of entries that need not be read again: they are left out of `entries` but count in `size`, `ids`
    and `dates`. The result is that of a full read with them filtered out; it only costs less. `content_type` is the
    header as received; its charset is used where the bytes do not tell their encoding.

    Bad bytes never raise: what could be read is returned, `problems` lists the rest, and `complete` is False where
    entries may have been lost (a body that was cut or damaged, more than `MAX_ENTRIES`). Raises NotAFeed where there
    is no feed at all: HTML, other JSON or XML, a sitemap, an empty or binary body.
    """
    return _read(data, url, content_type, known, frozenset(), "")[0]


def reread_feed(
    data: bytes, url: str, content_type: str | None, marks: frozenset[int], salt: str
) -> tuple[Feed, tuple[int, ...]]:
    """Read a feed again: `entries` are those that are new or edited since the read that returned `marks`.

    An entry is left out only if its bytes, and all around it that decides how they are read, are what they were (see
    `marks_of`, which takes `salt`). Returns the feed and the marks of its entries for the next read; there are none
    where entries are not certain to be told apart without reading them, and then all are in `entries`.
    """
    return _read(data, url, content_type, frozenset(), marks, salt)


def _read(
    data: bytes, url: str, content_type: str | None, known: frozenset[str], marks: frozenset[int], salt: str
) -> tuple[Feed, tuple[int, ...]]:
    problems: list[Problem] = []
    whole = True
    if data.startswith(b"\x1f\x8b"):
        from monitor.core.decode import decode  # noqa: PLC0415 - seldom: the fetcher unpacks

        decoded = decode(data, MAX_BYTES)
        data, whole = decoded.data, decoded.complete
        problems.extend(decoded.problems)
    if looks_like_json(data):
        feed = parse_json_feed(data, url, known, MAX_ENTRIES)
        return replace(feed, problems=(*problems, *feed.problems), complete=feed.complete and whole), ()
    document = read_document(data, url, content_type)
    problems.extend(document.problems)
    media_type = (content_type or "").split(";")[0].strip()
    if media_type and not _XML_TYPES.match(media_type):
        problems.append(Problem("http.content-type", "header", f"{media_type[:60]} is not a media type of XML."))
    source = _source(document, problems)
    ids = _certain_ids(source, url)
    here: tuple[int, ...] = ()
    if ids and salt:
        here = marks_of(source.data, source.items or [], source.opened, f"{document.format} {url} {salt}")
    skip: Set[str] = {key for key, mark in zip(ids, here, strict=True) if mark in marks} if here else known
    read = _read_unknown(source, url, ids, skip)
    left_out = known if read is None else skip
    read = read or _read_all(source, url)
    for candidate in read.candidates:
        if candidate.entry.id not in left_out:
            problems.extend(candidate.problems)
    feed = Feed(
        format=document.format,
        url=url,
        entries=tuple(candidate.entry for candidate in read.candidates if candidate.entry.id not in left_out),
        ids=read.ids,
        size=read.size,
        complete=whole and source.complete and not read.lost,
        problems=tuple(problems + read.problems),
        moments=read.moments,
        **read_channel(read.channel, document.text, url),
    )
    return feed, here if read.ids == tuple(ids) else ()


@dataclass(frozen=True, slots=True)
class _Source:
    """A document made ready for feedparser. `items` is None where they are not certain: then read the whole."""

    data: bytes
    items: list[Item] | None
    complete: bool
    tags: int
    """Entries that start in the document: feedparser ought to find as many."""
    dated: bool
    """The format's one date is that of publication: all but Atom."""
    opened: bytes = b""
    """As in `Scan`."""


@dataclass(frozen=True, slots=True)
class _Reading:
    channel: Any
    candidates: list[Candidate]
    ids: tuple[str, ...]
    size: int
    """Entries shown; repetitions count here, but have no id of their own."""
    moments: tuple[datetime | None, ...]
    problems: list[Problem]
    lost: bool = False


def _source(document: Document, problems: list[Problem]) -> _Source:
    """Scan the document, mend what can be mended, and cut off what is not whole."""
    data = document.text.encode()
    found = scan(data)
    if found.error is not None and not (found.cut and not document.whole):
        problems.append(_malformed(found.error, document.skipped))
        mended = mend_references(document).encode()
        if mended != data:
            data, found = mended, scan(mended)
    complete = document.whole and not found.excess
    dated = not document.format.startswith("atom")
    if not complete:
        rule, why = ("xml.excess", found.excess) if found.excess else ("xml.cut", "cut")
        problems.append(Problem(rule, f"byte {len(data)}", f"The document is {why}: its last entries may be missing."))
    if (found.excess or (found.cut and not complete)) and found.items:
        data = closed(data, found)
    elif found.excess:
        data, found = f"<{document.tag}/>".encode(), Scan()
    elif found.error is not None:
        tags, in_turn, end = count_tags(data, MAX_ENTRIES)
        if tags > MAX_ENTRIES:
            problems.append(_TOO_MANY)
            complete = False
        if end >= 0 and not complete:
            data, tags = data[:end], tags - 1
        return _Source(data, None, complete and in_turn, tags, dated)
    if len(found.items) > MAX_ENTRIES:
        problems.append(_TOO_MANY)
        data, complete = without(data, found.items[MAX_ENTRIES:]), False
    items = found.items[:MAX_ENTRIES]
    return _Source(data, None if found.odd else items, complete, len(items), dated, found.opened)


def _malformed(error: expat.ExpatError, skipped: int) -> Problem:
    said = expat.errors.messages.get(error.code, "malformed")
    return Problem("xml.malformed", f"line {error.lineno + skipped}", f"The document is not well-formed XML: {said}.")


def _parsed(data: bytes) -> Any:
    """feedparser's result, or the exception that it failed with.

    Without sanitizing and without resolving links in markup: both are thrown away with the markup, and cost most of
    the time. Without the feed's address: it would be glued to ids that look like relative links.
    """
    if max(map(len, data.split()), default=0) > 4000:
        data = _ENDLESS.sub(lambda run: run[0][:4000], data)
    try:
        return feedparser.parse(
            io.BytesIO(data), response_headers=_HEADERS, sanitize_html=False, resolve_relative_uris=False
        )
    except Exception as error:
        return error


def _read_all(source: _Source, url: str) -> _Reading:
    """Read the whole document."""
    parsed = _parsed(source.data)
    problems = []
    if isinstance(parsed, Exception):
        said = f"The feed parser failed: {type(parsed).__name__}: {str(parsed)[:100]}."
        problems.append(Problem("parser.failed", "feed", said))
        parsed = _parsed(_EXTENSIONS.sub(b"", source.data))
        if isinstance(parsed, Exception):
            return _Reading({}, [], (), 0, (), problems, True)
    elif source.tags and not parsed["entries"]:
        undeclared = _parsed(_UNDECLARED.sub(rb"\1", source.data))
        parsed = parsed if isinstance(undeclared, Exception) else undeclared
    entries = parsed["entries"]
    lost = len(entries) < source.tags
    if lost:
        said = f"{source.tags} entries start in the document, {len(entries)} could be read."
        problems.append(Problem("feed.damaged", "feed", said))
    sure = source.items is not None and len(source.items) == len(entries) and not parsed["bozo"]
    items: Sequence[Item | None] = source.items if sure and source.items else [None] * len(entries)
    pairs = zip(entries, items, strict=True)
    candidates = [read_entry(raw, url, number, source.dated, item) for number, (raw, item) in enumerate(pairs, 1)]
    candidates = identify(candidates, problems)
    return _Reading(
        parsed["feed"],
        candidates,
        tuple(candidate.entry.id for candidate in candidates),
        len(entries),
        tuple(candidate.date for candidate in candidates),
        problems,
        lost,
    )


def _certain_ids(source: _Source, url: str) -> list[str]:
    """The ids of all entries, as a reading of the whole would decide them; empty where that is not sure."""
    ids = [(item.guid or absolute(url, item.link) or "") for item in source.items or ()]
    return ids if all(ids) and len(set(ids)) == len(ids) else []


def _read_unknown(source: _Source, url: str, ids: list[str], known: Set[str]) -> _Reading | None:
    """Read only what is not `known`; None where that would not be sure to give what a reading of the whole gives."""
    if not source.items or not ids or known.isdisjoint(ids):
        return None
    parsed = _parsed(without(source.data, [item for item, key in zip(source.items, ids, strict=True) if key in known]))
    wanted = [(number, key) for number, key in enumerate(ids, 1) if key not in known]
    if isinstance(parsed, Exception) or parsed["bozo"] or len(parsed["entries"]) != len(wanted):
        return None
    fresh: dict[str, Candidate] = {}
    for (number, key), raw in zip(wanted, parsed["entries"], strict=True):
        candidate = read_entry(raw, url, number, source.dated, source.items[number - 1])
        if not candidate.guid and candidate.entry.url != key:
            return None
        entry = replace(candidate.entry, id=key, id_kind="guid" if candidate.guid else "link")
        fresh[key] = replace(candidate, entry=entry)
    moments = (
        fresh[key].date if key in fresh else instant(item.published) or instant(item.updated)
        for key, item in zip(ids, source.items, strict=True)
    )
    return _Reading(parsed["feed"], list(fresh.values()), tuple(ids), len(ids), tuple(moments), [])
