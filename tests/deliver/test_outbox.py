"""The outbox against real endpoints on loopback: signatures, retries, order, and what an endpoint's answer means."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from sqlalchemy import select, update
from standardwebhooks.webhooks import Webhook

from monitor.config import WebhookAlert
from monitor.deliver import outbox
from monitor.deliver.outbox import Deliverer, Tally, backoff
from monitor.deliver.stdout import StdoutSink
from monitor.deliver.webhook import WebhookSink
from monitor.store import events as event_store
from monitor.store.schema import delivery
from monitor.store.schema import endpoint as endpoint_table
from tests.deliver.bench import NOW, POLICY, SECRET, Bench, trial


def test_a_webhook_is_a_signed_cloudevent(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.now = time.time()  # the verifier holds the time stamp against its own clock
        bench.use("hook")
        await bench.happen("https://a.example/ä")
        assert await bench.deliverer.attempt() == Tally(delivered=1)
        [(_path, headers, body)] = bench.hook.got
        event = Webhook(SECRET).verify(body, headers)
        assert event["subject"] == "https://a.example/ä"
        assert headers["webhook-id"] == event["id"]
        assert headers["content-type"] == "application/cloudevents+json"
        assert await bench.rows() == []
        with pytest.raises(Exception, match="No matching signature"):
            Webhook(SECRET).verify(body + b" ", headers)

    trial(tmp_path, scene)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(tmp_path: Path, status: int) -> None:
    async def scene(bench: Bench) -> None:
        bench.hook.answers["/hook"] = lambda: web.Response(status=status)
        bench.use("hook")
        await bench.happen("a")
        assert await bench.deliverer.attempt() == Tally(delivered=1)
        assert await bench.deliverer.attempt() == Tally()

    trial(tmp_path, scene)


def test_410_disables_the_endpoint_and_parks_what_waits(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.hook.answers["/hook"] = lambda: web.Response(status=410)
        bench.use("hook", "other")
        await bench.happen("a", "b")
        tally = await bench.deliverer.attempt()
        assert (tally.delivered, tally.failed) == (2, 1)
        assert {(row.endpoint, row.state) for row in await bench.rows()} == {("hook", "parked")}
        assert await bench.db.run(lambda c: list(c.execute(select(endpoint_table.c.name)).scalars())) == ["hook"]
        await bench.happen("c")
        bench.now += 86400
        await bench.deliverer.attempt()
        assert bench.hook.subjects("/hook") == ["a"]
        assert bench.hook.subjects("/other") == ["a", "b", "c"]
        due = await bench.db.run(lambda c: event_store.next_deliveries(c, ["hook", "other"]))
        assert due == {}, "nothing may wake the outbox for an endpoint that is disabled"
        assert [row.state for row in await bench.rows()] == ["parked", "parked"], "nothing piles up for it"

    trial(tmp_path, scene)


@pytest.mark.parametrize("change", ["another address", "taken out and back"])
def test_a_disabled_endpoint_is_enabled_by_a_change_of_the_configuration_alone(tmp_path: Path, change: str) -> None:
    async def scene(bench: Bench) -> None:
        async def load(*endpoints: tuple[str, str]) -> list[tuple[str, str | None]]:
            await bench.db.run(lambda c: event_store.sync_endpoints(c, endpoints))
            return await bench.db.run(event_store.disabled_endpoints)

        bench.hook.answers["/hook"] = lambda: web.Response(status=410)
        bench.use("hook")
        await load(("hook", "a"))
        await bench.happen("a")
        await bench.deliverer.attempt()
        [(name, reason)] = await load(("hook", "a"))
        assert (name, reason) == ("hook", "answered 410 Gone: the endpoint wants no more events")
        bench.hook.answers.clear()
        if change == "taken out and back":
            await load()
        assert await load(("hook", "a" if change == "taken out and back" else "b")) == []
        await bench.happen("b")
        assert await bench.deliverer.attempt() == Tally(delivered=1)

    trial(tmp_path, scene)


def test_each_event_is_tried_once_in_a_pass_however_long_it_takes(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        def slow(status: int) -> web.Response:
            bench.now += 60.0  # longer than the first wait
            return web.Response(status=status)

        bench.hook.answers["/hook"] = lambda: slow(503 if b"paper" in bench.hook.got[-1][2] else 204)
        bench.use("hook")
        await bench.happen("paper-1")
        await bench.happen("gazette-1", site="gazette")
        tally = await bench.deliverer.attempt()
        assert (tally.delivered, tally.failed) == (1, 1)
        assert sorted(bench.hook.subjects("/hook")) == ["gazette-1", "paper-1"]

    trial(tmp_path, scene)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_a_failure_is_tried_again_after_growing_waits_and_then_parked(tmp_path: Path, status: int) -> None:
    async def scene(bench: Bench) -> None:
        bench.hook.answers["/hook"] = lambda: web.Response(status=status)
        bench.use("hook")
        await bench.happen("a", "b")
        waits = []
        for attempt in range(1, outbox.ATTEMPTS):
            assert (await bench.deliverer.attempt()).failed == 1
            first, second = await bench.rows()
            assert (first.attempts, second.attempts) == (attempt, 0)
            assert str(status) in first.error
            due = await bench.db.run(lambda c: event_store.next_deliveries(c, ["hook"]))
            assert due == {"hook": first.next_at}, "the second is held back, and wakes nobody"
            waits.append(first.next_at - bench.now)
            bench.now = first.next_at - 0.1
            assert await bench.deliverer.attempt() == Tally(), "not a moment too soon"
            bench.now = first.next_at
        assert 5 <= waits[0] <= 10
        assert all(later > earlier * 1.3 for earlier, later in pairwise(waits[2:11]))
        assert max(waits) <= 12 * 3600 + 5
        await bench.deliverer.attempt()
        first, second = await bench.rows()
        assert (first.state, second.state, second.attempts) == ("parked", "pending", 1)
        bench.hook.answers.clear()
        bench.now = second.next_at
        assert (await bench.deliverer.attempt()).delivered == 1
        assert bench.hook.subjects("/hook")[-1] == "b"

    trial(tmp_path, scene)


def test_waits_are_jittered_between_bounds() -> None:
    for attempt, least in [(1, 5.0), (2, 10.0), (5, 80.0), (40, 43200.0)]:
        waits = {backoff(attempt) for _ in range(50)}
        assert len(waits) > 40
        assert all(least <= wait <= least + 5 for wait in waits)


@pytest.mark.parametrize("dated", [False, True])
def test_retry_after_is_obeyed(tmp_path: Path, dated: bool) -> None:
    value = formatdate(NOW + 7200, usegmt=True) if dated else "7200"

    async def scene(bench: Bench) -> None:
        headers = {"Retry-After": value, "Date": formatdate(NOW, usegmt=True)}
        bench.hook.answers["/hook"] = lambda: web.Response(status=503, headers=headers)
        bench.use("hook")
        await bench.happen("a")
        await bench.deliverer.attempt()
        [row] = await bench.rows()
        assert row.next_at == NOW + 7200
        bench.hook.answers.clear()
        bench.now += 7199
        assert await bench.deliverer.attempt() == Tally()
        bench.now += 1
        assert await bench.deliverer.attempt() == Tally(delivered=1)

    trial(tmp_path, scene)


def test_order_holds_per_site_and_endpoint(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        flaky = iter([204, 204, 500] + [204] * 100)
        bench.hook.answers["/flaky"] = lambda: web.Response(status=next(flaky))
        bench.use("flaky", "good")
        for number in range(4):
            await bench.happen(f"paper-{number}")
            await bench.happen(f"gazette-{number}", site="gazette")
        for _ in range(3):
            await bench.deliverer.attempt()
            bench.now += 60
        for path in ("/flaky", "/good"):
            told = list(dict.fromkeys(bench.hook.subjects(path)))
            for site in ("paper", "gazette"):
                assert [each for each in told if each.startswith(site)] == [f"{site}-{n}" for n in range(4)]
        assert max(Counter(bench.hook.subjects("/good")).values()) == 1
        assert sorted(Counter(bench.hook.subjects("/flaky")).values()) == [1] * 7 + [2]

    trial(tmp_path, scene)


def test_an_endpoint_that_hangs_delays_no_other_and_wakes_nobody(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        arrived = asyncio.Event()
        rounds = 0

        async def hang() -> web.StreamResponse:
            arrived.set()
            await asyncio.Event().wait()
            raise AssertionError

        bench.hook.answers["/slow"] = hang
        bench.use("slow", "good")
        counted = bench.deliverer._clock

        def clock() -> float:
            nonlocal rounds
            rounds += 1
            return counted()

        bench.deliverer._clock = clock
        await bench.happen("a")
        running = asyncio.create_task(bench.deliverer.run())
        await arrived.wait()
        for subject in ("b", "c"):
            await bench.happen(subject)
            bench.deliverer.wake()
            async with asyncio.timeout(10):
                while subject not in bench.hook.subjects("/good"):
                    await asyncio.sleep(0.01)
        assert bench.hook.subjects("/good") == ["a", "b", "c"]
        await asyncio.sleep(0.3)
        assert rounds < 40, "what waits for the slow endpoint must not keep the outbox busy"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        waiting = [row for row in await bench.rows() if row.endpoint == "slow"]
        assert [row.attempts for row in waiting] == [0, 0, 0]
        assert not [row for row in await bench.rows() if row.endpoint == "good"]

    trial(tmp_path, scene)


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.hook.answers["/hook"] = lambda: web.Response(status=307, headers={"Location": "/elsewhere"})
        bench.use("hook")
        await bench.happen("a")
        tally = await bench.deliverer.attempt()
        assert tally.failed == 1
        assert "307" in tally.errors["hook"]
        assert [path for path, _headers, _body in bench.hook.got] == ["/hook"]

    trial(tmp_path, scene)


def test_a_private_address_is_refused_by_default(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.use("hook", policy=replace(POLICY, allow_private_networks=False))
        await bench.happen("a")
        tally = await bench.deliverer.attempt()
        assert tally.failed == 1
        assert "allow_private_networks" in tally.errors["hook"]
        assert bench.hook.got == []

    trial(tmp_path, scene)


def test_an_endpoint_nobody_listens_at_is_a_failure_in_words(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.use("hook")
        sink = WebhookSink(WebhookAlert(name="hook", url="http://127.0.0.1:1/"), bench.fetcher, POLICY)
        bench.deliverer.use([sink])
        await bench.happen("a")
        tally = await bench.deliverer.attempt()
        assert "refused" in tally.errors["hook"]

    trial(tmp_path, scene)


def test_stdout_closed_by_its_reader_keeps_the_rest_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)

    async def scene(bench: Bench) -> None:
        reader, writer = os.pipe()
        with os.fdopen(writer, "w") as stream:
            bench.use(more=(StdoutSink("stdout", "jsonl", stream),))
            await bench.happen("a")
            assert await bench.deliverer.attempt() == Tally(delivered=1)
            assert json.loads(os.read(reader, 65536))["subject"] == "a"
            os.close(reader)
            await bench.happen("b", "c")
            assert await bench.deliverer.attempt() == Tally()
            assert bench.deliverer.closed.is_set()
            sys.stdout.close()
        assert [row.state for row in await bench.rows()] == ["pending", "pending"]
        out = io.StringIO()
        bench.deliverer = Deliverer(bench.db, lambda: bench.now)
        bench.use(more=(StdoutSink("stdout", "jsonl", out),))
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        assert [json.loads(line)["subject"] for line in out.getvalue().splitlines()] == ["b", "c"]

    trial(tmp_path, scene)


def test_a_paused_reader_of_stdout_stops_no_other_endpoint(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        reader, writer = os.pipe()
        with os.fdopen(writer, "w") as stream:
            bench.use("good", more=(StdoutSink("stdout", "jsonl", stream),))
            subjects = [f"https://a.example/{'x' * 500}/{number}" for number in range(200)]
            await bench.happen(*subjects)
            running = asyncio.create_task(bench.deliverer.attempt())
            async with asyncio.timeout(30):
                while len(bench.hook.got) < len(subjects):
                    await asyncio.sleep(0.01)
            assert not running.done()
            got = b""
            while got.count(b"\n") < len(subjects):
                got += await asyncio.to_thread(os.read, reader, 65536)
            assert (await running).delivered == 2 * len(subjects)
            assert [json.loads(line)["subject"] for line in got.splitlines()] == subjects
        os.close(reader)

    trial(tmp_path, scene)


def test_what_waits_for_a_wait_is_not_sent_before_after_a_restart(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.use("hook")
        await bench.happen("a", "b")
        await bench.db.run(
            lambda c: c.execute(update(delivery).where(delivery.c.event_seq == 1).values(next_at=NOW + 60)) and None
        )
        assert await bench.deliverer.attempt() == Tally()
        bench.now += 60
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        assert bench.hook.subjects("/hook") == ["a", "b"]

    trial(tmp_path, scene)
