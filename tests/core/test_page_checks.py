"""The page as a witness, and a source's health."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from monitor.core.health import Health, Outcome, after_poll
from monitor.core.page import PageFacts, read_page
from monitor.core.page_checks import PageMemory, PageReading, ask_again, judge_changed, judge_missing, same_place, walls
from monitor.core.reconcile import Check, KnownPage, Rules, Scope

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
RULES = Rules("example", Scope(frozenset()))
PAGE = KnownPage(1, "k", "https://www.example.com/news/1", "A headline", 0.0, announced=True)


def facts(text: str, modified: str = "") -> PageFacts:
    date = f'<meta property="article:modified_time" content="{modified}">' if modified else ""
    html = f"<html><head>{date}</head><body><article><p>{text}</p></article></body></html>"
    return read_page(html.encode(), url=PAGE.url, content_type="text/html")


def changed(weak: bool = False, **more: Any) -> Check:
    detail = {
        "url": PAGE.url,
        "found_in": {"kind": "sitemap", "url": "s"},
        "fields": ["lastmod"],
        "before": {"lastmod": "2026-11-01T10:00:00Z"},
        "after": {"lastmod": "2026-11-02T10:00:00Z"},
        "before_at": datetime(2026, 11, 1, 10, tzinfo=UTC).timestamp(),
        "modified_at": datetime(2026, 11, 2, 10, tzinfo=UTC).timestamp(),
        "weak": weak,
    }
    return Check(1, "changed", detail | more)


OLD, NEW = "The council met on Monday.", "The council did not meet at all."


@pytest.mark.parametrize(
    ("weak", "kept", "reading", "evidence", "witness"),
    [
        (True, facts(OLD).fingerprint, PageReading(200, PAGE.url, facts(NEW)), "page", "confirmed"),
        (False, facts(OLD).fingerprint, PageReading(200, PAGE.url, facts(OLD)), None, "denied"),
        (False, facts(OLD).fingerprint, PageReading(304, PAGE.url), None, "denied"),
        (False, None, PageReading(200, PAGE.url, facts(NEW)), "lastmod", "silent"),
        (True, None, PageReading(200, PAGE.url, facts(NEW)), None, "silent"),
        (True, None, PageReading(200, PAGE.url, facts(NEW, "2026-11-02T10:00:10Z")), "page", "confirmed"),
        (False, None, PageReading(200, PAGE.url, facts(NEW, "2026-05-01T10:00:00Z")), None, "denied"),
        (False, None, PageReading(None, error="no answer"), "lastmod", "silent"),
        (True, None, PageReading(503), None, "silent"),
    ],
)
def test_what_a_page_says_of_a_suspected_change(
    weak: bool, kept: str | None, reading: PageReading, evidence: str | None, witness: str
) -> None:
    changes, said = judge_changed(changed(weak), PAGE, PageMemory(fingerprint=kept), reading, RULES, NOW)
    assert said == witness
    assert [e.data["evidence"] for e in changes.events] == ([evidence] if evidence else [])


def test_an_edit_that_was_told_meanwhile_is_not_told_again() -> None:
    told = replace(PAGE, changed_at=NOW.timestamp())
    reading = PageReading(200, PAGE.url, facts(NEW))
    changes, _said = judge_changed(changed(), told, PageMemory(fingerprint="x"), reading, RULES, NOW)
    assert changes.events == []


def missing(**more: Any) -> Check:
    detail = {
        "reason": "removed",
        "found_in": {"kind": "sitemap", "url": "s"},
        "missing_from": ["sitemap"],
        "last_seen": None,
        "reads": 2,
        "proof_needed": False,
    }
    return Check(1, "missing", detail | more)


UNPROVEN = missing(reason="withdrawn", missing_from=["feed"], proof_needed=True)


@pytest.mark.parametrize(
    ("check", "reading", "listed", "reason"),
    [
        (missing(), PageReading(404), set(), "dead"),
        (missing(), PageReading(410), {"feed"}, "dead"),
        (missing(), PageReading(404), {"sitemap"}, None),  # listed again by now
        (missing(), PageReading(200, PAGE.url), set(), "removed"),
        (missing(), PageReading(200, PAGE.url), {"feed"}, None),
        (missing(), PageReading(None, error="no answer"), set(), "removed"),
        (missing(), PageReading(503, "https://www.example.com/wall", again=True), set(), "removed"),
        (UNPROVEN, PageReading(503, "https://www.example.com/wall", again=True), set(), None),
        (missing(), PageReading(200, "https://www.example.com/"), set(), "redirected"),
        (missing(), PageReading(200, "http://example.com/news/1/"), set(), "removed"),  # its own address still
        (missing(reason="withdrawn", missing_from=["feed"]), PageReading(200, PAGE.url), set(), "withdrawn"),
        (UNPROVEN, PageReading(200, PAGE.url), set(), None),
        (UNPROVEN, PageReading(None), set(), None),
        (UNPROVEN, PageReading(404), set(), "dead"),
    ],
)
def test_what_a_page_says_of_its_absence(
    check: Check, reading: PageReading, listed: set[str], reason: str | None
) -> None:
    changes = judge_missing(check, PAGE, reading, listed, RULES, NOW)
    assert [e.data["reason"] for e in changes.events] == ([reason] if reason else [])
    assert [p.missing_reason for p in changes.pages.values()] == ([reason] if reason else [])


WALL = "https://www.example.com/consent?back="


@pytest.mark.parametrize(
    ("target", "permanent", "others", "reason"),
    [
        ("https://www.example.com/news/1-moved", True, (), "redirected"),
        ("https://www.example.com/news/1-moved", False, (), None),
        ("https://www.example.com/", True, (), None),
        ("https://example.com", True, (), None),
        (f"{WALL}1", True, (f"{WALL}2",), None),
        (f"{WALL}1", True, (), "redirected"),
        (f"{WALL}1", False, (), None),
    ],
)
def test_a_redirect_proves_that_a_listed_page_moved_only_if_it_is_its_own_and_for_good(
    target: str, permanent: bool, others: tuple[str, ...], reason: str | None
) -> None:
    hidden = read_page(b'<html><meta name="robots" content="noindex"></html>', url=target, content_type="text/html")
    readings = [PageReading(200, one, hidden, permanent=permanent) for one in (target, *others)]
    nowhere = walls(
        ((f"https://www.example.com/news/{n}", r) for n, r in enumerate(readings, 1)), "https://example.com/"
    )
    changes = judge_missing(missing(), PAGE, readings[0], {"feed"}, RULES, NOW, nowhere)
    assert [e.data["reason"] for e in changes.events] == ([reason] if reason else [])


def test_a_page_without_an_answer_is_asked_again_less_and_less_often_for_a_day() -> None:
    assert [ask_again(tries, 0.0, 0.0) for tries in (1, 2, 3, 4, 5)] == [600.0, 1800.0, 7200.0, 21600.0, None]
    assert ask_again(0, None, 10.0, patience=3600.0) == 3610.0
    assert ask_again(1, 0.0, 86400.0) is None


def test_same_place() -> None:
    assert same_place("https://www.example.com/a", "http://example.com/a/?utm_source=x")
    assert not same_place("https://www.example.com/a", "https://www.example.com/a?page=2")


def polls(*results: str, moved_to: str | None = None) -> list[str]:
    health, told = Health("ok"), []
    for result in results:
        outcome = Outcome(result, 200, "why", moved_to if result == "unchanged" else None)  # type: ignore[arg-type]
        health, drafts = after_poll(health, outcome, site="s", kind="feed", url="u", now=1.0)
        told += [draft.type for draft in drafts]
    return told


def test_a_hiccup_is_no_news_and_a_failure_that_lasts_is_told_once() -> None:
    assert polls("failed", "failed", "unchanged", "failed", "failed", "modified") == []
    assert polls(*["failed"] * 9, "unchanged", "unchanged") == ["source.failing", "source.recovered"]
    assert polls("partial", "throttled", "failed") == ["source.failing"]
    assert polls("gone", "gone", "modified") == ["source.gone", "source.recovered"]
    assert polls(*["unchanged"] * 6, moved_to="https://new.example/") == ["source.moved"]
    assert polls("unchanged", "unchanged", "modified", "unchanged", "unchanged", moved_to="n") == []
