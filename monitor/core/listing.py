"""A document's listing: what a sitemap file lists, compact, and what a new read of it differs in (pure).

A listing is text, a line a page: address, lastmod and, where the row has one, title, with tabs between. Compressed it
costs four bytes a page. Two listings are compared as sets of lines, so that only what differs is ever looked at as
rows and pages; this runs in the parse workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from statistics import median

from monitor.core.decode import decode
from monitor.core.identity import page_id, page_ids
from monitor.core.listing_pack import Line, pack_ids, pack_lines, parse_line, unpack_lines
from monitor.core.reconcile import DocumentMemory, Scope
from monitor.core.sitemap import parse_sitemap
from monitor.core.sitemap_lines import PlainLines, read_lines
from monitor.core.sitemap_rows import row_of_texts
from monitor.core.trust import BULK_FLOOR, Movement
from monitor.core.url import host_of, is_site_host, page_key
from monitor.model import Problem, Row, Sitemap, SitemapKind

NEWS_SPAN = timedelta(days=10)
"""All but a tenth of a news sitemap's articles were published within this span: Google asks for two days, sites keep a
few more."""

SHRINK = 0.7
"""A complete read below this share of the median of the last five is suspicious and needs a further one (DESIGN)."""

SHRINK_FLOOR = 5
"""... if it lacks at least so many rows: a file of three that becomes one of two is no sign of damage."""

OFF_HOST_SAMPLE = 20


@dataclass(frozen=True, slots=True)
class Listed:
    """A page that a read is about: its id and key, its row now (None: listed no more), its line before (None: new)."""

    id: int
    key: str
    row: Row | None
    before: Line | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which moves of lastmods are to be handed out: none, or up to `most`, and of more than those about `sample`."""

    lastmods: bool = True
    most: int = 1_000_000
    sample: int = 20


EVERY_CHANGE = Wanted()


@dataclass(frozen=True, slots=True)
class ListingRead:
    """One read of a document against the listing before.

    `rows` counts all rows, `listed` the pages of the site among them. `whole` says that what is not listed is known to
    be gone: the read was complete and not suspiciously short (`suspect`). `changed` are those of `changed_count`
    changes that were wanted. `listing` is the new listing, None where it is the one before; `ids` the sorted page ids,
    packed, None where no page came or went, `moved_ids` those that did. `added` and `removed` are the lines that
    differ, packed like a listing.
    """

    digest: str
    kind: SitemapKind
    complete: bool
    suspect: bool
    problems: tuple[Problem, ...]
    rows: int
    listed: int
    children: tuple[tuple[str, str | None], ...]
    news: int
    recent: bool
    movement: Movement
    off_hosts: int
    off_host: tuple[str, ...]
    filtered: int
    new: tuple[Listed, ...] = ()
    changed: tuple[Listed, ...] = ()
    changed_count: int = 0
    gone: tuple[Listed, ...] = ()
    listing: bytes | None = None
    ids: bytes | None = None
    moved_ids: tuple[int, ...] = ()
    added: bytes = b""
    removed: bytes = b""

    @property
    def whole(self) -> bool:
        """Whether what is not listed is known to be gone."""
        return self.complete and not self.suspect


def is_suspect(rows: int, document: DocumentMemory) -> bool:
    """Whether a whole read is suspiciously short against the last ones, and not yet confirmed by a further one.

    A read as short as the last one that was believed is confirmed by it, while the median is still that of before.
    """
    if len(document.counts) < 1:
        return False
    usual = median(document.counts)
    if rows >= usual * SHRINK or usual - rows < SHRINK_FLOOR:
        return False
    alike = [n for n in (document.suspect, document.counts[-1]) if n is not None]
    return all(abs(rows - n) > max(SHRINK_FLOOR, 0.1 * n) for n in alike)


def title_of(row: Row) -> str | None:
    """The headline a row carries, if any: of its news block, or of the item where the sitemap is a feed."""
    return row.news.title if row.news is not None else row.title


def read_listing(
    body: bytes,
    url: str,
    *,
    transferred: bool,
    digest: str | None,
    previous: bytes | None,
    memory: DocumentMemory,
    scope: Scope,
    quiet: bool,
    watched: frozenset[int] = frozenset(),
    want: Wanted = EVERY_CHANGE,
) -> ListingRead | None:
    """Read a sitemap document and compare it with the listing before; None where its bytes are those of `digest`.

    `transferred` False: the transfer was cut. `quiet` reads are baselines: their new pages are not handed out one by
    one, but for those of `watched` (pages that are missing); `want` bounds the changes. Raises NotASitemap.
    """
    peeled = decode(body)
    found = sha256(peeled.data).hexdigest()
    whole = transferred and peeled.complete
    if whole and found == digest:
        return None
    fast = read_lines(peeled.data) if whole else None
    kept = None
    if fast is not None:
        kept, sitemap = Pages(scope).plain(fast), Sitemap("urlset", url, (), complete=True)
    else:
        sitemap = parse_sitemap(peeled.data, url, whole=whole)
    read = compare_listing(
        sitemap, previous=previous, memory=memory, scope=scope, quiet=quiet, watched=watched, want=want, kept=kept
    )
    return replace(read, digest=found, problems=peeled.problems + read.problems)


