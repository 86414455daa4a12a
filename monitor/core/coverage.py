"""Which pages feed, news sitemap, sitemap and crawl have in common, and what each lacks (pure).

Four sets of pages, numbered as in `identity.page_id`, become one report (CONTRACT "Coverage report, JSON"). A page
either has a story (a row of its own, with times) or is a line of a listing and nothing else; sites have a million of
the latter, so those pass through in batches and leave a number and four bits behind.

A kind of source lacks a page only if it could know it (`Knowing`): a feed and a news sitemap what was published since
they are watched, a sitemap everything, a crawl what stands below its sections, if it came to its end; and each only
what was known before it was last read.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from monitor.core.coverage_twins import Twins
from monitor.core.identity import page_ids
from monitor.core.url import host_of, is_site_host, page_keys
from monitor.model import SourceKind

KINDS: tuple[SourceKind, ...] = ("feed", "news_sitemap", "sitemap", "crawl")
BITS: dict[SourceKind, int] = {kind: 1 << place for place, kind in enumerate(KINDS)}

LISTED_AT_MOST = 10_000
"""Pages that the report names for each source that lacks them; all are counted."""

PART = 50_000
"""Lines of a listing that are in hand at a time."""

_HEAD = re.compile(r"^[^/\n]*+//[^/\n?#]*+(?:/[^/\n?#]*+(?=/[^\n?#]))?", re.M)
"""An address up to its first folder, or its host where it stands in none."""

JUDGED = 1 << len(KINDS)
"""The bit of a page that was judged: documents that list it again change nothing."""

SECTIONS = 100
"""Sections that are told apart, those with most pages; the rest is summed up."""

OFF_HOST_SAMPLE = 20

Reason = Literal["not_listed", "section_not_listed", "not_linked", "dropped", "removed", "withdrawn"]

REASONS: dict[str, str] = {
    "not_listed": "was read since the page is known, and never listed it",
    "section_not_listed": "lists no page of this section at all",
    "not_linked": "no page that was crawled links to it",
    "dropped": "listed it once, and does no more",
    "removed": "dropped it, in as many complete reads as it takes",
    "withdrawn": "took it from inside its window",
}
"""What the reasons mean, as the rest of a sentence that begins with the source."""


@dataclass(frozen=True, slots=True)
class Story:
    """A page with a row of its own. `came_at` is when it was published, as far as that is known: by its own date, else
    by when a source first listed it after its baseline. `missing_reason` is set while it is missing."""

    url: str
    first_at: float
    published_at: float | None = None
    came_at: float | None = None
    missing_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Pages that a document lists. `first_at`: when they were first known, those without a story.

    `published`: their dates, where the document is one that tells them; empty, or one for each URL.
    """

    urls: Sequence[str]
    first_at: float
    published: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True)
class Knowing:
    """What the sources of a kind could know; or some of them, where several values are of one kind.

    `since_at` is the earliest baseline of them, `until_at` the oldest of their last good reads; None: there is none.
    `sections`: only what begins with one of these (a crawl); `whole` False: it was cut short, and what it does not
    list says nothing.
    """

    kind: SourceKind
    since_at: float | None
    until_at: float | None
    sections: tuple[str, ...] = ()
    whole: bool = True

    def could_know(self, url: str, first_at: float, came_at: float | None) -> bool:
        """Whether a page would be listed if the sources of this kind listed all that they ought to."""
        if self.until_at is None or not self.whole or first_at > self.until_at:
            return False
        if self.sections and not url.startswith(self.sections):
            return False
        if self.kind in ("sitemap", "crawl"):
            return True
        return came_at is not None and self.since_at is not None and came_at > self.since_at


@dataclass(frozen=True, slots=True)
class Lacking:
    """A page that a kind of source lacks. `seen_in` are the kinds that have it."""

    url: str
    seen_in: tuple[SourceKind, ...]
    first_at: float
    reason: Reason


