"""A changed feed of which only new and edited entries are read says what a reading of the whole says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.feed import parse_feed, reread_feed
from monitor.core.feed_marks import pack, unpack
from monitor.core.reconcile import Changes, DocumentMemory, KnownEntry, KnownPage, Rules, Scope
from monitor.core.reconcile_feed import place_entries, reconcile_feed
from monitor.core.reconcile_shown import UnsureError
from monitor.model import Entry, Feed, NotAFeed
from tests.core.test_feed_series import SUITES, URL, sample, series
from tests.corpus import members

SALT = "[]"


class Reader:
    """Reads versions of one feed as the poll does; `entries` are all it was ever given, by id."""

    def __init__(self) -> None:
        self.marks: frozenset[int] = frozenset()
        self.entries: dict[str, Entry] = {}
        self.left_out = 0

    def read(self, data: bytes, url: str = URL) -> Feed | None:
        try:
            feed, marks = reread_feed(data, url, None, self.marks, SALT)
        except NotAFeed:
            return None
        self.marks = unpack(pack(marks))
        self.entries |= {entry.id: entry for entry in feed.entries}
        self.left_out += len(feed.ids) - len(feed.entries)
        return feed

    def check(self, data: bytes) -> None:
        """Both ways of reading agree on the document and on every one of its entries."""
        again = self.read(data)
        if again is None:
            with pytest.raises(NotAFeed):
                parse_feed(data, URL)
            return
        full = parse_feed(data, URL)
        assert tuple(self.entries[entry_id] for entry_id in again.ids) == full.entries
        assert replace(again, entries=(), problems=()) == replace(full, entries=(), problems=())


def document(*items: str, head: str = "<channel>", root: str = '<rss version="2.0">') -> bytes:
    return f"{root}{head}{''.join(items)}</channel></rss>".encode()


def item(number: int, title: str = "A headline") -> str:
    link = f"https://news.example/{number}"
    return f"<item><guid>{number}</guid><title>{title}</title><link>{link}</link></item>"


def ids(feed: Feed | None) -> list[str]:
    assert feed is not None
    return [entry.id for entry in feed.entries]


def test_only_new_and_edited_entries_are_read_again() -> None:
    reader = Reader()
    assert ids(reader.read(document(item(1), item(2), item(3)))) == ["1", "2", "3"]
    assert ids(reader.read(document(item(4), item(1), item(2, "Another headline")))) == ["4", "2"]
    assert ids(reader.read(document(item(4), item(1), item(2, "Another headline")))) == []
    assert ids(reader.read(document(item(4), item(1), item(2)))) == ["2"]


@pytest.mark.parametrize(
    ("head", "root"),
    [
        ('<channel xml:lang="de">', '<rss version="2.0">'),
        ("<channel>", '<rss version="2.0" xml:base="https://other.example/">'),
        ("<channel>", '<rss version="2.0" title="a > b" xmlns:dc="urn:no-dublin-core">'),
        ("<channel>", '<!DOCTYPE rss [<!ENTITY eu "E">]><rss version="2.0"><title>&eu;</title>'),
        ("<channel>", '<rss version="0.91">'),
    ],
)
def test_what_stands_around_entries_counts_as_theirs(head: str, root: str) -> None:
    reader = Reader()
    reader.read(document(item(1), item(2)))
    assert ids(reader.read(document(item(1), item(2), head=head, root=root))) == ["1", "2"]


def test_another_address_or_another_filter_reads_the_whole() -> None:
    body = document(item(1), item(2))
    _feed, marks = reread_feed(body, URL, None, frozenset(), SALT)
    assert not reread_feed(body, URL, None, frozenset(marks), SALT)[0].entries
    assert reread_feed(body, f"{URL}?2", None, frozenset(marks), SALT)[0].entries
    assert reread_feed(body, URL, None, frozenset(marks), '["/news/**"]')[0].entries


def test_entries_that_are_not_certain_to_be_told_apart_are_read_each_time() -> None:
    for odd in (
        document(item(1), item(1, "Other"), item(2)),  # one id for two
        document("<item><title>No id, no link</title></item>", item(2)),
        document("<channel>" + item(1) + "</channel>", item(2)),  # entries in different places
    ):
        reader = Reader()
        for _ in range(2):
            reader.check(odd)
        assert reader.left_out == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", series())
def test_a_series_read_by_its_marks_is_the_series(name: str) -> None:
    reader = Reader()
    for data in sample(name):
        reader.check(data)


@pytest.mark.parametrize("name", ["feed-lemonde", "feed-bbc-education"])
def test_most_of_a_changed_feed_is_left_out(name: str) -> None:
    reader = Reader()
    shown = 0
    for data in sample(name):
        reader.check(data)
        shown += len(parse_feed(data, URL).ids)
    assert reader.left_out > shown / 3


@pytest.mark.slow
@pytest.mark.parametrize("archive", SUITES)
def test_any_document_read_twice_is_itself(archive: str) -> None:
    for _name, data in members(archive):
        reader = Reader()
        reader.check(data)
        reader.check(data)


# ---------------------------------------------------------------- histories

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


class Memory:
    """What is known of a feed whose reads come one way or the other."""

    def __init__(self, exclude: tuple[str, ...]) -> None:
        self.rules = Rules("example", Scope(frozenset({"news.example"}), exclude=exclude))
        self.document = DocumentMemory(URL, "feed")
        self.entries: dict[str, KnownEntry] = {}
        self.pages: dict[int, KnownPage] = {}

    def take(self, feed: Feed, now: datetime) -> list[tuple[str, str]]:
        placed, shared = place_entries(feed, self.document.state, self.rules.wanted)
        changes = reconcile_feed(
            feed,
            placed,
            document=self.document,
            entries=self.entries,
            pages={p.page_id: self.pages[p.page_id] for p in placed if p.page_id in self.pages},
            rules=self.rules,
            now=now,
        )
        changes.state["shared"] = shared
        self._apply(changes, now)
        return [(draft.type, draft.subject) for draft in changes.events]

    def _apply(self, changes: Changes, now: datetime) -> None:
        self.pages |= changes.pages
        for gone in changes.forgotten:
            self.entries.pop(gone, None)
        self.entries |= {known.entry_id: known for known in changes.entries}
        if changes.baseline and self.rules.since_at is None:
            self.rules = replace(self.rules, since_at=now.timestamp())
        self.document = replace(
            self.document,
            read_at=now.timestamp(),
            baseline_at=now.timestamp() if changes.baseline else self.document.baseline_at,
            pending=changes.pending,
            state=changes.state,
        )


def written(number: int, title: int, link: int, guid: bool, hour: int) -> str:
    date = (NOW - timedelta(days=2) + timedelta(hours=hour)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    identity = f"<guid isPermaLink='false'>g{number}</guid>" if guid else ""
    section = "live" if link % 4 == 3 else "news"
    url = f"https://news.example/{section}/{link}" + ("#part" if title == 2 else "")
    text = escape(f"Headline {number} & edition {title}")
    return f"<item>{identity}<title>{text}</title><link>{url}</link><pubDate>{date}</pubDate></item>"


ITEMS = st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 7), st.booleans(), st.integers(0, 47))
VERSIONS = st.lists(
    st.tuples(st.lists(ITEMS, max_size=6, unique_by=lambda values: values[0]), st.booleans(), st.booleans()),
    min_size=2,
    max_size=6,
)


@given(VERSIONS, st.sampled_from([(), ("/live/**",)]), st.booleans())
@settings(deadline=None)
def test_both_ways_tell_the_same_and_remember_the_same(
    history: list[tuple[list[tuple[int, int, int, bool, int]], bool, bool]], exclude: tuple[str, ...], pooled: bool
) -> None:
    one, other, marks = Memory(exclude), Memory(exclude), frozenset[int]()
    shared = [written(n, 0, n, True, 40 - n) for n in range(4)] if pooled else []
    for minutes, (items, keeps, cut) in enumerate(history):
        now = NOW + timedelta(minutes=10 * minutes)
        body = document(*(written(*values) for values in items), *(shared if keeps else shared[1:]))
        body = body[:-30] if cut and minutes else body
        try:
            full = parse_feed(body, URL)
        except NotAFeed:
            continue
        used = marks if other.document.baseline_at is not None else frozenset[int]()
        again, found = reread_feed(body, URL, None, used, SALT)
        marks = frozenset(found)
        told = one.take(full, now)
        try:
            retold = other.take(again, now)
        except UnsureError:
            assert len(again.entries) < len(again.ids)
            retold = other.take(full, now)
        assert retold == told
        assert other.entries == one.entries
        assert other.pages == one.pages
        assert other.document == one.document