def compare_listing(
    sitemap: Sitemap,
    *,
    previous: bytes | None,
    memory: DocumentMemory,
    scope: Scope,
    quiet: bool,
    watched: frozenset[int] = frozenset(),
    want: Wanted = EVERY_CHANGE,
    kept: Pages | None = None,
) -> ListingRead:
    """`read_listing` of a document that is parsed; `kept` are its pages where they were read faster than its rows."""
    kept = kept or Pages(scope).rows(sitemap.rows)
    news = [row.news for row in sitemap.rows if row.news is not None and not row.child]
    read = ListingRead(
        digest="",
        kind=sitemap.kind,
        complete=sitemap.complete,
        suspect=sitemap.complete and is_suspect(kept.count, memory),
        problems=sitemap.problems,
        rows=kept.count,
        listed=len(kept.lines),
        children=tuple((row.url, row.lastmod_text) for row in sitemap.rows if row.child),
        news=len(news),
        recent=_within_days([n.publication_date for n in news if n.publication_date is not None]),
        movement=Movement(len(kept.lines), 0, 0, 0),
        off_hosts=kept.off_hosts,
        off_host=tuple(kept.off_host),
        filtered=kept.filtered,
    )
    if previous is None:
        return _first(read, kept, quiet=quiet, watched=watched)
    former = Scope.load(memory.state["scope"]) if "scope" in memory.state else scope
    return _compare(read, kept, unpack_lines(previous), former=former, quiet=quiet, watched=watched, want=want)


