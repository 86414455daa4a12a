"""Coverage against a model that does it the plain way, page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from monitor.core.coverage import KINDS, Batch, Coverage, Knowing, Known, Story, cover, section_of
from monitor.core.coverage_data import lag_data, percentile, report_data
from monitor.core.identity import page_id
from monitor.core.url import page_key, page_keys
from monitor.model import SourceKind

HOME = "www.example.com"
BASE = f"https://{HOME}"


@dataclass
class Page:
    """A page of the model: who lists it or did, since when it is known, when it was published."""

    url: str
    first_at: float
    published_at: float | None
    story: bool
    reason: str | None = None
    kinds: set[SourceKind] = field(default_factory=set)
    shown: dict[SourceKind, float] = field(default_factory=dict)


@dataclass
class Source:
    since_at: float | None = None
    until_at: float | None = None
    sections: tuple[str, ...] = ()
    whole: bool = True


class Histories(RuleBasedStateMachine):
    """Sites that publish, list, unlist, and are read well or badly; `report` is compared with `truth` at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.pages: list[Page] = []
        self.sources = {kind: Source() for kind in KINDS}

    @rule(kind=st.sampled_from(KINDS))
    def read(self, kind: SourceKind) -> None:
        """A good read: the first is the baseline."""
        source = self.sources[kind]
        self.now += 10
        if source.since_at is None:
            source.since_at = self.now
        source.until_at = self.now

    @rule(whole=st.booleans(), sections=st.sampled_from([(), (f"{BASE}/news/",), (f"{BASE}/a/", f"{BASE}/b/")]))
    def crawl(self, whole: bool, sections: tuple[str, ...]) -> None:
        self.read("crawl")
        self.sources["crawl"].whole, self.sources["crawl"].sections = whole, sections

    @rule(
        section=st.sampled_from(["/", "/news/", "/a/", "/b/"]),
        kinds=st.sets(st.sampled_from(KINDS), min_size=1),
        age=st.none() | st.integers(0, 60),
        story=st.booleans(),
    )
    def publish(self, section: str, kinds: set[SourceKind], age: int | None, story: bool) -> None:
        self.now += 1
        # A feed always gives its pages a story; a line without one has a date only if a crawl gives it.
        story = story or "feed" in kinds
        published = None if age is None or (not story and "crawl" not in kinds) else self.now - age
        page = Page(f"{BASE}{section}{len(self.pages)}", self.now, published, story, kinds=set(kinds))
        if story:
            page.shown = dict.fromkeys(kinds, self.now)
        self.pages.append(page)

    @precondition(lambda self: self.pages)
    @rule(place=st.integers(0, 50), kind=st.sampled_from(KINDS))
    def list_elsewhere(self, place: int, kind: SourceKind) -> None:
        page = self.pages[place % len(self.pages)]
        self.now += 1
        if page.story or kind != "feed":
            if page.story:
                page.shown.setdefault(kind, self.now)
            page.kinds.add(kind)

    @precondition(lambda self: any(page.story for page in self.pages))
    @rule(place=st.integers(0, 50), reason=st.sampled_from([None, "dead", "redirected", "removed", "withdrawn"]))
    def miss(self, place: int, reason: str | None) -> None:
        stories = [page for page in self.pages if page.story]
        stories[place % len(stories)].reason = reason

    @precondition(lambda self: any(page.story for page in self.pages))
    @rule(place=st.integers(0, 50))
    def unlist(self, place: int) -> None:
        stories = [page for page in self.pages if page.story]
        stories[place % len(stories)].kinds.discard("sitemap")

    # ---------------------------------------------------------------- both sides

    def known(self) -> Known:
        stories = {
            page_id(page_key(p.url)): Story(
                p.url, p.first_at, p.published_at, p.first_at if p.published_at is None else p.published_at, p.reason
            )
            for p in self.pages
            if p.story
        }

        def batches(kind: SourceKind) -> Iterator[Batch]:
            for page in self.pages:
                if kind != "feed" and kind in page.kinds and not (page.story and kind == "news_sitemap"):
                    yield Batch([page.url], page.first_at, [page.published_at] if kind == "crawl" else ())

        return Known(
            site="example",
            home=HOME,
            hosts=frozenset([HOME]),
            knowing=[Knowing(k, s.since_at, s.until_at, s.sections, s.whole) for k, s in self.sources.items()],
            stories=stories,
            sighted={
                kind: {page_id(page_key(p.url)) for p in self.pages if p.story and kind in p.kinds}
                for kind in ("feed", "news_sitemap")
            },
            batches=batches,
            shown={
                kind: {page_id(page_key(p.url)): p.shown[kind] for p in self.pages if kind in p.shown} for kind in KINDS
            },
        )

    def lacks(self, page: Page, kind: SourceKind) -> bool:
        source = self.sources[kind]
        if kind in page.kinds or page.reason in ("dead", "redirected"):
            return False
        if source.until_at is None or not source.whole or page.first_at > source.until_at:
            return False
        if source.sections and not any(page.url.startswith(section) for section in source.sections):
            return False
        if kind in ("sitemap", "crawl"):
            return True
        came = page.published_at
        if came is None:
            came = page.first_at if page.story else None
        return came is not None and source.since_at is not None and came > source.since_at

    def compare(self, report: Coverage, since: float | None) -> None:
        pages = [page for page in self.pages if page.kinds and (since is None or page.first_at >= since)]
        assert report.union == len(pages)
        assert report.sources == {kind: sum(kind in page.kinds for page in pages) for kind in KINDS}
        combined = Counter(tuple(kind for kind in KINDS if kind in page.kinds) for page in pages)
        assert dict(report.combinations) == dict(combined)
        for kind in KINDS:
            told = [(lack.url, set(lack.seen_in), lack.first_at) for lack in report.missing[kind]]
            truth = [(p.url, p.kinds, p.first_at) for p in pages if self.lacks(p, kind)]
            assert sorted(told, key=str) == sorted(truth, key=str)
            assert report.missing_counts[kind] == len(truth)
            begin = self.sources[kind].since_at
            lags = [
                page.shown[kind] - page.published_at
                for page in pages
                if kind in page.shown and kind in page.kinds and page.published_at is not None
                if begin is not None and page.published_at >= begin
            ]
            assert report.lags[kind] == sorted(max(0.0, lag) for lag in lags)
        for prefix, counts in report.sections:
            inside = [page for page in pages if section_of(page.url, HOME) == prefix]
            assert counts == {kind: sum(kind in page.kinds for page in inside) for kind in KINDS}

    @invariant()
    def agrees(self) -> None:
        self.compare(cover(self.known(), since=None, until=self.now), None)
        since = self.now / 2
        self.compare(cover(self.known(), since=since, until=self.now), since)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def plain(urls: list[str], kind: SourceKind = "sitemap", **knowing: float) -> Known:
    """A site whose only source lists these."""
    told = Knowing(kind, knowing.get("since", 0.0), knowing.get("until", 10.0))
    return Known("x", HOME, frozenset([HOME]), [told], {}, {}, lambda k: [Batch(urls, 0.0)] if k == kind else [])


