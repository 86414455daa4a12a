"""The coverage report of a site of a million URLs, and what a new feed entry costs beside them.

    python benchmarks/coverage.py [--rows 1000000] [--crawled 500000] [--stories 20000]

The site is written as `monitor run` and `monitor import crawl` write it: a sitemap of files of 50,000 rows, an import
that has `crawled` of them and a thousand others, and a feed and a news sitemap that listed the `stories` newest, of
which each twentieth is in one of them only. Each figure is of a process of its own. The reference is the least that
could be done: the same lines unpacked, their addresses put into Python sets, and the sets compared.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import insert, select

from monitor.core.coverage_data import report_data
from monitor.core.identity import page_id
from monitor.core.listing import read_listing
from monitor.core.listing_pack import unpack_lines
from monitor.core.reconcile import Changes, DocumentMemory, KnownPage, KnownRow, Scope
from monitor.core.reconcile_crawl import compare_crawl
from monitor.report.coverage import site_coverage
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Database
from monitor.store.schema import document, listing, site, source

HOME = "https://www.example.com"
BASELINE, NOW = 1_790_000_000.0, 1_795_000_000.0
FILE = 50_000


def url_of(number: int) -> str:
    slug = f"{number * 2654435761 % 2**32:08x}"
    return f"{HOME}/section-{number % 37}/2026/{number % 12 + 1:02}/a-headline-of-some-words-{slug}-{number}"


def add_source(connection: object, kind: str, url: str) -> int:
    """A source that was read a minute ago, with its document; returns the document's id."""
    values = {"site_id": 1, "kind": kind, "url": url, "origin": "config", "active": True, "state": "ok", "next_at": NOW}
    read = {"baseline_at": BASELINE, "last_at": NOW - 60, "last_result": "unchanged"}
    number = connection.execute(insert(source).values(**values, **read)).inserted_primary_key[0]  # type: ignore[attr-defined]
    return add_file(connection, number, kind, url)


def add_file(connection: object, source_id: int, kind: str, url: str) -> int:
    made = source_store.add_document(connection, source_id, url, kind, None, quiet=True)  # type: ignore[arg-type]
    times = {"baseline_at": BASELINE, "read_at": NOW - 60, "complete_at": NOW - 60}
    source_store.set_document(connection, made.id, **times)  # type: ignore[arg-type]
    return made.id


def lists(connection: object, document_id: int, numbers: Iterator[int] | range, kind: str) -> None:
    """Let a document list these pages."""
    scope, memory = Scope(frozenset(["www.example.com"])), DocumentMemory("", kind)
    urls = map(url_of, numbers)
    if kind == "crawl":
        text = "".join(f"{url}\t\n" for url in urls)
        read = compare_crawl(text, previous=None, memory=memory, scope=scope, quiet=True, watched=frozenset())
    else:
        rows = "".join(f"<url><loc>{url}</loc><lastmod>2026-11-02T09:00:00Z</lastmod></url>\n" for url in urls)
        body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>'.encode()
        found = read_listing(
            body, HOME, transferred=True, digest=None, previous=None, memory=memory, scope=scope, quiet=True
        )
        assert found is not None
        read = found
    listing_store.write(connection, 1, document_id, read, BASELINE)  # type: ignore[arg-type]


def tells(connection: object, document_id: int, numbers: range) -> None:
    """Let a feed or news sitemap have listed these pages, one each minute; they have a story."""
    changes = Changes()
    for number in numbers:
        at = BASELINE + 60.0 * (number - numbers.start + 1)
        page = page_id(url_of(number))
        changes.pages[page] = KnownPage(page, url_of(number), url_of(number), "A headline", at, True, published_at=at)
        changes.rows.append(KnownRow(page, None, at + 30))
    page_store.apply(connection, 1, document_id, changes, NOW)  # type: ignore[arg-type]