def _within_days(dates: list[datetime]) -> bool:
    """Whether the articles came within days of each other, as those of a news sitemap do, however old they are by now.

    Some sites put a news block on every row of their whole archive: that is no news sitemap, and pages do go missing
    from it.
    """
    if len(dates) < 2:
        return True
    dates = sorted(dates)
    return dates[-(len(dates) // 20) - 1] - dates[len(dates) // 20] <= NEWS_SPAN


class Pages:
    """The site's pages among the rows of a document: one line each, of the first row that names it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.count = 0
        self.lines: list[str] = []
        self.keys: list[str] = []
        self.made: list[Row] = []  # the row of each line; empty on the fast path
        self.off_hosts = 0
        self.off_host: list[str] = []
        self.filtered = 0
        self._origins: dict[str, bool] = {}  # rows are many, hosts few

    def plain(self, found: PlainLines) -> Pages:
        """Of the lines of `read_lines`."""
        lines = found.text[:-1].split("\n")
        urls = found.text[:-1].replace("\t", "\n").split("\n")[::2]
        self.count = len(lines)
        everything = not self.scope.include and not self.scope.exclude
        if everything and all(map(self._is_ours, [found.origin] if found.origin else set(map(_origin, urls)))):
            keys = urls if found.own_keys else list(map(page_key, urls))
            if len(set(keys)) == len(keys):
                self.lines, self.keys = lines, keys
                return self
        seen: set[str] = set()
        for line, url in zip(lines, urls, strict=True):
            self._take(url, line, seen)
        return self

    def rows(self, rows: Sequence[Row]) -> Pages:
        """Of parsed rows."""
        self.count = len(rows)
        seen: set[str] = set()
        for row in rows:
            title = _text(title_of(row))
            line = f"{row.url}\t{_text(row.lastmod_text)}"
            if not row.child and self._take(row.url, f"{line}\t{title}" if title else line, seen):
                self.made.append(row)
        return self

    def row(self, place: int) -> Row:
        """The row of a line."""
        if self.made:
            return self.made[place]
        told = parse_line(self.lines[place])
        return row_of_texts(told.url, told.lastmod)

    def keep_title(self, place: int, before: Line) -> Line:
        """The line, with the headline before where there is none: the news block goes after two days, it stays."""
        now = parse_line(self.lines[place])
        if now.title is None and before.title is not None:
            now = replace(now, title=before.title)
            self.lines[place] = f"{now.url}\t{now.lastmod or ''}\t{now.title}"
        return now

    def _take(self, url: str, line: str, seen: set[str]) -> bool:
        if not self._is_ours(_origin(url)):
            self.off_hosts += 1
            if len(self.off_host) < OFF_HOST_SAMPLE:
                self.off_host.append(url)
            return False
        if not self.scope.wanted(url):
            self.filtered += 1
            return False
        key = page_key(url)
        if key in seen:
            return False
        seen.add(key)
        self.keys.append(key)
        self.lines.append(line)
        return True

    def _is_ours(self, origin: str) -> bool:
        ours = self._origins.get(origin)
        if ours is None:
            ours = self._origins[origin] = is_site_host(host_of(f"{origin}/"), self.scope.hosts)
        return ours


def _origin(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def _text(text: str | None) -> str:
    """A text as it fits into a line."""
    return " ".join(text.split()) if text else ""


def _first(read: ListingRead, kept: Pages, *, quiet: bool, watched: frozenset[int]) -> ListingRead:
    """The first read of a document: all its pages are new."""
    numbers = page_ids(kept.keys)
    told: Sequence[int] = range(len(numbers))
    if quiet:
        told = [place for place, number in enumerate(numbers) if number in watched] if watched else ()
    return replace(
        read,
        new=tuple(Listed(numbers[place], kept.keys[place], kept.row(place), None) for place in told),
        listing=pack_lines(kept.lines),
        ids=pack_ids(numbers),
    )


def _compare(
    read: ListingRead,
    kept: Pages,
    old: list[str],
    *,
    former: Scope,
    quiet: bool,
    watched: frozenset[int],
    want: Wanted,
) -> ListingRead:
    """A further read of a document, against the lines of the one before. What comes or goes because the configuration
    changed is no news: it is in the listing or not, and that is all."""
    same = former == kept.scope
    before = set(old)
    fresh = [place for place, line in enumerate(kept.lines) if line not in before]
    lost = {page_id(page_key(line.partition("\t")[0])): line for line in before.difference(kept.lines)}
    numbers = page_ids([kept.keys[place] for place in fresh])
    new: list[Listed] = []
    changed: list[tuple[int, int, Line]] = []
    moved = 0
    for number, place in zip(numbers, fresh, strict=True):
        if number in lost:
            told = parse_line(lost[number])
            now = kept.keep_title(place, told)
            if (now.lastmod, now.title) != (told.lastmod, told.title):
                moved += told.lastmod is not None and now.lastmod != told.lastmod
                changed.append((number, place, told))
        elif (not quiet or number in watched) and (same or former.covers(kept.row(place).url)):
            new.append(Listed(number, kept.keys[place], kept.row(place), None))
    came = set(numbers)
    away = {number: parse_line(line) for number, line in lost.items() if number not in came} if read.whole else {}
    lines, keys = kept.lines, kept.keys
    if not read.whole:
        lines, keys = _added_to(old, {lost[number] for number in came if number in lost}, kept, fresh)
    arrived = [number for number in numbers if number not in lost]
    after = set(lines)
    return replace(
        read,
        listed=len(lines),
        movement=_movement(kept, old, len(arrived), moved),
        new=tuple(new),
        changed=tuple(Listed(n, kept.keys[p], kept.row(p), told) for n, p, told in _handed_out(kept, changed, want)),
        changed_count=len(changed),
        gone=tuple(
            Listed(number, page_key(line.url), None, line)
            for number, line in away.items()
            if same or kept.scope.covers(line.url)
        ),
        listing=pack_lines(lines) if after != before else None,
        ids=pack_ids(page_ids(keys)) if arrived or away else None,
        moved_ids=(*arrived, *away),
        added=pack_lines([line for line in lines if line not in before]),
        removed=pack_lines(sorted(before - after)),
    )


def _added_to(old: list[str], replaced: set[str], kept: Pages, fresh: list[int]) -> tuple[list[str], list[str]]:
    """The listing before with what a partial read adds to it, and its keys."""
    lines = [line for line in old if line not in replaced] + [kept.lines[place] for place in fresh]
    return lines, [page_key(line.partition("\t")[0]) for line in lines]


def _handed_out(kept: Pages, changed: list[tuple[int, int, Line]], want: Wanted) -> list[tuple[int, int, Line]]:
    """All headlines that changed, and of lastmods what will be looked at."""
    titles: list[tuple[int, int, Line]] = []
    lastmods: list[tuple[int, int, Line]] = []
    for change in changed:
        now = parse_line(kept.lines[change[1]])
        (titles if now.title != change[2].title else lastmods).append(change)
    if not want.lastmods:
        return titles
    if len(lastmods) > want.most:
        lastmods = lastmods[:: -(-len(lastmods) // max(1, want.sample))]
    return titles + lastmods


def _movement(kept: Pages, old: list[str], arrived: int, moved: int) -> Movement:
    """How the lastmods of the known pages moved."""
    top = 0
    if moved >= BULK_FLOOR:
        stamps = Counter(line.split("\t", 2)[1] for line in kept.lines)
        stamps.pop("", None)
        top = max(stamps.values(), default=0)
    dated = len(old) - sum(line.endswith("\t") for line in old) - sum("\t\t" in line for line in old)
    return Movement(len(kept.lines), min(len(kept.lines) - arrived, dated), moved, top)