@pytest.mark.parametrize(
    ("urls", "why"),
    [
        (["/a", "/a/"], "differ only in a trailing slash"),
        (["/a", "http://www.example.com/a"], "differ only in http and https"),
        (["/a", "https://example.com/a"], "differ only in www."),
    ],
)
def test_addresses_that_are_much_alike_are_shown_as_pairs(urls: list[str], why: str) -> None:
    full = [url if "://" in url else BASE + url for url in urls]
    report = cover(plain([*full, f"{BASE}/other"]), since=None, until=20.0)
    assert report.duplicates == [{"urls": sorted(full), "why": why}]
    assert report.union == 3  # they stay two pages: nothing proves that they are one


def test_a_site_of_one_form_has_no_pairs() -> None:
    urls = [f"{BASE}/{n}/" for n in range(5)]
    assert cover(plain(urls), since=None, until=20.0).duplicates == []


@pytest.mark.parametrize(
    ("url", "section"),
    [
        (f"{BASE}/news/a", "/news/"),
        (f"{BASE}/news/2026/a", "/news/"),
        (f"{BASE}/a", "/"),
        (f"{BASE}/a/", "/"),
        (f"{BASE}/", "/"),
        (BASE, "/"),
        (f"{BASE}/a?x=/b/c", "/"),
        ("https://example.com/news/a", "/news/"),
        ("https://amp.example.com/news/a", "https://amp.example.com/news/"),
        (f"{BASE}:8080/news/a", "/news/"),
    ],
)
def test_the_section_of_a_page_is_the_first_folder_of_its_path(url: str, section: str) -> None:
    assert section_of(url, HOME) == section


def test_percentiles_are_of_the_nearest_rank() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.9, 0.99, 1.0)] == [50, 90, 99, 100]
    assert percentile([7.0], 0.5) == 7
    assert lag_data([]) == {}
    assert lag_data([1.0, 2.0, 3.0]) == {"n": 3, "p50": 2, "p90": 3, "p99": 3}


def test_all_are_counted_and_so_many_named() -> None:
    urls = [f"{BASE}/news/{n}" for n in range(50)]
    known = plain(urls)
    known.knowing.append(Knowing("crawl", 0.0, 10.0))  # type: ignore[attr-defined]
    report = cover(known, since=None, until=20.0, most=7)
    assert (report.missing_counts["crawl"], len(report.missing["crawl"])) == (50, 7)
    assert {lack.reason for lack in report.missing["crawl"]} == {"not_linked"}


def test_pages_on_other_hosts_are_counted_apart() -> None:
    story = Story("https://elsewhere.example/a", 1.0, None, 1.0)
    known = Known("x", HOME, frozenset([HOME]), [], {5: story}, {"feed": {5}}, lambda _kind: [])
    report = cover(known, since=None, until=20.0)
    assert (report.union, report.sources["feed"]) == (0, 0)
    assert report.off_host == [{"kind": "feed", "url": None, "count": 1, "sample": ["https://elsewhere.example/a"]}]
    assert report_data(report)["combinations"] == []


@pytest.mark.parametrize(
    "urls",
    [
        [f"{BASE}/a", f"{BASE}/b?x=1&utm_source=rss", "https://WWW.example.com/c"],
        [f"{BASE}/a", f"{BASE}/./b"],
        [f"{BASE}/a", BASE],
        [f"{BASE}/a;jsessionid=1", f"{BASE}/a#top"],
        [f"{BASE}/a", f"{BASE}/%7Eb"],
        ["https://www.example.com:443/a"],
        [],
    ],
)
def test_the_keys_of_many_are_the_keys_of_each(urls: list[str]) -> None:
    assert page_keys(urls) == [page_key(url) for url in urls]
