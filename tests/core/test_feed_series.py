"""Recorded feeds, replayed: reading only the unknown entries gives what a full read gives, each entry once."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from monitor.core.feed import parse_feed
from monitor.model import Entry, Feed, NotAFeed, Problem
from tests.corpus import corpus_path, members

URL = "https://news.example/feed.xml"
SAMPLES = 12
SUITES = [
    "feeds/recorded-feeds.tar.gz",
    "feeds/node-feedparser.tar.gz",
    "feeds/rss-parser.tar.gz",
    "feeds/codehollow-feedreader.tar.gz",
    "feeds/netnewswire.tar.gz",
    "feeds/feedkit.tar.gz",
    "feeds/feedjira.tar.gz",
    "feeds/miniflux.tar.gz",
    "suites/fastfeedparser.tar.gz",
    "suites/feed-rs.tar.gz",
]


def series() -> list[str]:
    """The feed series of the corpus by name; empty where there is no corpus."""
    try:
        found = (corpus_path() / "series").glob("feed-*.tar.xz")
    except pytest.skip.Exception:
        return []
    return sorted(path.name.removesuffix(".tar.xz") for path in found)


def sample(name: str) -> list[bytes]:
    """About `SAMPLES` versions: a run of neighbours, which share most entries, and others spread over the series."""
    versions = [data for file, data in members(f"series/{name}.tar.xz") if "meta" not in file]
    run = len(versions) // 2
    chosen = {*range(0, len(versions), max(1, 2 * len(versions) // SAMPLES)), *range(run, run + SAMPLES // 2)}
    return [versions[index] for index in sorted(chosen) if index < len(versions)]


def read(data: bytes, known: frozenset[str] = frozenset()) -> Feed | None:
    try:
        return parse_feed(data, URL, known=known)
    except NotAFeed:
        return None


def expected(full: Feed, known: frozenset[str]) -> Feed:
    return replace(full, entries=tuple(entry for entry in full.entries if entry.id not in known), problems=())


def words(entry: Entry) -> tuple[str | None, str]:
    return entry.title, re.sub(r"[\d\s.,:]+", " ", entry.summary or "")


@pytest.mark.slow
@pytest.mark.parametrize("name", series())
def test_replay_finds_every_entry_once_and_reads_what_a_full_read_gives(name: str) -> None:
    seen: set[str] = set()
    announced: list[str] = []
    listed: set[str] = set()
    last: dict[str, Entry] = {}
    refused = 0
    versions = sample(name)
    for data in versions:
        full = read(data)
        if full is None:
            refused += 1
            continue
        known = frozenset(seen)
        part = read(data, known)
        assert part is not None
        assert replace(part, problems=()) == expected(full, known)
        assert len(full.ids) == len(set(full.ids)) <= full.size
        announced += [entry.id for entry in part.entries]
        listed.update(full.ids)
        seen.update(full.ids)
        for entry in full.entries:
            before = last.get(entry.id)
            # A visible edit moves the hash; one of numbers and times alone need not.
            if before is not None and words(before) != words(entry):
                assert before.content_hash != entry.content_hash
            last[entry.id] = entry
    assert len(announced) == len(set(announced))
    assert set(announced) == listed
    if name != "feed-anac-json":  # an array of the site's own making
        assert refused < len(versions) / 2
        assert listed


@pytest.mark.parametrize("name", ["feed-ollama", "feed-anthropic-news", "feed-bbc-education", "feed-bonikbarta"])
def test_hash_is_still_where_nothing_was_edited(name: str) -> None:
    """These feeds are rebuilt every hour, or every few minutes; not one of their entries was edited in between."""
    feeds = [feed for data in sample(name) if (feed := read(data)) is not None]
    for before, after in pairwise(feeds):
        hashes = {entry.id: entry.content_hash for entry in before.entries}
        assert not [
            entry.title for entry in after.entries if hashes.get(entry.id, entry.content_hash) != entry.content_hash
        ]


@pytest.mark.slow
@pytest.mark.parametrize("archive", SUITES)
def test_any_part_known_gives_what_a_full_read_gives(archive: str) -> None:
    for name, data in members(archive):
        full = read(data)
        if full is None:
            continue
        for known in (full.ids, full.ids[1:], full.ids[::2]):
            part = read(data, frozenset(known))
            assert part is not None
            assert replace(part, problems=()) == expected(full, frozenset(known)), name


def test_problems_of_known_entries_are_not_told_again() -> None:
    items = b"".join(b"<item><guid>%d</guid><pubDate>soon</pubDate></item>" % number for number in range(3))
    data = b'<rss version="2.0"><channel>' + items + b"</channel></rss>"
    told = Problem("entry.date", "entry 2", "'soon' is no date.")
    assert parse_feed(data, URL, known=frozenset({"0", "2"})).problems == (told,)
    assert told in parse_feed(data, URL).problems