@dataclass(slots=True)
class Coverage:
    """A coverage report. Counts are of pages; `lags` are sorted seconds from publication to the first listing.

    `missing` names at most `LISTED_AT_MOST` pages for each kind, `missing_counts` counts all. `days` has the pages that
    each kind first listed by UTC day (days since the epoch).
    """

    site: str
    since: float | None
    until: float
    why: tuple[str, ...] = ()
    sources: dict[SourceKind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    union: int = 0
    combinations: list[tuple[tuple[SourceKind, ...], int]] = field(default_factory=list)
    missing: dict[SourceKind, list[Lacking]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    missing_counts: dict[SourceKind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    sections: list[tuple[str, dict[SourceKind, int]]] = field(default_factory=list)
    days: dict[int, dict[SourceKind, int]] = field(default_factory=dict)
    lags: dict[SourceKind, list[float]] = field(default_factory=dict)
    off_host: list[dict[str, Any]] = field(default_factory=list)
    disallowed: list[dict[str, Any]] = field(default_factory=list)
    duplicates: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a site. `hosts` are its own, `home` its home page's.

    `sighted` are, by kind, ids of stories that sources of it list or listed; `batches` gives what its documents list
    (asked more than once); `shown` tells when a kind first listed a story, if that was after its baseline. `former` are
    ids of stories that a sitemap has dropped.
    """

    site: str
    home: str
    hosts: frozenset[str]
    knowing: Sequence[Knowing]
    stories: Mapping[int, Story]
    sighted: Mapping[SourceKind, Collection[int]]
    batches: Callable[[SourceKind], Iterable[Batch]]
    shown: Mapping[SourceKind, Mapping[int, float]] = field(default_factory=dict)
    former: Collection[int] = frozenset()


def cover(known: Known, *, since: float | None, until: float, most: int = LISTED_AT_MOST) -> Coverage:
    """Compare the sources of a site. `since`: only pages first known from then on count."""
    work = _Work(known, since, most, Coverage(known.site, since, until))
    work.count()
    work.lacks()
    work.times()
    return work.report


def section_of(url: str, home: str) -> str:
    """The section of a page: the first folder of its path, ``/news/``; ``/`` where it stands in none.

    With scheme and host where the host is not `home` (``www.`` does not count).
    """
    parts = url.partition("#")[0].partition("?")[0].split("/", 4)
    folder = f"/{parts[3]}/" if len(parts) > 4 and parts[4] else "/"
    host = parts[2] if len(parts) > 2 else ""
    own = host.partition(":")[0].removeprefix("www.")
    return folder if own == home.removeprefix("www.") else f"{parts[0]}//{host}{folder}"


class _Work:
    """One report in the making. `masks` has for each page the bits of the kinds that have it."""

    def __init__(self, known: Known, since: float | None, most: int, report: Coverage) -> None:
        self.known, self.since, self.most, self.report = known, since, most, report
        self.masks: dict[int, int] = {}
        self.sections: dict[str, dict[SourceKind, int]] = {}
        self.off: dict[SourceKind, list[str]] = {}
        self.off_counts: Counter[SourceKind] = Counter()
        self.ours: dict[str, bool] = {}
        self.ids: dict[SourceKind, list[array[int]]] = {}
        self.combined: set[int] = set()
        self.firsts: dict[int, float] = {}
        self.dated: dict[int, tuple[str, float]] = {}
        self.twins = Twins()

    def count(self) -> None:
        """Sets, their overlaps and sections."""
        if self.since is not None:  # a page counts by when it was first known: by whichever document
            for kind in KINDS:
                for batch, urls, numbers in self._parts(kind):
                    self._learn(batch, urls, numbers)
        for kind in KINDS:
            self._add_stories(kind)
            for batch, urls, numbers in self._parts(kind):
                if self.since is None:
                    self._learn(batch, urls, numbers)
                self._add_lines(kind, urls, numbers)
        report = self.report
        report.union = len(self.masks)
        counted = Counter(self.masks.values())
        self.combined = set(counted)
        report.combinations = sorted(
            ((kinds_of(mask), count) for mask, count in counted.items()), key=lambda item: (-item[1], item[0])
        )
        for kinds, count in report.combinations:
            for kind in kinds:
                report.sources[kind] += count
        report.sections = _largest(self.sections)
        report.off_host = [
            {"kind": kind, "url": None, "count": count, "sample": self.off[kind]}
            for kind, count in self.off_counts.items()
        ]

    def _parts(self, kind: SourceKind) -> Iterator[tuple[Batch, Sequence[str], Sequence[int]]]:
        """(batch, URLs, ids) of what documents of a kind list, so many at a time that memory is bounded.

        Ids are found once, and kept in eight bytes each.
        """
        kept = self.ids.setdefault(kind, [])
        place = 0
        for batch in self.known.batches(kind):
            for start in range(0, len(batch.urls), PART):
                urls = batch.urls[start : start + PART]
                numbers: Sequence[int] = kept[place] if place < len(kept) else page_ids(page_keys(urls))
                if place == len(kept):
                    kept.append(array("Q", numbers))
                yield Batch(urls, batch.first_at, batch.published[start : start + PART]), urls, numbers
                place += 1

    def _learn(self, batch: Batch, urls: Sequence[str], numbers: Sequence[int]) -> None:
        """Since when pages without a story are known, and their dates."""
        firsts, fresh = self.firsts, dict.fromkeys(numbers, batch.first_at)
        older = {number: at for number in firsts.keys() & fresh.keys() if (at := firsts[number]) < batch.first_at}
        firsts.update(fresh)
        firsts.update(older)
        for url, number, date in zip(urls, numbers, batch.published, strict=False):
            if date is not None and number not in self.known.stories:
                self.dated.setdefault(number, (url, date))

    def _add_stories(self, kind: SourceKind) -> None:
        bit, masks, stories = BITS[kind], self.masks, self.known.stories
        for number in self.known.sighted.get(kind, ()):
            story = stories.get(number)
            if story is None or (self.since is not None and story.first_at < self.since):
                continue
            if not self._is_ours(story.url):
                self._off_host(kind, story.url)
                continue
            before = masks.get(number, 0)
            if not before & bit:
                masks[number] = before | bit
                self._section(kind, (story.url,))

    def _off_host(self, kind: SourceKind, url: str) -> None:
        self.off_counts[kind] += 1
        sample = self.off.setdefault(kind, [])
        if len(sample) < OFF_HOST_SAMPLE:
            sample.append(url)

    def _add_lines(self, kind: SourceKind, urls: Sequence[str], numbers: Sequence[int]) -> None:
        bit, masks, since = BITS[kind], self.masks, self.since
        if since is None and masks.keys().isdisjoint(numbers):  # as with nearly all files of a sitemap
            masks.update(dict.fromkeys(numbers, bit))
            alone = len(set(numbers)) == len(numbers)
            self._section(kind, urls if alone else list(dict(zip(numbers, urls, strict=True)).values()))
            return
        fresh = []
        for url, number in zip(urls, numbers, strict=True):
            before = masks.get(number, 0)
            if before & bit or (since is not None and self._first_at(number) < since):
                continue
            masks[number] = before | bit
            fresh.append(url)
        self._section(kind, fresh)

    def _first_at(self, number: int) -> float:
        story = self.known.stories.get(number)
        return story.first_at if story is not None else self.firsts[number]

    def _section(self, kind: SourceKind, urls: Sequence[str]) -> None:
        """Count pages by section, and note what forms their addresses have."""
        if not urls:
            return
        text = "\n".join(urls)
        heads = Counter(_HEAD.findall(text))
        self.twins.note(heads, slashed=f"{text}\n".count("/\n"), of=len(urls))
        for head, count in heads.items():
            section = section_of(f"{head}/x", self.known.home)
            counts = self.sections.get(section)
            if counts is None:
                counts = self.sections[section] = dict.fromkeys(KINDS, 0)
            counts[kind] += count

    def _is_ours(self, url: str) -> bool:
        parts = url.split("/", 3)
        origin = parts[2] if len(parts) > 2 else ""
        ours = self.ours.get(origin)
        if ours is None:
            ours = self.ours[origin] = is_site_host(host_of(url), self.known.hosts)
        return ours

    # ---------------------------------------------------------------- what lacks

    def lacks(self) -> None:
        """For each kind the pages that it could know and does not have; and addresses that are much alike."""
        masks, stories = self.masks, self.known.stories
        judges = [knowing for knowing in self.known.knowing if knowing.until_at is not None and knowing.whole]
        self.twins.settle()
        for number, story in stories.items():
            if not (mask := masks.get(number, 0)):
                continue
            self.twins.look(story.url, masks)
            if story.missing_reason not in ("dead", "redirected"):
                self._judge(number, mask, story, judges)
        for number, (url, date) in self.dated.items():
            if mask := masks.get(number, 0):
                self._judge(number, mask, Story(url, self.firsts[number], date, date), judges)
        # Those without a date may be of any age, which only a sitemap and a crawl do not care about.
        ageless = [judge for judge in judges if judge.kind in ("sitemap", "crawl")]
        for kind in ("news_sitemap", "sitemap", "crawl"):
            others = [judge for judge in ageless if judge.kind != kind]
            wanted = sum({BITS[judge.kind] for judge in others})
            lacking = any(mask & BITS[kind] and wanted & ~mask for mask in self.combined)
            if lacking or self.twins.possible:
                self._lacks_of_lines(kind, others)
        for lists in self.report.missing.values():
            lists.sort(key=lambda lack: (lack.first_at, lack.url))
        self.report.duplicates = self.twins.found(self.most)

    def _lacks_of_lines(self, kind: SourceKind, judges: Sequence[Knowing]) -> None:
        masks, stories = self.masks, self.known.stories
        wanted = sum({BITS[judge.kind] for judge in judges})
        for _batch, urls, numbers in self._parts(kind):
            for place, mask in enumerate(map(masks.get, numbers)):
                if mask is None:
                    continue
                if self.twins.possible:
                    self.twins.look(urls[place], masks)
                number = numbers[place]
                if wanted & ~mask and not mask & JUDGED and number not in stories and number not in self.dated:
                    masks[number] = mask | JUDGED
                    self._judge(number, mask, Story(urls[place], self.firsts[number]), judges)

    def _judge(self, number: int, mask: int, story: Story, judges: Sequence[Knowing]) -> None:
        report, blamed = self.report, mask
        for judge in judges:
            if blamed & BITS[judge.kind] or not judge.could_know(story.url, story.first_at, story.came_at):
                continue
            blamed |= BITS[judge.kind]
            report.missing_counts[judge.kind] += 1
            if len(report.missing[judge.kind]) < self.most:
                reason = self._reason(judge.kind, number, story)
                report.missing[judge.kind].append(Lacking(story.url, kinds_of(mask), story.first_at, reason))

    def _reason(self, kind: SourceKind, number: int, story: Story) -> Reason:
        if kind == "sitemap" and story.missing_reason == "removed":
            return "removed"
        if kind == "feed" and story.missing_reason == "withdrawn":
            return "withdrawn"
        if kind == "sitemap" and number in self.known.former:
            return "dropped"
        if kind == "crawl":
            return "not_linked"
        section = self.sections.get(section_of(story.url, self.known.home))
        return "section_not_listed" if section is not None and not section[kind] else "not_listed"

    # ---------------------------------------------------------------- when

    def times(self) -> None:
        """How long after publication each kind first listed a page, and how many it first listed by day."""
        since = {knowing.kind: knowing.since_at for knowing in self.known.knowing}
        for kind in KINDS:
            lags = []
            for number, shown_at in self.known.shown.get(kind, {}).items():
                if not self.masks.get(number, 0) & BITS[kind]:
                    continue
                day = self.report.days.setdefault(int(shown_at // 86400), dict.fromkeys(KINDS, 0))
                day[kind] += 1
                published, begin = self.known.stories[number].published_at, since.get(kind)
                if published is not None and begin is not None and published >= begin:
                    lags.append(max(0.0, shown_at - published))
            self.report.lags[kind] = sorted(lags)


def kinds_of(mask: int) -> tuple[SourceKind, ...]:
    """The kinds whose bits are set."""
    return tuple(kind for kind in KINDS if mask & BITS[kind])


def _largest(sections: Mapping[str, dict[SourceKind, int]]) -> list[tuple[str, dict[SourceKind, int]]]:
    """The sections with most pages, and the rest under ``*``."""
    ranked = sorted(sections.items(), key=lambda item: (-max(item[1].values()), item[0]))
    kept, rest = ranked[:SECTIONS], ranked[SECTIONS:]
    if rest:
        kept.append(("*", {kind: sum(counts[kind] for _prefix, counts in rest) for kind in KINDS}))
    return kept
