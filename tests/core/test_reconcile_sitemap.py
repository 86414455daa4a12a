"""Sitemap documents against what is known of them, and the verdicts that rest on whole trees."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.absences import Absence, judge_absences
from monitor.core.dates import parse_date
from monitor.core.listing import ListingRead, compare_listing, is_suspect
from monitor.core.reconcile import Changes, DocumentMemory, KnownPage, KnownRow, Rules, Scope
from monitor.core.reconcile_sitemap import reconcile_listing
from monitor.core.trust import Movement, judge_read, plausible
from monitor.model import News, Row, Sitemap

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
URL = "https://www.example.com/sitemap.xml"


def row(number: int, *, lastmod: str | None = None, title: str | None = None, host: str = "www.example.com") -> Row:
    date = parse_date(lastmod) if lastmod else None
    return Row(
        f"https://{host}/news/{number}",
        lastmod=date.instant if date else None,
        lastmod_precision=date.precision if date else None,
        lastmod_text=lastmod,
        news=News(title=title, publication_date=NOW) if title else None,
    )


class Memory:
    """A store of one document in dictionaries."""

    def __init__(self, kind: str = "sitemap", **rules: Any) -> None:
        self.kind = kind
        self.rules = Rules("example", Scope(frozenset({"www.example.com"})), **rules)
        self.document = DocumentMemory(URL, kind)
        self.listing: bytes | None = None
        self.rows: dict[int, KnownRow] = {}
        self.pages: dict[int, KnownPage] = {}
        self.now = NOW
        self.last: ListingRead | None = None

    def read(self, *rows: Row, complete: bool = True, most_new: int = 0) -> Changes:
        self.now += timedelta(hours=6)
        quiet = self.document.baseline_at is None and self.document.quiet
        watched = frozenset(n for n, page in self.pages.items() if page.missing_at is not None)
        sitemap = Sitemap("urlset", URL, rows, complete)
        read = compare_listing(
            sitemap, previous=self.listing, memory=self.document, scope=self.rules.scope, quiet=quiet, watched=watched
        )
        self.last = read
        changes = reconcile_listing(
            read,
            kind=self.kind,
            document=self.document,
            known=self.rows,
            pages=self.pages,
            rules=self.rules,
            most_new=most_new,
            now=self.now,
        )
        seconds = self.now.timestamp()
        self.listing = read.listing if read.listing is not None else self.listing
        self.pages |= changes.pages
        self.rows |= {known.page_id: known for known in changes.rows}
        self.document = replace(
            self.document,
            read_at=seconds,
            baseline_at=seconds if changes.baseline else self.document.baseline_at,
            partials=self.document.partials + (not complete),
            counts=(*self.document.counts, len(rows))[-5:] if read.whole else self.document.counts,
            suspect=len(rows) if read.suspect else None,
            state=changes.state,
        )
        return changes

    def dropped(self, *rows: Row, complete: bool = True) -> int:
        """How many pages a read finds gone."""
        self.read(*rows, complete=complete)
        assert self.last is not None
        return len(self.last.gone)


def told(changes: Changes) -> list[tuple[str, str]]:
    return [(d.type, d.subject.rsplit("/", 1)[-1]) for d in changes.events]


def test_the_first_read_is_quiet_and_the_next_tells_what_is_new() -> None:
    memory = Memory()
    assert told(memory.read(row(1), row(2))) == []
    assert told(memory.read(row(1), row(2), row(3))) == [("url.new", "3")]
    assert told(memory.read(row(1), row(2), row(3))) == []


def test_a_file_listed_after_its_sources_baseline_is_news_itself() -> None:
    memory = Memory()
    memory.document = replace(memory.document, quiet=False)
    assert told(memory.read(row(1))) == [("url.new", "1")]


def test_other_hosts_are_counted_and_make_no_events() -> None:
    memory = Memory()
    memory.read(row(1))
    changes = memory.read(row(1), row(2, host="other.example"), row(3, host="example.com"))
    assert told(changes) == [("url.new", "3")]  # www. and the apex are twins
    assert changes.state["off_host"] == {"count": 1, "sample": ["https://other.example/news/2"]}


def test_an_address_without_a_path_is_the_sites_too() -> None:
    memory = Memory()
    memory.read(row(1))
    assert told(memory.read(row(1), Row("https://www.example.com"))) == [("url.new", "www.example.com")]


def test_a_partial_or_shrunken_read_drops_nothing() -> None:
    memory = Memory()
    everything = [row(n) for n in range(20)]
    memory.read(*everything)
    assert memory.dropped(*everything[:5], complete=False) == 0
    assert memory.dropped(*everything[:5]) == 0  # suspicious
    assert memory.dropped(*everything[:5]) == 15  # and confirmed
    assert sum(row.last_at is not None for row in memory.rows.values()) == 15
    assert told(memory.read(*everything)) == []  # back: known pages, none of them missing yet


@pytest.mark.parametrize(("before", "now", "suspect"), [(20, 14, False), (20, 13, True), (6, 2, False), (100, 0, True)])
def test_a_shrink_is_suspicious_below_seven_tenths_of_the_usual(before: int, now: int, suspect: bool) -> None:
    document = DocumentMemory(URL, "sitemap", counts=(before,) * 5)
    assert is_suspect(now, document) is suspect
    assert not is_suspect(now, replace(document, suspect=now))


def test_a_file_that_stays_short_is_doubted_once() -> None:
    """As in the corpus's sitemap-fotor: 2533 rows, then 1219 for good."""
    memory = Memory()
    everything = [row(n) for n in range(40)]
    for _ in range(5):
        memory.read(*everything)
    dropped = [memory.dropped(*everything[: 20 - n]) for n in range(4)]
    assert dropped == [0, 21, 1, 1]


