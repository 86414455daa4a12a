"""What one page says of itself: title, canonical address, dates, and a fingerprint of its main text.

Sources: HTML Living Standard (link, meta, base), RFC 6596 (canonical), schema.org dates in JSON-LD, Open Graph's
article times, Google's robots meta tag.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitor.core.dates import parse_date
from monitor.core.markup import Element, Markup, is_html, read_markup
from monitor.core.url import absolute

_MAX_NODES = 5_000

_WORD = re.compile(r"\w+")
_COUNTER = re.compile(r"\d+(?:h|m|s|d|am|pm|min|mins|sec|std|uhr)?")
_PUBLISHED = (
    "article:published_time", "datepublished", "og:published_time", "pubdate", "publishdate", "publish-date",
    "publication_date", "parsely-pub-date", "sailthru.date", "dcterms.created", "dcterms.issued", "dc.date.issued",
    "dc.date", "dcterms.date", "date",
)  # fmt: skip
_MODIFIED = (
    "article:modified_time", "datemodified", "og:updated_time", "lastmod", "last-modified", "dcterms.modified",
    "dc.date.modified", "revised",
)  # fmt: skip
_ARTICLE_TYPES = re.compile(r"(?:\w*Article|\w*Posting|Report|Review|VideoObject|NewsVideo)$")
_PAGE_TYPES = re.compile(r"(?:\w*Page)$")


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What was read of a page.

    `canonical` and `amp_url` are absolute http(s) URLs; two canonical links that differ are none. `noindex` is True
    where a robots or googlebot meta tag asks for it. `fingerprint` changes only with the words of the main text:
    markup, white space, case, punctuation, bare numbers and clock times do not count. It is empty, and `text_length`
    (characters) 0, for a page without text. For what is not HTML it covers the bytes, and `text_length` is 0.
    """

    title: str | None = None
    canonical: str | None = None
    noindex: bool = False
    published: datetime | None = None
    modified: datetime | None = None
    amp_url: str | None = None
    language: str | None = None
    fingerprint: str = ""
    text_length: int = 0


def read_page(body: bytes, *, url: str, content_type: str | None = None) -> PageFacts:
    """Reads the facts of the page at `url` (its final address). Never raises; what is absent or broken is None."""
    if not is_html(body, content_type):
        return PageFacts(fingerprint=_digest(body) if body else "")
    markup = read_markup(body, content_type)
    base = base_url(markup, url)
    metas = _named(markup)
    published, modified = _structured_dates(markup.json_ld)
    return PageFacts(
        title=markup.title or _text(metas, "og:title"),
        canonical=_only(_targets(markup, "canonical", base)),
        noindex=_is_noindex(markup.metas),
        published=published or _first_date(metas, _PUBLISHED),
        modified=modified or _first_date(metas, _MODIFIED),
        amp_url=next(_targets(markup, "amphtml", base), None),
        language=markup.language or _text(metas, "content-language"),
        fingerprint=fingerprint(markup.text),
        text_length=len(markup.text),
    )


def page_links(body: bytes, *, url: str, content_type: str | None = None) -> tuple[str, ...]:
    """The http(s) addresses that a page links to (`a`, `area`), absolute, without fragment, each once, in order.

    Links marked ``rel=nofollow`` are left out, and all of them where a robots meta tag says ``nofollow``.
    """
    if not is_html(body, content_type):
        return ()
    markup = read_markup(body, content_type)
    base = base_url(markup, url)
    if "nofollow" in _directives(markup.metas):
        return ()
    found: dict[str, None] = {}
    for anchor in markup.anchors:
        address = absolute(anchor.get("href"), base)
        if address is not None and "nofollow" not in anchor.tokens("rel"):
            found[address if "#!" in address else address.partition("#")[0]] = None
    return tuple(found)


def base_url(markup: Markup, url: str) -> str:
    """What relative addresses of the page are resolved against: its first `base href`, else its own address."""
    return (absolute(markup.base, url) or url) if markup.base else url


def fingerprint(text: str) -> str:
    """A stable hash of the words of `text`, 32 hexadecimal digits; empty where there are none."""
    words = _WORD.findall(unicodedata.normalize("NFC", text).casefold())
    told = " ".join(word for word in words if not _COUNTER.fullmatch(word))
    return _digest(told.encode("utf-8", "replace")) if told else ""


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _targets(markup: Markup, rel: str, base: str) -> Iterator[str]:
    for link in markup.links:
        if rel in link.tokens("rel"):
            target = absolute(link.get("href"), base)
            if target is not None:
                yield target


def _only(values: Iterable[str]) -> str | None:
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _named(markup: Markup) -> dict[str, list[str]]:
    """Contents of the meta tags by `property`, `name`, `itemprop` or `http-equiv` in lower case."""
    named: dict[str, list[str]] = {}
    for meta in markup.metas:
        content = meta.get("content")
        for attribute in ("property", "name", "itemprop", "http-equiv"):
            name = meta.get(attribute).lower()
            if name and content:
                named.setdefault(name, []).append(content)
    return named


def _text(metas: dict[str, list[str]], name: str) -> str | None:
    return next(iter(metas.get(name, ())), None)


def _first_date(metas: dict[str, list[str]], names: Iterable[str]) -> datetime | None:
    instants = (parse_date(text).instant for name in names for text in metas.get(name, ())[:3])
    return next((instant for instant in instants if instant is not None), None)


def _directives(metas: Iterable[Element]) -> set[str]:
    """Directives of the robots meta tags; ``none`` stands for ``noindex, nofollow``."""
    found: set[str] = set()
    for meta in metas:
        if meta.get("name").lower() in ("robots", "googlebot"):
            found.update(re.split(r"[\s,;]+", meta.get("content").lower()))
    return found | {"noindex", "nofollow"} if "none" in found else found


def _is_noindex(metas: Iterable[Element]) -> bool:
    return "noindex" in _directives(metas)


def _structured_dates(scripts: Iterable[str]) -> tuple[datetime | None, datetime | None]:
    """Published and modified of the page's article in JSON-LD, else of the page itself.

    Other things have dates too (comments, events, the site): only those two kinds are asked, the outermost first.
    """
    articles: list[dict[str, Any]] = []
    pages: list[dict[str, Any]] = []
    for script in scripts:
        for node in _nodes(script):
            kinds = node.get("@type")
            names = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
            if any(_ARTICLE_TYPES.search(name) for name in names):
                articles.append(node)
            elif any(_PAGE_TYPES.search(name) for name in names):
                pages.append(node)
    things = articles + pages
    return _date_of(things, "datePublished"), _date_of(things, "dateModified")


def _nodes(script: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-LD script, outer before inner."""
    text = re.sub(r"^\s*(?://)?\s*(?:<!--|<!\[CDATA\[)|(?://)?\s*(?:-->|\]\]>)\s*;?\s*$", "", script)
    try:
        waiting: deque[Any] = deque([json.loads(text, strict=False)])
    except (ValueError, RecursionError):
        return
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        value = waiting.popleft()
        if isinstance(value, dict):
            yield value
            waiting.extend(inner for inner in value.values() if isinstance(inner, dict | list))
        elif isinstance(value, list):
            waiting.extend(value[:_MAX_NODES])


def _date_of(things: Iterable[dict[str, Any]], name: str) -> datetime | None:
    for thing in things:
        value = thing.get(name)
        instant = parse_date(value).instant if isinstance(value, str) else None
        if instant is not None:
            return instant
    return None
