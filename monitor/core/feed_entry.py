"""One entry of feedparser's as an entry of ours: text, links, dates, people; and which of its marks identifies it."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import urljoin, urlsplit

from feedparser.datetimes import _parse_date
from feedparser.namespaces.mediarss import Namespace as _MediaElements

from monitor.core.dates import parse_date
from monitor.core.feed_scan import Item
from monitor.core.feed_text import content_hash, reader_text, storable
from monitor.model import Entry, IdKind, Problem

_MARKUP = ("text/html", "application/xhtml+xml")
_ABSOLUTE = re.compile(r"https?://[^\s/?#\\@:\[\]]+(?::\d{1,5})?(?:[/?#]\S*)?", re.I)
_SPACE_IN_URL = re.compile(r"\s+")


def _start_caption(parser: Any, _attributes: Any) -> None:
    parser.push("media_description", 1)


def _end_caption(parser: Any) -> None:
    parser.pop("media_description")


# feedparser adds the captions of photos to the entry's content: an edited caption would be an edited article.
_MediaElements._start_media_description = _start_caption
_MediaElements._end_media_description = _end_caption


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry before its id is decided: `entry.id` is still empty. `number` counts from 1 in the document."""

    entry: Entry
    guid: str
    number: int
    date_text: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def date(self) -> datetime | None:
        """When it was published, else updated."""
        return self.entry.published or self.entry.updated


def instant(text: str) -> datetime | None:
    """A feed's date in UTC, None for what is no date or a sentinel (1970, year 1).

    Dates that `parse_date` does not know are left to feedparser, which reads Greek, Hungarian and Korean ones.
    """
    text = text.strip()
    if not text:
        return None
    date = parse_date(text)
    if date.instant is not None or date.problem != "not-a-date":
        return date.instant
    return _foreign_instant(text) if len(text) <= 100 else None


@lru_cache(maxsize=1024)
def _foreign_instant(text: str) -> datetime | None:
    try:
        parsed = _parse_date(text)
        moment = datetime.fromtimestamp(calendar.timegm(parsed), UTC) if parsed else None
    except (ValueError, OverflowError, OSError, TypeError, IndexError):
        return None
    return moment if moment is not None and moment.year > 1970 else None


def absolute(base: str, link: str) -> str | None:
    """`link` resolved against `base`; None unless that is a URL of the web."""
    link = link.strip()
    if not link or _ABSOLUTE.fullmatch(link):
        return link or None
    if _SPACE_IN_URL.search(link):
        link = _SPACE_IN_URL.sub(lambda found: "" if set(found[0]) & set("\r\n\t") else "%20", link)
    try:
        url = urljoin(base, link)
        parts = urlsplit(url)
        return url if parts.scheme.lower() in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


def read_entry(raw: Any, url: str, number: int, dated: bool, item: Item | None = None) -> Candidate:
    """One of feedparser's entries. `dated`: what the format calls its date is that of publication (RSS `dc:date`).

    `item` is the same entry as scanned, where that is sure. Its id is the one that was published: feedparser resolves
    ids as if they were links, so that they would change with the base.
    """
    place, problems = f"entry {number}", list[Problem]()
    title = detail_text(raw, "title")
    published_text, updated_text = text_of(raw, "published"), text_of(raw, "updated")
    published, updated = instant(published_text), instant(updated_text)
    for text, moment in ((published_text, published), (updated_text, updated)):
        if text and moment is None:
            problems.append(Problem("entry.date", place, f"{text[:60]!r} is no date."))
    if published is None and not published_text and dated:
        published = updated
    bodies = [(text_of(part, "value"), part.get("type") in _MARKUP) for part in raw.get("content") or ()]
    if "summary_detail" in raw:
        detail = raw["summary_detail"]
        bodies.insert(0, (text_of(detail, "value"), detail.get("type") in _MARKUP))
        summary = reader_text(*bodies[0]) or None
    else:
        summary = reader_text(text_of(raw, "summary"), True) or None  # feedparser's copy of the content
        bodies = bodies or [(text_of(raw, "summary"), True)]
    if not any(text for text, _markup in bodies):  # a video has no other text
        bodies = [(text_of(raw, "media_description"), True)]
        summary = reader_text(*bodies[0]) or None
    link = best_link(raw, url) or (absolute(url, item.plain_link) if item else None)
    if link is None and text_of(raw, "link") not in ("", text_of(raw, "id")):
        problems.append(Problem("entry.link", place, f"{text_of(raw, 'link')[:80]!r} is no URL of the web."))
    original = text_of(raw, "feedburner_origlink") or text_of(raw, "pheedo_origlink")
    entry = Entry(
        id="",
        id_kind="hash",
        url=link,
        title=title,
        published=published,
        updated=updated,
        authors=_people(raw),
        tags=_tags(raw),
        summary=summary,
        content_hash=content_hash(title, bodies),
        original_url=absolute(url, original) if original else None,
    )
    guid = item.guid if item else text_of(raw, "id")
    return Candidate(entry, guid, number, published_text or updated_text, tuple(problems))


