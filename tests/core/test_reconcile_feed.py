"""Feeds against what is known of them: the smallest history of each rule, and histories made at random."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.reconcile import Changes, DocumentMemory, KnownEntry, KnownPage, Rules, Scope
from monitor.core.reconcile_feed import place_entries, reconcile_feed
from monitor.core.reconcile_window import confirm_absences
from monitor.model import Entry, Feed

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
URL = "https://www.example.com/feed.xml"


def entry(number: int, *, title: str | None = None, guid: str | None = None, text: str = "", **more: object) -> Entry:
    title = title or f"Headline number {number}"
    values: dict[str, object] = {
        "id": guid or f"g{number}",
        "id_kind": "guid",
        "url": f"https://www.example.com/news/{number}",
        "title": title,
        "published": NOW - timedelta(days=10) + timedelta(hours=number),
        "updated": None,
        "content_hash": f"{title}|{text}",
    }
    return Entry(**(values | more))  # type: ignore[arg-type]


def feed(*entries: Entry, complete: bool = True) -> Feed:
    return Feed(
        format="rss20",
        url=URL,
        title="Example",
        entries=entries,
        ids=tuple(e.id for e in entries),
        size=len(entries),
        complete=complete,
        moments=tuple(e.published or e.updated for e in entries),
    )


class Memory:
    """A store of one feed in a dictionary: applies changes as the real one does."""

    def __init__(self, **rules: object) -> None:
        self.rules = Rules("example", **({"scope": Scope(frozenset({"www.example.com"}))} | rules))  # type: ignore[arg-type]
        self.document = DocumentMemory(URL, "feed")
        self.entries: dict[str, KnownEntry] = {}
        self.pages: dict[int, KnownPage] = {}
        self.now = NOW

    def read(self, *entries: Entry, complete: bool = True) -> Changes:
        self.now += timedelta(minutes=10)
        parsed = feed(*entries, complete=complete)
        placed, shared = place_entries(parsed, self.document.state)
        changes = reconcile_feed(
            parsed,
            placed,
            document=self.document,
            entries=self.entries,
            pages=self.pages,
            rules=self.rules,
            now=self.now,
        )
        changes.state["shared"] = shared
        self._apply(changes, complete=complete)
        return changes

    def confirm(self) -> Changes:
        self.now += timedelta(minutes=10)
        pending = [e for e in self.entries.values() if e.absent]
        changes = confirm_absences(pending, document=self.document, rules=self.rules, now=self.now)
        self._apply(changes, complete=True)
        return changes

    def _apply(self, changes: Changes, *, complete: bool) -> None:
        self.pages |= changes.pages
        for gone in changes.forgotten:
            self.entries.pop(gone, None)
        for known in changes.entries:
            self.entries[known.entry_id] = known
        seconds = self.now.timestamp()
        if changes.baseline and self.rules.since_at is None:
            self.rules = replace(self.rules, since_at=seconds)
        self.document = replace(
            self.document,
            read_at=seconds,
            baseline_at=seconds if changes.baseline else self.document.baseline_at,
            partials=self.document.partials + (not complete),
            pending=changes.pending,
            state=changes.state,
        )


def told(changes: Changes, kind: str = "url.") -> list[tuple[str, str]]:
    return [(d.type, d.subject.rsplit("/", 1)[-1]) for d in changes.events if d.type.startswith(kind)]


def test_the_first_read_is_quiet_and_the_next_tells_what_is_new() -> None:
    memory = Memory()
    first = memory.read(entry(2), entry(1))
    assert (told(first), first.baseline, first.new) == ([], True, 2)
    second = memory.read(entry(3), entry(2), entry(1))
    assert told(second) == [("url.new", "3")]
    assert second.new == 1
    assert told(memory.read(entry(3), entry(2), entry(1))) == []


def test_a_cut_first_read_is_no_baseline_and_the_rest_of_it_is_not_news() -> None:
    memory = Memory()
    assert not memory.read(entry(3), complete=False).baseline
    whole = memory.read(entry(3), entry(2), entry(1))
    assert (told(whole), whole.baseline) == ([], True)


def test_a_feed_that_is_never_whole_alerts_from_its_fourth_read() -> None:
    memory = Memory()
    for _ in range(3):
        last = memory.read(entry(1), complete=False)
    assert last.baseline
    assert told(memory.read(entry(2), entry(1), complete=False)) == [("url.new", "2")]


def test_all_guids_anew_on_the_same_links_is_no_news() -> None:
    memory = Memory()
    memory.read(entry(2), entry(1))
    again = memory.read(entry(2, guid="https://g2"), entry(1, guid="https://g1"))
    assert told(again) == []
    assert sorted(again.forgotten) == ["g1", "g2"]
    assert told(memory.read(entry(3, guid="https://g3"), entry(2, guid="https://g2"))) == [("url.new", "3")]


def moved(number: int, **more: object) -> Entry:
    """The entry after the site went to another host, ids and all."""
    return entry(number, guid=f"https://new.example/{number}", url=f"https://new.example/{number}", **more)


def test_a_site_that_moves_with_all_ids_and_links_makes_no_news() -> None:
    memory = Memory(scope=Scope(frozenset({"www.example.com", "new.example"})))
    memory.read(*(entry(n) for n in (3, 2, 1)))
    assert told(memory.read(*(moved(n) for n in (4, 3, 2, 1)))) == [("url.new", "4")]
    assert told(memory.read(*(moved(n) for n in (4, 3, 2, 1)))) == []
    assert told(memory.read(*(moved(n, text="edited") for n in (4, 3)), moved(2), moved(1))) == [
        ("url.changed", "4"),
        ("url.changed", "3"),
    ]


def renamed(number: int, slug: str, title: str) -> Entry:
    url = f"https://www.example.com/news/{slug}"
    return entry(number, title=title, guid=url, url=url)


def test_a_headline_that_is_in_id_and_link_may_be_edited() -> None:
    memory = Memory()
    memory.read(renamed(2, "minister-resigns", "Minister resigns"), entry(1))
    changes = memory.read(renamed(2, "prime-minister-resigns", "Prime minister resigns"), entry(1))
    assert told(changes) == [("url.changed", "prime-minister-resigns")]
    assert changes.events[0].data["before"]["title"] == "Minister resigns"
    assert told(memory.read(renamed(2, "prime-minister-resigns", "Prime minister resigns"), entry(1))) == []


def test_the_number_of_an_article_is_evidence_for_a_rename_and_a_day_is_none() -> None:
    for slug, kinds in (("-1234567.html", ["url.changed"]), ("-20261102.html", ["url.new"])):
        memory = Memory()
        memory.read(renamed(2, f"a{slug}", "Alpha"), entry(1))
        changes = memory.read(renamed(2, f"b{slug}", "Entirely other words"), entry(1))
        assert [kind for kind, _ in told(changes)] == kinds


def test_a_rename_needs_evidence_and_one_candidate_alone() -> None:
    memory = Memory()
    memory.read(renamed(2, "a", "Minister resigns"), entry(1))
    assert told(memory.read(renamed(3, "b", "Minister resigns at last"), entry(1))) == [
        ("url.new", "b")
    ]  # another date
    memory = Memory()
    memory.read(renamed(2, "a", "Minister resigns"), entry(1))
    both = [renamed(2, "b", "Minister resigns now"), renamed(2, "c", "Minister resigns today")]
    assert told(memory.read(*both, entry(1))) == [("url.new", "b"), ("url.new", "c")]
    memory = Memory()
    memory.read(renamed(2, "a", "Minister resigns"), entry(1))
    still = memory.read(renamed(2, "b", "Minister resigns now"), renamed(2, "a", "Minister resigns"), entry(1))
    assert told(still) == [("url.new", "b")]
    memory = Memory()
    memory.read(renamed(2, "a", "Minister resigns"), entry(1))
    part = memory.read(renamed(2, "b", "Minister resigns now"), entry(1), complete=False)
    assert told(part) == [("url.new", "b")]  # the other may be in the part that was lost


def test_entries_that_share_a_link_are_pages_of_their_own() -> None:
    memory = Memory()
    log = "https://www.example.com/changelog"
    memory.read(entry(2, url=f"{log}#2"), entry(1, url=f"{log}#1"))
    third = memory.read(entry(3, url=f"{log}#3"), entry(2, url=f"{log}#2"))
    assert [d.subject for d in third.events if d.type == "url.new"] == [f"{log}#3"]
    home = "https://www.example.com/"
    memory = Memory()
    memory.read(entry(2, url=home), entry(1, url=home))
    assert len([d for d in memory.read(entry(3, url=home), entry(2, url=home)).events if d.type == "url.new"]) == 1


def test_an_edit_is_told_once_and_a_moved_date_alone_is_a_question() -> None:
    memory = Memory()
    memory.read(entry(1))
    edited = memory.read(entry(1, title="Another headline"))
    assert told(edited) == [("url.changed", "1")]
    assert edited.events[0].data["changed"] == ["title"]
    assert edited.events[0].data["before"] == {"title": "Headline number 1"}
    assert told(memory.read(entry(1, title="Another headline"))) == []
    content = memory.read(entry(1, title="Another headline", text="more"))
    assert content.events[0].data["changed"] == ["content"]
    memory = Memory()
    memory.read(entry(1, updated=NOW))
    bumped = memory.read(entry(1, updated=NOW + timedelta(hours=1)))
    assert told(bumped) == []
    assert [c.why for c in bumped.checks] == ["changed"]


def test_a_text_that_flaps_between_two_versions_falls_silent() -> None:
    memory = Memory()
    memory.read(entry(1, text="a"))
    events = [len(told(memory.read(entry(1, text="ab"[n % 2 == 0])))) for n in range(12)]
    assert sum(events) <= 3
    assert events[-4:] == [0, 0, 0, 0]


def test_a_window_without_a_known_entry_is_a_gap_with_an_estimate() -> None:
    memory = Memory()
    memory.read(*(entry(n) for n in (3, 2, 1)))
    changes = memory.read(*(entry(n) for n in (12, 11, 10)))
    gaps = [d for d in changes.events if d.type == "source.gap"]
    assert len(gaps) == 1
    assert gaps[0].data["known_before"] == 3
    assert gaps[0].data["estimated_lost"] == 6
    assert len(told(changes)) == 3


def test_a_page_is_dropped_when_its_entry_takes_another_link_and_no_other_entry_has_it() -> None:
    memory = Memory()
    memory.read(entry(3), entry(2), entry(1))
    page = memory.entries["g2"].page_id
    assert memory.read(entry(3), entry(2, url="https://www.example.com/news/two"), entry(1)).dropped == [page]
    assert memory.read(entry(3), entry(2, url="https://www.example.com/news/two"), entry(1)).dropped == []
    swapped = memory.read(
        entry(3, url="https://www.example.com/news/1"), entry(1, url="https://www.example.com/news/3")
    )
    assert swapped.dropped == [memory.entries["g2"].page_id]  # that one left


def test_an_entry_whose_link_moves_out_of_what_is_watched_leaves_its_page() -> None:
    memory = Memory(scope=Scope(frozenset(), include=("/news/**",)))
    memory.read(entry(2), entry(1))
    page = memory.entries["g2"].page_id
    away = [memory.read(sport(2), entry(1)) for _ in range(2)]
    assert [changes.dropped for changes in away] == [[page], []]
    assert told(memory.read(entry(2), entry(1))) == []


def sport(number: int) -> Entry:
    return entry(number, url=f"https://www.example.com/sport/{number}")


def gaps(changes: Changes) -> list[tuple[int, int]]:
    return [(d.data["known_before"], d.data["estimated_lost"]) for d in changes.events if d.type == "source.gap"]


def test_entries_that_the_filter_passes_by_overlap_as_any_other_does() -> None:
    memory = Memory(scope=Scope(frozenset(), include=("/news/**",)))
    memory.read(*(sport(n) for n in (5, 4, 3, 2)), entry(1))
    assert gaps(memory.read(*(sport(n) for n in (6, 5, 4, 3, 2)))) == []
    assert gaps(memory.read(*(sport(n) for n in (9, 8, 7, 6)))) == []
    cut = memory.read(sport(10), complete=False)
    assert gaps(cut) == []  # what it does not show may overlap
    assert gaps(memory.read(*(sport(n) for n in (12, 11, 9)))) == []
    assert gaps(memory.read(*(sport(n) for n in (22, 21, 20)))) == [(3, 7)]


def test_a_filter_does_not_unsettle_a_window() -> None:
    memory = Memory(scope=Scope(frozenset(), include=("/news/**",)))
    for _ in range(4):
        memory.read(entry(5), sport(4), entry(3), entry(2), entry(1))
    memory.read(entry(5), sport(4), entry(2), entry(1))
    assert [c.detail["proof_needed"] for c in memory.confirm().checks] == [False]


def test_an_entry_gone_from_inside_a_steady_window_is_asked_after_twice() -> None:
    memory = Memory()
    numbers = [5, 4, 3, 2, 1]
    for _ in range(4):
        assert memory.read(*(entry(n) for n in numbers)).checks == []
    left = [entry(n) for n in numbers if n != 4]
    assert memory.read(*left).checks == []
    confirmed = memory.confirm()
    assert [(c.why, c.detail["reason"], c.detail["proof_needed"]) for c in confirmed.checks] == [
        ("missing", "withdrawn", False)
    ]
    assert memory.confirm().checks == []


def test_a_partial_read_withdraws_nothing() -> None:
    memory = Memory()
    for _ in range(4):
        memory.read(*(entry(n) for n in (5, 4, 3, 2, 1)))
    for _ in range(4):
        cut = memory.read(*(entry(n) for n in (5, 3, 2, 1)), complete=False)
        assert (cut.checks, cut.dropped, cut.pending) == ([], [], 0)
    assert memory.confirm().checks == []


def test_leaving_by_age_withdraws_nothing() -> None:
    memory = Memory()
    for newest in range(5, 30):
        assert memory.read(*(entry(n) for n in range(newest, newest - 5, -1))).checks == []


def test_each_host_of_a_merged_feed_has_a_window_of_its_own() -> None:
    """As in the corpus's feed-anac-rss: articles leave by age while older videos of another host stay."""
    memory = Memory()
    videos = [entry(n, url=f"https://videos.example.net/{n}") for n in (4, 2, 1)]
    for newest in range(10, 30):
        articles = [entry(n) for n in range(newest, newest - 5, -1)]
        assert memory.read(*articles, *videos).checks == []
        assert memory.confirm().checks == []


