"""What the origins of the corpus' feeds say that a reader must find, and the few cases in which we know better."""

from __future__ import annotations

import re
from typing import Any

import pytest

from monitor.core.dates import parse_date
from monitor.core.feed import parse_feed
from monitor.core.feed_text import reader_text
from monitor.model import Entry, Feed, NotAFeed
from tests.corpus import expectations, members

URL = "http://127.0.0.1:8097/feed"
ARCHIVES = [
    "suites/feedparser.tar.gz",
    "suites/gofeed.tar.gz",
    "suites/feed-rs.tar.gz",
    "suites/fastfeedparser.tar.gz",
    "feeds/rss-parser.tar.gz",
    "feeds/lemon24-reader.tar.gz",
    "feeds/codehollow-feedreader.tar.gz",
    "feeds/netnewswire.tar.gz",
    "feeds/feedjira.tar.gz",
    "feeds/crawlers-misc.tar.gz",
]
DIFFERENT = {
    # Title elements that are closed by another tag: what follows is lost to feedparser's loose parser.
    "parser/atom/atom10_feed_title_xhtml_escaped_markup.xml": {"feed_title"},
    "parser/atom/atom10_feed_title_xhtml_inline_markup.xml": {"feed_title"},
    # Links are resolved against the feed's address, but otherwise left as published ("https://example.com").
    "atom/atom_relative.xml": {"links"},
    "jsonfeed/jsonfeed_elastic_1.1.json": {"links"},
    # Cut in its last entry, whose link and text may be cut too: the entry is left out, the read is not complete.
    "osm-pl.xml": {"n_entries"},
    # The origin's titles are those of a reader that gets the encoding wrong.
    "input/uolNoticias.rss": {"titles"},
    # RFC 7303 did away with "text/xml is us-ascii unless told otherwise".
    "encoding/bozo_http_i18n.xml": {"bozo"},
    # An id is what was published, not a link to be resolved: it must not change with the feed's address.
    "wellformed/base/http_entry_id_base_content_location.xml": {"id"},
    # Content-Language is not asked for.
    "wellformed/lang/http_content_language.xml": {"language"},
    # A urn is no link.
    "empty.atom": {"links"},
    # RSS in JSON is not JSON Feed.
    "ScriptingNews.json": {"feed"},
}
ORIGINALS = re.compile(r"(content-location|content-type):\s*(\S.*)", re.I)


@pytest.mark.parametrize("archive", ARCHIVES)
def test_every_file_reads_as_its_origin_states(archive: str) -> None:
    stated = {line["file"]: line for line in expectations("feed", "jsonfeed") if line["archive"] == archive}
    wrong: dict[str, list[str]] = {}
    seen, differing = set(), set()
    for name, data in members(archive):
        line = stated.get(name.removeprefix("./"))
        if line is None:
            continue
        seen.add(line["file"])
        failures = check(line, data)
        expected = DIFFERENT.get(line["file"], set())
        if expected and failures.keys() == expected:
            differing.add(line["file"])
        elif failures or expected:
            wrong[line["file"]] = [f"{what}: {said}" for what, said in failures.items()] or ["no difference any more"]
    assert seen == stated.keys()
    assert wrong == {}
    assert differing == DIFFERENT.keys() & stated.keys()


def check(line: dict[str, Any], data: bytes) -> dict[str, str]:
    """What of `line` does not hold, by name of the expectation."""
    headers = {name.lower(): value for name, value in ORIGINALS.findall(line.get("header", ""))}
    try:
        feed = parse_feed(data, headers.get("content-location", URL), headers.get("content-type"))
    except NotAFeed as error:
        return {"feed": str(error)}
    failures = {}
    for what, got, wanted in [*_feed_facts(line, feed), *_list_facts(line, feed), *_entry_facts(line, feed)]:
        if got not in wanted:
            failures[what] = f"{got!r:.200}, wanted {wanted!r:.200}"
    return failures


def _texts(value: object) -> list[str | None]:
    """A text of the origin's as a reader sees it: some origins keep markup and white space, some do not."""
    return [reader_text(str(value), True) or None, reader_text(str(value), False) or None]


def _feed_facts(line: dict[str, Any], feed: Feed) -> list[tuple[str, Any, Any]]:
    facts: list[tuple[str, Any, Any]] = []
    if "n_entries" in line:
        facts.append(("n_entries", feed.size, [line["n_entries"]]))
    if "min_entries" in line:
        facts.append(("min_entries", feed.size >= line["min_entries"], [True]))
    if "bozo" in line:
        rules = {problem.rule.split(".")[0] for problem in feed.problems}
        facts.append(("bozo", bool(rules & {"xml", "encoding", "http", "feed"}), [line["bozo"]]))
    if line.get("feed_title"):
        facts.append(("feed_title", feed.title, _texts(line["feed_title"])))
    stated = line.get("feed") or {}
    for key, value in {"link": line.get("feed_link"), **stated}.items():
        if key == "title":
            facts.append(("title", feed.title, _texts(value)))
        elif key == "link" and value:
            facts.append(("link", feed.home_url, [value]))
        elif key == "language":
            facts.append(("language", feed.language, [value]))
    if line.get("type") == "atom":
        facts.append(("type", feed.format[:4], ["atom"]))
    return facts


def _list_facts(line: dict[str, Any], feed: Feed) -> list[tuple[str, Any, Any]]:
    facts: list[tuple[str, Any, Any]] = []
    for key in ("ids", "links", "titles", "published", "updated"):
        # feed-rs calls the one date of RSS "updated" too.
        if key not in line or (key == "updated" and not feed.format.startswith("atom")):
            continue
        got, wanted = [_fact(entry, key) for entry in feed.entries], [_wanted(value, key) for value in line[key]]
        if len(wanted) < min(len(got), 5):  # the origin names only what it found
            got = [value for value in got if value is not None]
        facts.append((key, got[: len(wanted)], [wanted]))
    return facts


def _fact(entry: Entry, key: str) -> Any:
    dates = {"published": entry.published or entry.updated, "updated": entry.updated}
    if key in dates:
        date = dates[key]
        return date and date.replace(microsecond=0)
    return {"ids": entry.id, "links": entry.url, "titles": entry.title}[key]


def _wanted(value: str, key: str) -> Any:
    if key in ("published", "updated"):
        date = parse_date(value).instant
        assert date is not None
        return date.replace(microsecond=0)
    return reader_text(value, True) if key == "titles" else value


def _entry_facts(line: dict[str, Any], feed: Feed) -> list[tuple[str, Any, Any]]:
    stated = {f"0/{key}": value for key, value in (line.get("first_entry") or {}).items()}
    facts: list[tuple[str, Any, Any]] = []
    for path, value in {**stated, **(line.get("entries") or {})}.items():
        index, _, key = path.partition("/")
        entry = feed.entries[int(index)]
        if key in ("title", "title_detail/value"):
            facts.append(("title", entry.title, _texts(value)))
        elif key in ("description", "summary", "summary_detail/value"):
            facts.append(("summary", entry.summary, _texts(value)))
        elif key in ("id", "guid"):
            facts.append(("id", entry.id, [value]))
        elif key == "link":
            facts.append(("link", entry.url, [value]))
        elif key == "tags/0/term":
            facts.append(("tag", value in entry.tags, [True]))
        elif key == "author_detail/name":
            facts.append(("author", value in entry.authors, [True]))
    return facts
