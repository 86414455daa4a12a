"""JSON Feed 1.0 and 1.1, and what is merely JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core import feed as feed_module
from monitor.core.feed import parse_feed
from monitor.model import Feed, NotAFeed

URL = "https://news.example/feed.json"
VERSION = "https://jsonfeed.org/version/1.1"


def read(items: Any, known: frozenset[str] = frozenset(), **fields: Any) -> Feed:
    body = {"version": VERSION, "title": "News", "items": items, **fields}
    return parse_feed(json.dumps(body).encode(), URL, "application/feed+json", known)


def test_a_full_feed() -> None:
    feed = read(
        [
            {
                "id": "a",
                "url": "/a",
                "title": "A headline",
                "summary": "Short",
                "content_html": "<p>Long</p>",
                "date_published": "2026-12-01T10:00:00+01:00",
                "date_modified": "2026-12-01T11:00:00+01:00",
                "authors": [{"name": "Ann Lee"}, {"url": "https://bo.example/"}],
                "tags": ["World", "World", 7],
            }
        ],
        home_page_url="https://news.example/",
        feed_url=URL,
        next_url="/feed.json?page=2",
        hubs=[{"type": "WebSub", "url": "https://hub.example/"}],
        language="en",
    )
    (entry,) = feed.entries
    assert (feed.format, feed.title, feed.complete, feed.problems) == ("json11", "News", True, ())
    assert (feed.home_url, feed.self_url, feed.hub) == ("https://news.example/", URL, "https://hub.example/")
    assert (feed.next_archive, feed.language) == ("https://news.example/feed.json?page=2", "en")
    assert (entry.id, entry.id_kind, entry.url) == ("a", "guid", "https://news.example/a")
    assert (entry.title, entry.summary) == ("A headline", "Short")
    assert entry.published == datetime(2026, 12, 1, 9, tzinfo=UTC)
    assert entry.updated == datetime(2026, 12, 1, 10, tzinfo=UTC)
    assert (entry.authors, entry.tags) == (("Ann Lee", "https://bo.example/"), ("World",))
    assert feed.dates == (entry.published,)


def test_ids_may_be_numbers_or_missing() -> None:
    feed = read([{"id": 2}, {"id": 3.5}, {"url": "/c", "title": "C"}, {"title": "D"}, {"id": True, "url": "/e"}])
    assert feed.ids[:3] == ("2", "3.5", "https://news.example/c")
    assert [entry.id_kind for entry in feed.entries] == ["guid", "guid", "link", "hash", "link"]
    assert [problem.rule for problem in feed.problems] == ["entry.id", "entry.id"]


def test_known_entries_count_but_are_not_read() -> None:
    items = [{"id": str(number), "date_published": f"2026-12-0{number}T00:00:00Z"} for number in (3, 2, 1)]
    feed = read(items, frozenset({"3", "1"}))
    assert [entry.id for entry in feed.entries] == ["2"]
    assert (feed.size, feed.ids, [date.day for date in feed.dates]) == (3, ("3", "2", "1"), [3, 2, 1])


def test_wrong_types_spoil_only_their_own_field() -> None:
    wrong = {"title": 1, "url": [], "authors": "x", "tags": {}, "date_published": 5, "content_html": True}
    feed = read(
        [{"id": "a", **wrong}, "no item", {"id": "b", "date_published": "soon"}], title=[], hubs="x", authors={}
    )
    assert (feed.ids, feed.title, feed.complete) == (("a", "b"), None, True)
    assert [problem.rule for problem in feed.problems] == ["entry.invalid", "entry.date"]
    assert read({"not": "a list"}).complete is False


def test_version_10_and_its_single_author() -> None:
    feed = read(
        [{"id": "a"}, {"id": "b", "author": {"name": "Bo"}}],
        version="https://jsonfeed.org/version/1",
        author={"name": "Ann"},
    )
    assert (feed.format, [entry.authors for entry in feed.entries]) == ("json10", [("Ann",), ("Bo",)])


def test_expired_is_told() -> None:
    assert [problem.rule for problem in read([], expired=True).problems] == ["feed.expired"]


def test_every_cut_keeps_the_whole_items() -> None:
    body = json.dumps(
        {
            "version": VERSION,
            "title": "News",
            "items": [{"id": str(number), "url": f"/{number}"} for number in range(4)],
        }
    )
    for length in range(body.index('"items"') + 10, len(body)):
        cut = parse_feed(body[:length].encode(), URL)
        assert not cut.complete
        assert cut.ids == tuple(str(number) for number in range(body[:length].count("}")))
        assert cut.title == "News"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error": "not found"}', "The body is JSON (an object), but not a JSON Feed."),
        (b'[{"title": "A"}]', "The body is JSON (an array), but not a JSON Feed."),
        (b'{"items": [', "The body is JSON (an object, broken), but not a JSON Feed."),
        (b"[" * 200_000, "The body is JSON (an object, broken), but not a JSON Feed."),
    ],
)
def test_other_json_is_refused(body: bytes, sentence: str) -> None:
    with pytest.raises(NotAFeed) as caught:
        parse_feed(body, URL)
    assert str(caught.value) == sentence


def test_items_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_ENTRIES", 2)
    feed = read([{"id": str(number)} for number in range(3)])
    assert (feed.ids, feed.complete, feed.problems[0].rule) == (("0", "1"), False, "feed.too-many")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["id", "url", "title", "summary", "content_html", "date_published", "authors", "author", "tags"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON, max_size=5), JSON, JSON)
def test_any_values_are_read(items: list[Any], hubs: Any, author: Any) -> None:
    feed = read(items, hubs=hubs, author=author)
    assert len(set(feed.ids)) == len(feed.ids) <= feed.size <= len(items)
    for entry in feed.entries:
        (entry.id + (entry.title or "") + "".join(entry.authors)).encode()
