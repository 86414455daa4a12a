"""Entries that came and went between two polls: found again where other documents have them, and told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.wire import Wire, kinds, new, rss, wired
from tests.servers import Handler, Request, answer

WORDPRESS = "<generator>https://wordpress.org/?v=6.6</generator>"


def archive(to: str, rel: str = "prev-archive") -> str:
    return f'<atom:link rel="{rel}" href="{to}"/>'


def down(first: int, last: int) -> range:
    """Numbers of a window, newest first."""
    return range(first, last - 1, -1)


def gap_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    gaps = [event["data"] for event in events if event["type"] == "source.gap"]
    assert len(gaps) == 1
    return dict(gaps[0])


def serves(pages: dict[str, bytes]) -> Handler:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        body = pages.get(request.target)
        writer.write(answer("404 Not Found") if body is None else answer("200 OK", body))

    return handler


async def pass_over(
    path: Path, pages: dict[str, bytes], after: Callable[[], None], **more: Any
) -> tuple[Wire, list[dict[str, Any]]]:
    """A baseline, then what `after` made of the pages; the events of the second pass."""
    async with wired(path, serves(pages), **more) as wire:
        assert set(kinds(await wire.once())) == {"source.baseline"}
        after()
        return wire, await wire.once()


@pytest.mark.parametrize("rel", ["prev-archive", "next"])
def test_archives_and_pages_that_the_feed_names_fill_its_gap(tmp_path: Path, rel: str) -> None:
    pages = {"/feed.xml": rss(down(9, 5))}

    def later() -> None:
        pages["/feed.xml"] = rss(down(24, 20), archive("/2", rel))
        pages["/2"] = rss(down(19, 13), archive("/3", rel))
        pages["/3"] = rss(down(14, 8), archive("/4", rel))
        pages["/4"] = rss(down(7, 1))

    wire, events = asyncio.run(pass_over(tmp_path, pages, later))
    assert sorted(map(int, new(events))) == list(range(10, 25))
    gap = gap_of(events)
    assert (gap["recovered"], gap["estimated_lost"]) == (10, 0)
    assert wire.asked("/3")
    assert not wire.asked("/4")  # what lies behind was known
    assert len(wire.asked("/feed.xml")) == 2


def test_a_recovered_entry_is_known_and_no_news_again(tmp_path: Path) -> None:
    pages = {"/feed.xml": rss(down(9, 5))}

    async def run() -> list[dict[str, Any]]:
        async with wired(tmp_path, serves(pages)) as wire:
            await wire.once()
            pages["/feed.xml"], pages["/2"] = rss(down(24, 20), archive("/2")), rss(down(19, 8))
            await wire.once()
            pages["/feed.xml"] = rss(down(24, 15))
            return await wire.once()

    assert asyncio.run(run()) == []


def test_wordpress_is_asked_for_its_next_pages(tmp_path: Path) -> None:
    pages = {"/feed.xml?lang=en": rss(down(9, 5), WORDPRESS)}

    def later() -> None:
        pages["/feed.xml?lang=en"] = rss(down(19, 15), WORDPRESS)
        pages["/feed.xml?lang=en&paged=2"] = rss(down(14, 10), WORDPRESS)
        pages["/feed.xml?lang=en&paged=3"] = rss(down(9, 5), WORDPRESS)

    _wire, events = asyncio.run(pass_over(tmp_path, pages, later, feeds=["/feed.xml?lang=en"]))
    assert (gap_of(events)["recovered"], gap_of(events)["estimated_lost"]) == (5, 0)


def test_a_server_that_knows_no_pages_is_asked_once(tmp_path: Path) -> None:
    pages = {"/feed.xml": rss(down(9, 5), WORDPRESS)}

    def later() -> None:
        for target in ("/feed.xml", "/feed.xml?paged=2", "/feed.xml?paged=3"):
            pages[target] = rss(down(24, 20), WORDPRESS)

    wire, events = asyncio.run(pass_over(tmp_path, pages, later))
    assert not wire.asked("/feed.xml?paged=3")
    assert (gap_of(events)["recovered"], gap_of(events)["estimated_lost"]) == (0, 10)


def test_other_feeds_are_not_asked_for_pages(tmp_path: Path) -> None:
    pages = {"/feed.xml": rss(down(9, 5))}

    def later() -> None:
        pages["/feed.xml"] = rss(down(24, 20))

    wire, events = asyncio.run(pass_over(tmp_path, pages, later))
    assert len(wire.server.requests) == 2
    assert gap_of(events)["estimated_lost"] == 10


def test_archives_without_end_or_that_fail_are_left(tmp_path: Path) -> None:
    pages = {"/feed.xml": rss(down(9, 5))}

    def later() -> None:
        pages["/feed.xml"] = rss(down(110, 106), archive("/a0"))
        for number in range(30):
            top = 105 - 3 * number
            pages[f"/a{number}"] = rss(down(top, top - 2), archive(f"/a{number + 1}"))

    wire, events = asyncio.run(pass_over(tmp_path, pages, later))
    assert gap_of(events)["recovered"] == 30
    assert gap_of(events)["estimated_lost"] > 0
    assert wire.asked("/a9")
    assert not wire.asked("/a10")


def test_the_news_sitemap_has_what_no_archive_has(tmp_path: Path) -> None:
    def news(numbers: range, base: str) -> bytes:
        rows = "".join(
            f"<url><loc>{base}news/{n}</loc><news:news><news:publication><news:name>N</news:name>"
            f"<news:language>en</news:language></news:publication><news:publication_date>2026-10-28T"
            f"{12 + n}:00:00Z</news:publication_date><news:title>Headline number {n}</news:title></news:news></url>"
            for n in numbers
        )
        return (
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
            f'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">{rows}</urlset>'
        ).encode()

    pages: dict[str, bytes] = {}

    async def run() -> list[dict[str, Any]]:
        async with wired(tmp_path, serves(pages), news=["/news.xml"]) as wire:
            base = wire.server.url("/")
            pages["/feed.xml"] = rss(down(3, 1)).replace(b"https://h.example/", base.encode())
            pages["/news.xml"] = news(range(1, 4), base)
            await wire.once()
            pages["/feed.xml"] = rss(down(11, 9)).replace(b"https://h.example/", base.encode())
            pages["/news.xml"] = news(range(1, 12), base)
            events = await wire.once()
            assert len(wire.asked("/news.xml")) == 3  # for its own sake twice, once for the feed's
            return events

    events = asyncio.run(run())
    assert sorted(map(int, new(events))) == list(range(4, 12))
    assert gap_of(events)["recovered"] == 5
    assert gap_of(events)["estimated_lost"] == 0


def test_what_the_filter_passes_by_is_not_recovered(tmp_path: Path) -> None:
    pages = {"/feed.xml": rss(down(9, 5))}

    async def run() -> list[dict[str, Any]]:
        async with wired(tmp_path, serves(pages)) as wire:
            site = replace(wire.config.sites[0], exclude=("/live/**",))
            wire.config = replace(wire.config, sites=(site,))
            await wire.once()
            pages["/feed.xml"] = rss(down(24, 20), archive("/2"))
            pages["/2"] = rss(down(19, 1)).replace(b"/news/15", b"/live/15")
            return await wire.once()

    events = asyncio.run(run())
    assert "15" not in new(events)
    assert gap_of(events)["recovered"] == 9