def test_a_news_headline_is_a_change_and_its_block_going_is_none() -> None:
    memory = Memory("news_sitemap")
    memory.read(row(1, title="Council votes to keep the library"))
    edited = memory.read(row(1, title="Library saved by a single vote"))
    assert told(edited) == [("url.changed", "1")]
    assert edited.events[0].data["before"] == {"title": "Council votes to keep the library"}
    assert told(memory.read(row(1))) == []
    assert told(memory.read(row(1, title="Library saved by a single vote"))) == []


def test_a_lastmod_in_another_form_is_no_question_and_an_advanced_one_is() -> None:
    memory = Memory()
    others = [row(n, lastmod="2026-01-01") for n in range(2, 9)]
    memory.read(row(1, lastmod="2026-11-02T08:00:00Z"), *others)
    same = memory.read(row(1, lastmod="2026-11-02T09:00:00+01:00"), *others)
    assert (told(same), same.checks) == ([], [])
    moved = memory.read(row(1, lastmod="2026-11-03T02:00:00Z"), *others)
    assert [(c.why, c.detail["weak"]) for c in moved.checks] == [("changed", False)]
    back = memory.read(row(1, lastmod="2026-10-01T02:00:00Z"), *others)
    assert (told(back), back.checks) == ([], [])


def test_lastmods_that_all_move_together_say_nothing_and_lose_their_trust() -> None:
    memory = Memory()
    events = []
    for hour in range(5):
        stamp = f"2026-11-02T{12 + hour:02d}:00:00Z"
        changes = memory.read(*(row(n, lastmod=stamp) for n in range(10)))
        assert changes.checks == []
        events += told(changes)
    assert events == [("source.untrusted", "sitemap.xml")]


def test_a_thousand_new_pages_at_once_are_one_surge() -> None:
    memory = Memory()
    memory.read(row(0))
    surge = memory.read(*(row(n) for n in range(1502)), most_new=10)
    assert told(surge) == [("source.surge", "sitemap.xml")]
    assert surge.events[0].data["count"] == 1501
    assert memory.pages == {}  # they are lines of the listing, and known
    assert told(memory.read(*(row(n) for n in range(1503)), most_new=1501)) == [("url.new", "1502")]
    memory = Memory()
    memory.read(row(0))
    assert len(told(memory.read(*(row(n) for n in range(1001)), most_new=0))) == 1000


PAGE = KnownPage(1, "k", "https://www.example.com/news/1", None, 0.0, announced=True)


@pytest.mark.parametrize(
    ("absent", "elsewhere", "verdict"),
    [
        (1, (), None),
        (2, (), False),
        (3, (), False),
        (2, (("sitemap", True, 0),), None),  # moved to another file
        (2, (("sitemap", False, 1),), None),  # the other file has yet to confirm
        (2, (("sitemap", False, 2),), False),
        (2, (("news_sitemap", False, 0),), False),  # aged out of there: no witness
        (2, (("feed", True, 0),), True),  # only if it is dead itself
        (3, (("feed", True, 0),), None),  # and asked but once
    ],
)
def test_what_a_tree_that_lacks_a_page_says(
    absent: int, elsewhere: tuple[tuple[str, bool, int], ...], verdict: bool | None
) -> None:
    rules = Rules("example", Scope(frozenset()))
    changes = judge_absences([Absence(PAGE, "sitemap", URL, 1.0, absent, elsewhere)], rules)
    assert [c.detail["proof_needed"] for c in changes.checks] == ([] if verdict is None else [verdict])


