"""JSON Feed 1.0 and 1.1 (jsonfeed.org/version/1.1): a small, forgiving reader, since feedparser has none."""

from __future__ import annotations

import json
import re
from typing import Any

from monitor.core.feed_entry import Candidate, absolute, identify, instant
from monitor.core.feed_text import content_hash, reader_text, storable
from monitor.model import Entry, Feed, NotAFeed, Problem

_VERSION = re.compile(r'"version"\s*:\s*"(https?://(?:www\.)?jsonfeed\.org/version/[\d.]{1,8})/?"', re.I)
_ITEMS = re.compile(r'"items"\s*:\s*\[')


def looks_like_json(data: bytes) -> bool:
    """Whether the first character is one that a JSON object or array starts with."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def parse_json_feed(data: bytes, url: str, known: frozenset[str], max_entries: int) -> Feed:
    """Read a JSON Feed as `monitor.core.feed.parse_feed` does; of broken JSON whatever items are whole.

    Ids may be numbers (they are read as their text), `author` and `authors` are both understood, and a wrong type
    spoils only its own field. Raises NotAFeed for JSON that does not call itself a JSON Feed.
    """
    problems: list[Problem] = []
    text = data.decode("utf-8-sig", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        problems.append(Problem("encoding.invalid", "body", "Some bytes are not UTF-8; they were replaced."))
    complete = True
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError) as error:
        feed, complete = _salvaged(text), False
        problems.append(
            Problem("json.broken", _place(error), "The JSON is broken: only whole items before that were read.")
        )
    version = _text(feed, "version") if isinstance(feed, dict) else ""
    if version in ("1.0", "1.1") and isinstance(feed.get("items"), list):
        problems.append(Problem("json.version", "version", "The version ought to be a URL of jsonfeed.org."))
    elif "jsonfeed.org/version/" not in version:
        what = "an object" if isinstance(feed, dict) else "an array" if isinstance(feed, list) else "a value"
        raise NotAFeed(f"The body is JSON ({what}{'' if complete else ', broken'}), but not a JSON Feed.")
    items = feed.get("items")
    if not isinstance(items, list):
        problems.append(Problem("json.items", "items", "There is no list of items."))
        items, complete = [], False
    if len(items) > max_entries:
        said = f"Of {len(items)} entries only the first {max_entries} were read."
        problems.append(Problem("feed.too-many", "feed", said))
        items, complete = items[:max_entries], False
    if feed.get("expired") is True:
        problems.append(Problem("feed.expired", "expired", "The feed says that it will never be updated again."))
    candidates = []
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            candidates.append(_candidate(item, feed, url, number))
        else:
            problems.append(Problem("entry.invalid", f"entry {number}", "The item is no object."))
    size, candidates = len(candidates), identify(candidates, problems)
    fresh = [candidate for candidate in candidates if candidate.entry.id not in known]
    hubs = [_text(hub, "url") for hub in _list(feed, "hubs") if isinstance(hub, dict)]
    return Feed(
        format="json10" if version.rstrip("/").endswith(("/1", "1.0")) else "json11",
        url=url,
        title=reader_text(_text(feed, "title"), False) or None,
        entries=tuple(candidate.entry for candidate in fresh),
        ids=tuple(candidate.entry.id for candidate in candidates),
        size=size,
        complete=complete,
        problems=(*problems, *(problem for candidate in fresh for problem in candidate.problems)),
        moments=tuple(candidate.date for candidate in candidates),
        home_url=absolute(url, _text(feed, "home_page_url")),
        self_url=absolute(url, _text(feed, "feed_url")),
        hub=next((found for hub in hubs if (found := absolute(url, hub))), None),
        next_archive=absolute(url, _text(feed, "next_url")),
        language=_text(feed, "language") or None,
    )


def _place(error: Exception) -> str:
    return f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "body"


def _salvaged(text: str) -> dict[str, Any]:
    """A JSON Feed that is broken: its values before the items, and the items that are whole."""
    version, start = _VERSION.search(text), _ITEMS.search(text)
    feed: dict[str, Any] = {}
    items = []
    if start is not None:
        decoder = json.JSONDecoder()
        try:
            feed = json.loads(text[: start.start()].rstrip().rstrip(",") + "}")
        except (ValueError, RecursionError):
            feed = {}
        position = start.end()
        try:
            while True:
                position += len(text[position : position + 4096]) - len(
                    text[position : position + 4096].lstrip(" \t\r\n,")
                )
                item, position = decoder.raw_decode(text, position)
                items.append(item)
        except (ValueError, RecursionError):
            pass
    if version is not None:
        feed = {"version": version[1], **feed, "items": items}
    return feed


def _text(value: dict[str, Any], key: str) -> str:
    """A string of an object, stripped, without what no database stores; "" where it is another type."""
    found = value.get(key)
    return storable(found).strip() if isinstance(found, str) else ""


def _list(value: dict[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _candidate(item: dict[str, Any], feed: dict[str, Any], url: str, number: int) -> Candidate:
    place, problems = f"entry {number}", list[Problem]()
    identity = item.get("id")
    numeric = isinstance(identity, int | float) and not isinstance(identity, bool)
    if numeric:
        problems.append(
            Problem("entry.id", place, f"The id {str(identity)[:60]} is a number; it ought to be a string.")
        )
    published_text, updated_text = _text(item, "date_published"), _text(item, "date_modified")
    published, updated = instant(published_text), instant(updated_text)
    for text, moment in ((published_text, published), (updated_text, updated)):
        if text and moment is None:
            problems.append(Problem("entry.date", place, f"{text[:60]!r} is no date."))
    title = reader_text(_text(item, "title"), False) or None
    summary = reader_text(_text(item, "summary"), False)
    bodies = [(summary, False), (_text(item, "content_html"), True), (_text(item, "content_text"), False)]
    links = (absolute(url, _text(item, key)) for key in ("url", "external_url"))
    entry = Entry(
        id="",
        id_kind="hash",
        url=next((link for link in links if link), None),
        title=title,
        published=published,
        updated=updated,
        authors=_authors(item) or _authors(feed),
        tags=tuple(
            dict.fromkeys(storable(tag).strip() for tag in _list(item, "tags") if isinstance(tag, str) and tag.strip())
        ),
        summary=summary or None,
        content_hash=content_hash(title, [body for body in bodies if body[0]]),
    )
    guid = str(identity) if numeric else _text(item, "id")
    return Candidate(entry, guid, number, published_text or updated_text, tuple(problems))


def _authors(value: dict[str, Any]) -> tuple[str, ...]:
    people = [*_list(value, "authors"), value.get("author")]
    names = (_text(who, "name") or _text(who, "url") for who in people if isinstance(who, dict))
    return tuple(dict.fromkeys(name for name in names if name))
