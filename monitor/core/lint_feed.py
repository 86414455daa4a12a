"""Feeds of every format against their specifications (pure): the parser's problems, and what only a checker minds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from lxml import etree

from monitor.core.decode import decode
from monitor.core.feed import MAX_BYTES
from monitor.core.feed_bytes import Document, mend_references, read_document
from monitor.core.jsonfeed import looks_like_json
from monitor.core.lint_atom import entry_label, lint_atom
from monitor.core.lint_entries import Marks
from monitor.core.lint_json import lint_json
from monitor.core.lint_rss import item_label, lint_rdf, lint_rss
from monitor.core.lint_rules import Findings
from monitor.core.sitemap_rows import local
from monitor.core.sitemap_tree import is_flooded, parse_strictly
from monitor.model import Feed, NotAFeed, Problem

_OLD = {
    "rss090": "RSS 0.90",
    "rss091": "RSS 0.91",
    "rss092": "RSS 0.92",
    "rss093": "RSS 0.93",
    "rss094": "RSS 0.94",
    "atom03": "Atom 0.3",
    "cdf": "CDF",
}
_SELF = {
    "rss": 'with <atom:link rel="self" href="..."/> in the channel',
    "rdf": 'with <atom:link rel="self" href="..."/> in the channel',
    "atom": 'with <link rel="self" href="..."/> in the feed',
    "json": "with feed_url",
}
_ID_RULES = ("rss.guid-duplicate", "rdf.about-duplicate", "atom.id-duplicate", "json.id-duplicate")


def lint_feed(
    data: bytes, url: str, feed: Feed, findings: Findings, *, now: datetime, content_type: str | None = None
) -> None:
    """Check `data`, of which `parse_feed` made `feed` with nothing known. Never raises."""
    body = decode(data, MAX_BYTES).data
    places: dict[int, str] = {}
    marks: Marks | None = None
    if looks_like_json(body):
        places = lint_json(body, findings, now)
    else:
        marks = _lint_xml(body, url, feed, findings, now, content_type)
    for problem in feed.problems:
        _pass_on(problem, findings, marks, places, feed.size)
    _lint_whole(feed, findings)


def _pass_on(problem: Problem, findings: Findings, marks: Marks | None, places: dict[int, str], size: int) -> None:
    """A problem of the parser's as a finding, at its line where it is sure which of `size` entries is meant."""
    if problem.rule == "http.content-type":  # judged with the other headers
        return
    if problem.rule == "entry.guid-repeated" and any(rule in findings for rule in _ID_RULES):
        return
    place = marks.entry_place(problem.place) if marks is not None and len(marks.items) == size else ""
    number = problem.place.removeprefix("entry ")
    findings.problem(problem, place or (places.get(int(number), "") if number.isdecimal() else ""))


def _lint_xml(
    body: bytes, url: str, feed: Feed, findings: Findings, now: datetime, content_type: str | None
) -> Marks | None:
    """Check the elements of an XML feed; None where it is too damaged for that."""
    try:
        document = read_document(body, url, content_type)
    except NotAFeed:
        return None
    root, mended = _root(document)
    if root is None:
        return None
    # Mending takes comments out, and their lines with them.
    marks = Marks(findings, now, None if mended else document.skipped)
    is_atom = feed.format.startswith("atom")
    marks.take(_entries(root, is_atom=is_atom), entry_label if is_atom else item_label)
    if feed.format == "atom10":
        lint_atom(root, marks)
    elif feed.format == "rdf":
        lint_rdf(root, marks)
    elif feed.format.startswith("rss"):
        lint_rss(root, marks, feed.format)
    return marks


def _entries(root: Any, *, is_atom: bool) -> Iterator[Any]:
    """The elements that are entries; an extension may have an `item` of its own."""
    channel = next((child for child in root if local(child.tag) == "channel"), root)
    namespace = etree.QName(channel).namespace or ""
    name = "entry" if is_atom else "item"
    found: Iterator[Any] = root.iter(f"{{{namespace}}}{name}" if namespace else name)
    return found


def _root(document: Document) -> tuple[Any, bool]:
    """The root element, and whether references had to be mended first; None where it is not well-formed even so."""
    for mended, text in ((False, document.text), (True, None)):
        data = (mend_references(document) if text is None else text).encode("utf-8", "replace")
        if is_flooded(data):
            return None, mended
        try:
            return parse_strictly(data), mended
        except etree.XMLSyntaxError:
            continue
    return None, True


def _lint_whole(feed: Feed, findings: Findings) -> None:
    """What is told by the feed as a whole."""
    if feed.format in _OLD:
        findings.add("feed.old-format", "feed", f"{_OLD[feed.format]} is obsolete")
    if not feed.size and feed.complete:
        findings.add("feed.empty", "feed")
    if feed.self_url is None and feed.complete:
        family = next((how for name, how in _SELF.items() if feed.format.startswith(name)), None)
        if family is not None:
            findings.add("feed.self", "feed", family)
    if _unordered(feed.dates):
        findings.add("feed.order", "feed", "they are in no order of their dates")


def _unordered(dates: Sequence[datetime]) -> bool:
    """Whether dates neither fall nor rise throughout."""
    pairs = list(pairwise(dates))
    return any(first < second for first, second in pairs) and any(first > second for first, second in pairs)