def test_a_feed_whose_links_and_ids_all_change_withdraws_nothing() -> None:
    """As in the corpus's zhaoqi-atom: the site moved its posts to other addresses, the newest ones a draft fewer."""
    memory = Memory()
    for _ in range(4):
        memory.read(*(entry(n) for n in (5, 4, 3, 2, 1)))
    moved = [entry(n, guid=f"p{n}", url=f"https://www.example.com/posts/{n}/") for n in (5, 3, 2, 1)]
    for _ in range(3):
        assert memory.read(*moved).checks == []
        assert memory.confirm().checks == []


def test_a_feed_that_takes_entries_back_needs_proof() -> None:
    memory = Memory()
    for _ in range(4):
        memory.read(*(entry(n) for n in (5, 4, 3, 2, 1)))
    memory.read(*(entry(n) for n in (5, 3, 2, 1)))
    memory.read(*(entry(n) for n in (5, 4, 3, 2, 1)))  # back again: it drops entries as it likes
    memory.read(*(entry(n) for n in (5, 4, 2, 1)))
    checks = memory.confirm().checks
    assert [c.detail["proof_needed"] for c in checks] == [True]


def test_a_page_absorbed_by_a_later_baseline_but_published_since_is_still_news() -> None:
    memory = Memory()
    memory.read(entry(1))
    assert memory.rules.since_at is not None
    late = entry(2, published=memory.now + timedelta(minutes=5))
    placed, _shared = place_entries(feed(late), {})
    number = placed[0].page_id
    memory.pages[number] = KnownPage(
        number, placed[0].key, late.url or "", None, memory.now.timestamp() + 400, announced=False
    )
    assert told(memory.read(late, entry(1))) == [("url.new", "2")]
    old = entry(3)
    placed, _shared = place_entries(feed(old), {})
    memory.pages[placed[0].page_id] = KnownPage(
        placed[0].page_id, placed[0].key, old.url or "", None, memory.now.timestamp() + 400, announced=False
    )
    assert told(memory.read(old, late, entry(1))) == []


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.booleans(), st.sampled_from(["publish", "edit", "rekey", "rebuild"])),
        max_size=25,
    ),
    st.integers(3, 8),
)
def test_every_published_entry_is_told_exactly_once(history: list[tuple[int, bool, str]], window: int) -> None:
    """Any order of publishing (never more than a window at a time), editing, renumbering and cut reads."""
    memory = Memory()
    shown = [entry(n) for n in range(window, 0, -1)]
    memory.read(*shown)
    number, keyed, news = window, "", []
    for count, whole, action in history:
        if action == "publish":
            for _ in range(min(count, window - 1)):
                number += 1
                shown.insert(0, entry(number, guid=f"{keyed}g{number}"))
        elif action == "edit" and shown:
            target = shown[count % len(shown)]
            shown[count % len(shown)] = replace(
                target, title=f"{target.title} x", content_hash=target.content_hash + "x"
            )
        elif action == "rekey":
            keyed += "k"
            shown = [replace(e, id="k" + e.id) for e in shown]
        shown = shown[:window]
        changes = memory.read(*(shown if whole else shown[: window - 1 or 1]), complete=whole)
        news += [subject for kind, subject in told(changes) if kind == "url.new"]
    news += [subject for kind, subject in told(memory.read(*shown)) if kind == "url.new"]
    assert sorted(news, key=int) == [str(n) for n in range(window + 1, number + 1)]


def test_entries_that_a_wider_filter_lets_in_are_no_news() -> None:
    memory = Memory(scope=Scope(frozenset(), exclude=("/news/1",)))
    memory.read(entry(2), entry(1))
    memory.rules = replace(memory.rules, scope=Scope(frozenset()))
    assert told(memory.read(entry(3), entry(2), entry(1))) == [("url.new", "3")]
    assert told(memory.read(entry(3), entry(2), entry(1))) == []


def test_an_edit_that_a_sitemap_told_of_is_no_second_event_and_its_headline_is_known() -> None:
    memory = Memory()
    memory.read(entry(2), entry(1))
    (number,) = [page.id for page in memory.pages.values() if page.url.endswith("/2")]
    # A sitemap's lastmod told of it a minute ago.
    memory.pages[number] = replace(memory.pages[number], changed_at=memory.now.timestamp() + 60.0, changed="lastmod")
    edited = memory.read(entry(2, title="Another headline"), entry(1))
    assert told(edited) == []
    assert memory.pages[number].title == "Another headline"