def build(url: str, rows: int, crawled: int, stories: int) -> None:
    with Database(url) as db:
        db.call(lambda c: c.execute(insert(site).values(id=1, name="example", url=f"{HOME}/")))

        def trees(connection: object) -> None:
            for kind, count, first in (("sitemap", rows, 0), ("crawl", crawled, rows - crawled + 1000)):
                root = add_source(connection, kind, f"{HOME}/{kind}")
                owner = connection.scalar(select(document.c.source_id).where(document.c.id == root))  # type: ignore[attr-defined]
                for start in range(first, first + count, FILE):
                    file = add_file(connection, owner, kind, f"{HOME}/{kind}/{start}")
                    lists(connection, file, range(start, min(start + FILE, first + count)), kind)

        def tellers(connection: object) -> None:
            newest = range(rows - stories, rows)
            tells(connection, add_source(connection, "feed", f"{HOME}/feed"), newest[: -stories // 20 or None])
            tells(connection, add_source(connection, "news_sitemap", f"{HOME}/news"), newest[stories // 20 :])

        db.call(trees)
        db.call(tellers)


def measured(work: Callable[[str], object], url: str) -> tuple[float, float, object]:
    """Seconds, MiB at the peak, and the result of `work` in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, memory, result = pool.apply(_timed, (work, url))
    return seconds, memory, result


def _timed(work: Callable[[str], object], url: str) -> tuple[float, float, object]:
    began = time.perf_counter()
    result = work(url)
    return time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, result


def report(url: str) -> object:
    """The whole report, as text."""
    with Database(url, exclusive=False) as db:

        def read(connection: object) -> str:
            (row,) = source_store.sites(connection).values()  # type: ignore[arg-type]
            found = site_coverage(connection, row, hosts=frozenset(), since=None, now=NOW)  # type: ignore[arg-type]
            return json.dumps(report_data(found))

        found = json.loads(db.call(read))
    return {name: found[name] for name in ("sources", "union", "missing_counts", "combinations")}


def reference(url: str) -> object:
    """The same lines in Python sets."""
    with Database(url, exclusive=False) as db:

        def read(connection: object) -> int:
            sets: dict[str, set[str]] = {}
            query = select(document.c.kind, listing.c.text).join(listing, listing.c.document_id == document.c.id)
            for kind, text in connection.execute(query):  # type: ignore[attr-defined]
                sets.setdefault(kind, set()).update(line.partition("\t")[0] for line in unpack_lines(text))
            return len(sets["sitemap"] & sets["crawl"])

        return db.call(read)


def one_entry(url: str) -> float:
    """Seconds to find whether a page of a new feed entry is known to any listing, and to write it."""
    best = 1.0
    with Database(url) as db:
        feed = db.call(lambda c: c.scalar(select(document.c.id).where(document.c.kind == "feed")))
        for number in range(20):
            address = f"{HOME}/news/new-{number}"
            page = page_id(address)

            def write(connection: object, page: int = page, address: str = address) -> float:
                began = time.perf_counter()
                assert not page_store.known_pages(connection, 1, [page])  # type: ignore[arg-type]
                assert not listing_store.silent_pages(connection, 1, {page: (address, address)})  # type: ignore[arg-type]
                changes = Changes()
                changes.pages[page] = KnownPage(page, address, address, None, NOW, announced=True)
                changes.rows.append(KnownRow(page, None, NOW))
                page_store.apply(connection, 1, feed, changes, NOW)  # type: ignore[arg-type]
                return time.perf_counter() - began

            best = min(best, db.call(write))
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--crawled", type=int, default=500_000)
    options.add_argument("--stories", type=int, default=20_000)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'monitor.db'}"
        build(url, args.rows, args.crawled, args.stories)
        floor, least, _ = measured(reference, url)
        seconds, memory, found = measured(report, url)
        entry = one_entry(url)
    assert isinstance(found, dict)
    union = args.rows + 1000
    assert found["union"] == union, found["union"]
    assert found["sources"] == {
        "feed": args.stories * 19 // 20,
        "news_sitemap": args.stories * 19 // 20,
        "sitemap": args.rows,
        "crawl": args.crawled,
    }
    missing = {"feed": args.stories // 20, "news_sitemap": args.stories // 20, "sitemap": 1000}
    assert found["missing_counts"] == missing | {"crawl": union - args.crawled}, found["missing_counts"]
    print(f"{union:,} pages as of {datetime.fromtimestamp(NOW, UTC):%Y-%m-%d}, the report is the truth")
    print(f"reference (Python sets of the same lines): {floor:5.2f} s, {least:4.0f} MiB")
    print(f"coverage report                          : {seconds:5.2f} s, {memory:4.0f} MiB  (aim 5 s, 500 MiB)")
    print(f"ratio                                    : {seconds / floor:5.2f}")
    print(f"one new feed entry beside them           : {1000 * entry:5.2f} ms (aim: milliseconds)")


if __name__ == "__main__":
    main()
