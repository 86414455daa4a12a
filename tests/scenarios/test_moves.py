"""Redirects of a feed, on the wire: what is followed, what moves the subscription, what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.core.health import MOVED_AFTER, Health, Outcome, after_poll
from tests.scenarios.wire import Wire, kinds, rss, wired
from tests.servers import Handler, Request, answer

FOUND = {"/new.xml": rss([3, 2, 1])}


def serves(pages: dict[str, bytes | str]) -> Handler:
    """A body, or as text the status line's rest and a Location after a blank: ``301 Moved /new.xml``."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        page = pages.get(request.target, "404 Not Found")
        if isinstance(page, bytes):
            writer.write(
                answer("200 OK", page, 'ETag: "1"') if not request.headers.get("if-none-match") else NOT_MODIFIED
            )
        elif page[0] == "3":
            status, _, location = page.rpartition(" ")
            writer.write(answer(status, b"", f"Location: {location}"))
        else:
            writer.write(answer(page))

    return handler


NOT_MODIFIED = answer("304 Not Modified", b"", 'ETag: "1"')


async def passes(wire: Wire, count: int) -> list[str]:
    """The types of the events of so many passes."""
    return [kind for _ in range(count) for kind in kinds(await wire.once())]


@pytest.mark.parametrize("status", ["301 Moved Permanently", "308 Permanent Redirect"])
def test_a_redirect_for_good_that_lasts_moves_the_feed_and_its_validators_go_along(tmp_path: Path, status: str) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": f"{status} /new.xml", **FOUND}

    async def run() -> None:
        async with wired(tmp_path, serves(pages)) as wire:
            assert await passes(wire, MOVED_AFTER) == ["source.baseline", "source.moved"]
            assert wire.said[-1]["data"]["to"] == wire.server.url("/new.xml")
            assert await passes(wire, 3) == []
            assert len(wire.asked("/feed.xml")) == MOVED_AFTER
            assert len(wire.asked("/new.xml")) == MOVED_AFTER + 3
            assert [h.get("if-none-match") for h in wire.asked("/new.xml")] == [None] + ['"1"'] * (MOVED_AFTER + 2)
            assert not any("if-none-match" in h for h in wire.asked("/feed.xml"))

    asyncio.run(run())


@pytest.mark.parametrize("status", ["302 Found", "303 See Other", "307 Temporary Redirect"])
def test_a_redirect_for_now_is_followed_and_moves_nothing(tmp_path: Path, status: str) -> None:
    async def run() -> None:
        async with wired(tmp_path, serves({"/feed.xml": f"{status} /new.xml", **FOUND})) as wire:
            assert await passes(wire, 6) == ["source.baseline"]
            assert len(wire.asked("/feed.xml")) == 6

    asyncio.run(run())


def test_a_chain_that_is_not_for_good_throughout_moves_nothing(tmp_path: Path) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": "301 Moved /hop", "/hop": "302 Found /new.xml", **FOUND}

    async def run() -> None:
        async with wired(tmp_path, serves(pages)) as wire:
            assert await passes(wire, 5) == ["source.baseline"]

    asyncio.run(run())


def test_a_redirect_that_does_not_last_moves_nothing(tmp_path: Path) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": "301 Moved /new.xml", **FOUND}

    async def run() -> None:
        async with wired(tmp_path, serves(pages)) as wire:
            await passes(wire, MOVED_AFTER - 1)
            pages["/feed.xml"] = FOUND["/new.xml"]
            await passes(wire, 1)
            pages["/feed.xml"] = "301 Moved /new.xml"
            await passes(wire, MOVED_AFTER - 1)
            pages.update({"/feed.xml": "301 Moved /other.xml", "/other.xml": FOUND["/new.xml"]})
            await passes(wire, MOVED_AFTER - 1)
            assert kinds(wire.said) == ["source.baseline"]

    asyncio.run(run())


def test_an_address_that_dies_before_its_redirect_has_lasted_is_left_for_the_new_one(tmp_path: Path) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": "301 Moved /new.xml", **FOUND}

    async def run() -> None:
        async with wired(tmp_path, serves(pages)) as wire:
            await passes(wire, 1)
            pages["/feed.xml"] = "404 Not Found"
            await passes(wire, 6)
            assert kinds(wire.said) == ["source.baseline", "source.moved"]
            assert wire.source().failures == 0

    asyncio.run(run())


def test_a_feed_that_moved_back_is_found_at_its_own_address(tmp_path: Path) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": "301 Moved /new.xml", **FOUND}

    async def run() -> None:
        async with wired(tmp_path, serves(pages)) as wire:
            await passes(wire, MOVED_AFTER)
            pages.update({"/feed.xml": rss([4, 3, 2, 1]), "/new.xml": "404 Not Found"})
            assert await passes(wire, 2) == ["url.new"]
            assert wire.source().moved_to is None

    asyncio.run(run())


def test_a_configuration_that_names_the_new_address_keeps_all_that_is_known(tmp_path: Path) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": "301 Moved /new.xml", **FOUND}

    async def run() -> None:
        async with wired(tmp_path, serves(pages)) as wire:
            await passes(wire, MOVED_AFTER)
            number = wire.source().id
            site = replace(wire.config.sites[0], feeds=(wire.server.url("/new.xml"),))
            wire.config = replace(wire.config, sites=(site,))
            pages.update({"/feed.xml": "404 Not Found", "/new.xml": rss([4, 3, 2, 1])})
            wire.now += 8 * 86400  # a full read
            assert await passes(wire, 1) == ["url.new"]
            assert (wire.source().id, wire.source().url) == (number, wire.server.url("/new.xml"))

    asyncio.run(run())


def test_circles_and_endless_chains_fail_and_are_bounded(tmp_path: Path) -> None:
    pages: dict[str, bytes | str] = {"/feed.xml": "301 Moved /b", "/b": "301 Moved /feed.xml", "/n0": "302 Found /n1"}
    pages |= {f"/n{n}": f"302 Found /n{n + 1}" for n in range(50)}

    async def run() -> None:
        async with wired(tmp_path, serves(pages), feeds=["/feed.xml", "/n0"]) as wire:
            await wire.once()
            assert "redirects in a circle" in str(wire.source(0).last_error)
            assert "more than 10 redirects" in str(wire.source(1).last_error)
            assert len(wire.server.requests) == 2 + 11

    asyncio.run(run())


def test_https_of_the_same_address_counts_at_once_and_another_place_does_not() -> None:
    def polled(to: str) -> list[str]:
        _health, drafts = after_poll(
            Health("ok"), Outcome("modified", 200, None, to), site="s", kind="feed", url="http://h.example/f", now=0.0
        )
        return [draft.type for draft in drafts]

    assert polled("https://h.example/f") == ["source.moved"]
    assert polled("https://h.example/g") == []
    assert polled("http://h.example/f/") == []
