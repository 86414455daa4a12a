"""An outage of the monitor's own network is told from hosts that are dead."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monitor import network as module
from monitor.config import Site
from monitor.core.http import Failure, Reply
from monitor.fetch import Fetcher
from monitor.network import Network, is_answer, is_silence
from tests.scenarios.wire import Wire, kinds, rss, wired
from tests.servers import Request, answer

DOWN = Failure("dns", "the name could not be looked up")


@pytest.mark.parametrize(
    ("kind", "status", "proxied", "silent", "answered"),
    [
        ("dns", None, False, True, False),
        ("timeout", None, False, True, False),
        ("unreachable", None, False, True, False),
        ("refused", None, False, False, True),
        ("refused", None, True, True, False),
        ("tls", None, False, False, True),
        ("blocked", None, False, False, False),
        (None, 503, False, False, True),
    ],
)
def test_what_is_silence_and_what_an_answer(
    kind: str | None, status: int | None, proxied: bool, silent: bool, answered: bool
) -> None:
    reply = Reply("http://a/", status=status, failure=Failure(kind, "") if kind else None)
    assert (is_silence(reply, proxied=proxied), is_answer(reply, proxied=proxied)) == (silent, answered)


def test_three_hosts_in_a_row_are_an_outage_until_the_first_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        network = Network(lambda: True, patience=0.0)
        assert not await network.is_out("a", sound=True, hosts=9)
        assert not await network.is_out("b", sound=True, hosts=9)
        assert not await network.is_out("b", sound=True, hosts=9)
        assert not await network.is_out("dead", sound=False, hosts=9)
        assert await network.is_out("c", sound=True, hosts=9)
        assert await network.is_out("dead", sound=False, hosts=9)
        network.begin()
        network.end(answered=True)
        assert not network.down
        assert not await network.is_out("a", sound=True, hosts=9)

    with caplog.at_level(logging.WARNING, "monitor"):
        asyncio.run(run())
    assert [record.message.split()[:2] for record in caplog.records] == [["no", "network:"], ["the", "network"]]


def test_an_answer_in_between_clears_all_suspicion() -> None:
    async def run() -> bool:
        network = Network(lambda: True, patience=0.0)
        for host in "ab":
            await network.is_out(host, sound=True, hosts=9)
        network.begin()
        network.end(answered=True)
        return await network.is_out("c", sound=True, hosts=9)

    assert not asyncio.run(run())


def test_without_a_route_the_first_silence_is_one_but_for_hosts_nearby() -> None:
    async def run(host: str) -> bool:
        return await Network(lambda: False, patience=0.0).is_out(host, sound=True, hosts=1)

    assert asyncio.run(run("news.example"))
    assert not asyncio.run(run("127.0.0.1"))


def test_the_first_that_are_silent_wait_for_the_verdict() -> None:
    async def run(*, answered: bool) -> list[bool]:
        network = Network(lambda: True, patience=0.0)
        network.begin()  # one more is being asked
        first = asyncio.create_task(network.is_out("a", sound=True, hosts=9))
        second = asyncio.create_task(network.is_out("b", sound=True, hosts=9))
        await asyncio.sleep(0)
        assert not first.done()
        network.end(answered=answered)
        return [await first, await second]

    assert asyncio.run(run(answered=True)) == [False, False]
    assert asyncio.run(run(answered=False)) == [False, False]  # two are no proof


def test_those_that_wait_share_the_outage() -> None:
    async def run() -> list[bool]:
        network = Network(lambda: True, patience=0.0)
        network.begin()
        waiting = [asyncio.create_task(network.is_out(host, sound=True, hosts=9)) for host in "ab"]
        await asyncio.sleep(0)
        return [await network.is_out("c", sound=True, hosts=9), *[await task for task in waiting]]

    assert asyncio.run(run()) == [True, True, True]


# ---------------------------------------------------------------- the engine


def sites(wire: Wire, count: int) -> tuple[Site, ...]:
    """Sites of a feed each, on hosts of their own."""
    site = wire.config.sites[0]
    hosts = [f"127.0.0.{n + 1}:{wire.server.port}" for n in range(count)]
    return tuple(
        replace(site, name=f"s{n}", url=f"http://{host}/", feeds=(f"http://{host}/feed.xml",))
        for n, host in enumerate(hosts)
    )


def test_an_outage_puts_no_feed_off_and_tells_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Fetcher._chain
    dead: set[str] = set()

    async def chain(self: Fetcher, url: str, ask: Any) -> Reply:
        host = url.split("/")[2].split(":", maxsplit=1)[0]
        return Reply(url, url, failure=DOWN) if host in dead or "all" in dead else await real(self, url, ask)

    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("200 OK", rss([3, 2, 1])))

    async def run() -> None:
        async with wired(tmp_path, handler, host="0.0.0.0") as wire:
            wire.config = replace(wire.config, sites=sites(wire, 6))
            assert kinds(await wire.once()) == ["source.baseline"] * 6
            before = wire.source()
            dead.add("all")
            for _ in range(4):
                assert await wire.once() == []
                assert wire.last.problems == ["the monitor's own network is down: no host gives an answer"]
            assert [wire.source(n).failures for n in range(6)] == [0] * 6
            during = wire.source()
            assert (during.state, during.schedule, during.last_error) == ("ok", before.schedule, None)
            assert min(wire.source(n).next_at for n in range(6)) <= wire.now + module.AGAIN
            dead.clear()
            dead.add("127.0.0.2")
            for _ in range(3):
                events = await wire.once()
            assert kinds(events) == ["source.failing"]
            assert [wire.source(n).failures for n in range(6)] == [0, 3, 0, 0, 0, 0]

    monkeypatch.setattr(Fetcher, "_chain", chain)
    asyncio.run(run())