def test_a_page_that_is_missing_already_is_not_asked_again() -> None:
    rules = Rules("example", Scope(frozenset()))
    gone = replace(PAGE, missing_at=5.0, missing_reason="dead")
    assert judge_absences([Absence(gone, "sitemap", URL, 1.0, 2)], rules).checks == []
    memory = Memory()
    memory.read(row(1), row(2))
    memory.read(row(2))
    (number,) = memory.pages
    memory.pages[number] = replace(memory.pages[number], missing_at=NOW.timestamp(), missing_reason="dead")
    back = memory.read(row(1), row(2))
    assert told(back) == [("url.returned", "1")]
    assert back.events[0].data["missing_seconds"] > 0
    assert told(memory.read(row(1), row(2))) == []


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("2026-11-01", "2026-11-02", "plausible"),
        ("2026-11-02T10:00:00Z", "2026-11-02T11:30:00Z", "plausible"),
        ("2025-01-01", "2025-02-01", "odd"),
        ("2026-11-02", "2026-11-01", "not-newer"),
        ("2026-11-02", "0000-00-00", "not-newer"),
        ("nonsense", "2026-11-02", "not-newer"),
    ],
)
def test_plausible(before: str, now: str, verdict: str) -> None:
    assert plausible(before, row(1, lastmod=now), NOW.timestamp() - 3600, NOW.timestamp()) == verdict


def test_trust_comes_back_after_clean_reads() -> None:
    memory: dict[str, Any] = {}
    for _ in range(3):
        evidence = judge_read(Movement(10, 10, 10, 10), memory)
        memory = evidence.memory
    assert evidence.verdict == "untrusted"
    verdicts = []
    for _ in range(6):
        evidence = judge_read(Movement(21, 21, 1, 0), memory)
        memory = evidence.memory
        verdicts.append((evidence.verdict, evidence.verdict_changed))
    assert verdicts[3:6] == [("untrusted", False), ("trusted", True), ("trusted", False)]


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 30), max_size=20), st.booleans()),
        min_size=1,
        max_size=15,
    )
)
def test_any_history_of_whole_and_partial_reads_tells_each_page_once(history: list[tuple[set[int], bool]]) -> None:
    """Against a brute-force model: what was in the baseline is known, all else is new at its first sight."""
    memory = Memory()
    known: set[int] = set()
    based = False
    partials = 0
    news: list[str] = []
    expected: list[str] = []
    for numbers, whole in history:
        changes = memory.read(*(row(n) for n in sorted(numbers)), complete=whole)
        news += [subject for kind, subject in told(changes) if kind == "url.new"]
        if based:
            expected += [str(n) for n in sorted(numbers - known)]
        known |= numbers
        partials += not whole
        based = based or whole or partials >= 3
        if not whole:
            assert memory.last is not None
            assert memory.last.gone == ()
    assert news == expected
    assert len(set(news)) == len(news)


def test_an_archive_with_news_blocks_is_no_news_sitemap() -> None:
    from dataclasses import fields

    from monitor.store.sources import DocumentRow, SourceRow
    from monitor.tree_file import kind_of

    blank = {f.name: None for f in fields(DocumentRow)} | {
        "url": "https://www.example.com/articles.xml",
        "kind": "sitemap",
    }
    document = DocumentRow(**blank)  # type: ignore[arg-type]
    source = SourceRow(**({f.name: None for f in fields(SourceRow)} | {"kind": "sitemap"}))  # type: ignore[arg-type]

    def listing(days: int, count: int = 20) -> ListingRead:
        rows = tuple(
            Row(
                f"https://www.example.com/{n}",
                news=News(title="t", publication_date=NOW - timedelta(days=days * n / count)),
            )
            for n in range(count)
        )
        return compare_listing(
            Sitemap("urlset", document.url, rows, complete=True, is_news=True),
            previous=None,
            memory=DocumentMemory(document.url, "sitemap"),
            scope=Scope(frozenset()),
            quiet=True,
        )

    assert kind_of(listing(2), document, source) == "news_sitemap"
    assert kind_of(listing(400), document, source) == "sitemap"
    assert kind_of(listing(2, count=0), replace(document, kind="news_sitemap"), source) == "news_sitemap"
    assert kind_of(listing(400), document, replace(source, kind="news_sitemap")) == "news_sitemap"