def text_of(raw: Any, key: str) -> str:
    """A value of feedparser's as it stands, without the aliases of its dictionaries; "" where it is none or no text."""
    value = dict.get(raw, key)
    return storable(value).strip() if isinstance(value, str) else ""


def detail_text(raw: Any, key: str) -> str | None:
    """A title as a reader sees it."""
    detail = dict.get(raw, f"{key}_detail")
    markup = isinstance(detail, dict) and detail.get("type") in _MARKUP
    return reader_text(text_of(raw, key), markup) or None


def best_link(raw: Any, url: str) -> str | None:
    """The entry's page: its link or permalink guid, else any alternate, related or self link, else its enclosure."""
    link = text_of(raw, "link")
    # feedparser takes every guid that is no link for one, numbers included, unless isPermaLink says otherwise.
    mere_id = "/" not in link and bool(dict.get(raw, "guidislink")) and link == text_of(raw, "id")
    if not mere_id and (found := absolute(url, link)):
        return found
    others = [other for other in dict.get(raw, "links") or () if isinstance(other, dict)]
    for rel in ("alternate", "related", "via", "self", "enclosure"):
        for other in others:
            if text_of(other, "rel") == rel and (found := absolute(url, text_of(other, "href"))):
                return found
    for media in dict.get(raw, "media_content") or ():
        if isinstance(media, dict) and (found := absolute(url, text_of(media, "url"))):
            return found
    return None


def _people(raw: Any) -> tuple[str, ...]:
    names = [text_of(who, "name") or text_of(who, "email") for who in dict.get(raw, "authors") or ()]
    if not any(names):
        names = [text_of(raw, "author")]
    return tuple(dict.fromkeys(" ".join(name.split()) for name in names if name))


def _tags(raw: Any) -> tuple[str, ...]:
    names = [text_of(tag, "term") or text_of(tag, "label") for tag in dict.get(raw, "tags") or ()]
    return tuple(dict.fromkeys(reader_text(name, True) for name in names if name))


def identify(candidates: Sequence[Candidate], problems: list[Problem]) -> list[Candidate]:
    """Give each entry its id: its guid, else its link, else a hash of title and date.

    A guid or link that entries of one document share, though link or title differ, identifies none of them. Entries
    that are the same in id, link and title are one: the first stays. Source: RSS 2.0 `guid`, RFC 4287 section 4.1.1.
    """
    shared_guids = _shared(candidates, [candidate.guid for candidate in candidates])
    without_guid = [candidate.guid if candidate.guid not in shared_guids else "" for candidate in candidates]
    links = [candidate.entry.url or "" for candidate in candidates]
    owned = {guid for guid in without_guid if guid}
    shared_links = _shared(
        [c for c, guid in zip(candidates, without_guid, strict=True) if not guid],
        [link for link, guid in zip(links, without_guid, strict=True) if not guid],
    )
    if shared_guids:
        sample = ", ".join(repr(guid[:60]) for guid in sorted(shared_guids)[:3])
        problems.append(Problem("entry.guid-repeated", "feed", f"Entries that differ share an id: {sample}."))
    identified: dict[str, Candidate] = {}
    for candidate, guid, link in zip(candidates, without_guid, links, strict=True):
        kind: IdKind
        if guid:
            key, kind = guid, "guid"
        elif link and link not in shared_links and link not in owned:
            key, kind = link, "link"
        else:
            key, kind = _hash(candidate), "hash"
        if key not in identified:
            identified[key] = replace(candidate, entry=replace(candidate.entry, id=key, id_kind=kind))
    return list(identified.values())


def _shared(candidates: Sequence[Candidate], marks: Sequence[str]) -> set[str]:
    """The marks that entries with another link or title have in common."""
    owners: dict[str, tuple[str | None, str | None]] = {}
    shared = set()
    for candidate, mark in zip(candidates, marks, strict=True):
        owner = (candidate.entry.url, candidate.entry.title)
        if mark and owners.setdefault(mark, owner) != owner:
            shared.add(mark)
    return shared


def _hash(candidate: Candidate) -> str:
    entry = candidate.entry
    date = candidate.date.isoformat() if candidate.date is not None else candidate.date_text
    basis = f"{entry.title or ''}\n{date}" if entry.title or date else entry.content_hash
    return "hash:" + blake2b(basis.encode("utf-8", "replace"), digest_size=16).hexdigest()
