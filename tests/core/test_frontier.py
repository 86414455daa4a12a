"""Where a crawl goes: breadth first, below its sections, out of traps."""

from __future__ import annotations

import pytest

from monitor.core.frontier import MAX_CHAIN, MAX_DEPTH, MAX_QUERIES, Frontier, Link, section_urls

BASE = "https://www.example.com"
HOSTS = frozenset(["www.example.com"])


def frontier(*sections: str) -> Frontier:
    return Frontier(section_urls(sections, f"{BASE}/"), HOSTS)


@pytest.mark.parametrize(
    ("url", "below"),
    [
        (f"{BASE}/news/a", True),
        (f"{BASE}/news/", True),
        (f"{BASE}/news", True),
        (f"{BASE}/news?page=2", True),
        ("https://example.com/news/a", True),
        (f"{BASE}/newsletter", False),
        (f"{BASE}/sport/a", False),
        ("https://other.example/news/a", False),
        ("https://amp.example.com/news/a", True),
        ("https://amp.example.com/sport/a", False),
    ],
)
def test_what_lies_below_the_sections(url: str, below: bool) -> None:
    found = Frontier((f"{BASE}/news/", "https://amp.example.com/news/"), HOSTS | {"amp.example.com"})
    assert found.is_below(url) is below


def test_breadth_first_and_each_page_once() -> None:
    found = frontier("/news/")
    (start,) = found.take(10)
    assert (start.url, start.start) == (f"{BASE}/news/", True)
    found.offer([f"{BASE}/news/a", f"{BASE}/news/b", f"{BASE}/news/a?utm_source=x", f"{BASE}/news/"], start)
    first, *_ = found.take(1)
    found.offer([f"{BASE}/news/c", f"{BASE}/news/b"], first)
    assert [link.url for link in found.take(9)] == [f"{BASE}/news/b", f"{BASE}/news/c"]
    assert len(found) == 0


def walk(found: Frontier, follow: object, most: int = 10_000) -> int:
    """Visit everything there is; `follow` gives the links of a page. Returns how many pages were visited."""
    count = 0
    while (links := found.take(1)) and count < most:
        count += 1
        found.offer(follow(links[0]), links[0])  # type: ignore[operator]
    return count


def test_endless_sites_end() -> None:
    month = Link(f"{BASE}/calendar/2026/01")
    calendar = frontier("/")
    calendar.offer([month.url], Link(f"{BASE}/"))
    calendar.take(1)
    assert walk(calendar, lambda page: [page.url[:-1] + str(int(page.url[-1]) + 1)]) == MAX_CHAIN + 1
    assert calendar.bounded["chain"] == 1

    deeper = frontier("/")
    deeper.take(1)
    deeper.offer([f"{BASE}/x"], Link(f"{BASE}/"))
    assert walk(deeper, lambda page: [f"{page.url}y"]) == MAX_DEPTH
    assert deeper.bounded == {"depth": 1}

    loop = frontier("/")
    assert walk(loop, lambda page: [f"{page.url}a/b/"]) == 3
    assert loop.bounded == {"repeated folders": 1}

    sorts = frontier("/")
    assert walk(sorts, lambda _page: [f"{BASE}/list?sort={n}" for n in range(100)]) == 1 + MAX_QUERIES
    assert sorts.bounded == {"queries": 100 - MAX_QUERIES}

    long = frontier("/")
    assert walk(long, lambda _page: [f"{BASE}/{'x' * 3000}", f"{BASE}/" + "/".join("abcdefghijklmnopqrst")]) == 1
    assert long.bounded == {"length": 2}
