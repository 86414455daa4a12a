"""Messages to people through Apprise, to a real endpoint on loopback: their text, and when they are sent."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from monitor.config import NotifyAlert
from monitor.core.hold import Manner
from monitor.deliver.outbox import Deliverer, Tally
from monitor.deliver.text import digest, message
from monitor.store import events as event_store
from tests.deliver.bench import NOW, Bench, trial

pytest.importorskip("apprise", reason="the extra `notify` is not installed")
from monitor.deliver.notify import NotifySink

# Apprise imports it, where Python still has it, as it loads its services.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

TOKEN = "t0psecret"


def sink(bench: Bench, manner: Manner | None = None, template: str | None = None) -> NotifySink:
    url = bench.hook.url.replace("http://", "json://") + f"/{TOKEN}"
    return NotifySink(NotifyAlert(name="notify json", url=SecretStr(url), manner=manner or Manner(), template=template))


def messages(bench: Bench) -> list[str]:
    return [json.loads(body)["message"] for _path, _headers, body in bench.hook.got]


def envelope(kind: str = "url.new", **data: Any) -> dict[str, Any]:
    url = "https://a.example/news/politics/vote-7"
    return {
        "type": kind,
        "subject": url,
        "time": "2026-12-01T09:00:03.120Z",
        "data": {"site": "paper", "url": url, "found_in": {"kind": "feed", "url": "https://a.example/f"}} | data,
    }


def test_a_message_reads_the_same_in_every_language() -> None:
    new = envelope(entry={"title": "Rat stimmt ab"}, delay_seconds=3.0)
    assert message(new) == "+ Rat stimmt ab\nhttps://a.example/news/politics/vote-7\npaper · 2026-12-01 09:00Z"
    assert message(envelope("url.missing", reason="removed")).startswith("−\nhttps://a.example/")
    failing = message(envelope("source.failing", error="HTTP 500"))
    assert failing.startswith("! source.failing\n")
    assert failing.endswith("\nHTTP 500")


def test_a_template_takes_names_and_nothing_a_stranger_wrote() -> None:
    new = envelope(entry={"title": "{url} {{x", "authors": ["A", "B"], "tags": ["Politics"], "summary": "S"})
    text = message(new, "{{{title}}} by {authors} in {section}: {summary} ({type}, {source})")
    assert text == "{{url} {{x} by A, B in Politics: S (url.new, https://a.example/f)"
    assert message(envelope(), "{section}{title}") == "/news/politics/"


def test_a_headline_calls_nobody_and_steers_nothing() -> None:
    shout = "@everyone <!channel> <@U1>\n\x1b[2J" + "x" * 5000
    for text in (message(envelope(entry={"title": shout})), digest([envelope(entry={"title": shout})])):
        assert "@everyone" not in text
        assert "<!" not in text
        assert "<@" not in text
        assert "\x1b" not in text
        assert len(text) < 600


def test_one_event_is_one_message(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.use(more=(sink(bench),))
        await bench.happen("https://a.example/1", "https://a.example/2")
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        assert [text.split("\n")[1] for text in messages(bench)] == ["https://a.example/1", "https://a.example/2"]

    trial(tmp_path, scene)


def test_a_surge_is_summed_up(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.use(more=(sink(bench),))
        for number in range(700):
            await bench.happen(f"https://a.example/{number}", site=f"site{number % 3}")
        assert await bench.deliverer.attempt() == Tally(delivered=700)
        [text] = messages(bench)
        assert text.startswith("+ 700\n+ https://a.example/0\n")
        assert text.endswith("\n+ https://a.example/9\n… +690")

    trial(tmp_path, scene)


def test_a_digest_waits_for_its_time_and_holds_all_that_came(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.now = NOW - NOW % 900 + 10
        bench.use(more=(sink(bench, Manner(every=900.0)),))
        await bench.happen("https://a.example/1")
        assert await bench.deliverer.attempt() == Tally()
        bench.now += 600
        await bench.happen("https://a.example/2", site="gazette")
        assert await bench.deliverer.attempt() == Tally()
        bench.now += 290
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        assert messages(bench) == ["+ 2\n+ https://a.example/1\n+ https://a.example/2"]

    trial(tmp_path, scene)


def test_a_limit_sums_up_and_holds_over_a_restart(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        manner = Manner(limit=(2, 3600.0))
        bench.use(more=(sink(bench, manner),))
        await bench.db.run(lambda c: event_store.sync_endpoints(c, [("notify json", "x")]))
        await bench.happen("https://a.example/1")
        assert await bench.deliverer.attempt() == Tally(delivered=1)
        bench.now += 60
        await bench.happen("https://a.example/2", "https://a.example/3")
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        bench.deliverer = Deliverer(bench.db, lambda: bench.now)
        bench.use(more=(sink(bench, manner),))
        await bench.happen("https://a.example/4", "https://a.example/5")
        assert await bench.deliverer.attempt() == Tally()
        bench.now = NOW + 3600
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        assert [text.split("\n")[0] for text in messages(bench)] == ["+", "+ 2", "+ 2"]
        assert len(messages(bench)) == 3

    trial(tmp_path, scene)


def test_the_outbox_rests_while_an_endpoint_is_held(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.now = NOW - NOW % 900 + 10
        asked = 0
        held = sink(bench, Manner(every=900.0))
        bench.use("good", more=(held,))
        counted = bench.deliverer._clock

        def clock() -> float:
            nonlocal asked
            asked += 1
            return counted()

        bench.deliverer._clock = clock
        running = asyncio.create_task(bench.deliverer.run())
        await bench.happen("https://a.example/1")
        bench.deliverer.wake()
        async with asyncio.timeout(10):
            while not bench.hook.got:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert asked < 40
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert [path for path, _headers, _body in bench.hook.got] == ["/good"]

    trial(tmp_path, scene)


def test_what_a_service_refuses_is_told_without_its_token_and_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(bench: Bench) -> None:
        bench.hook.answers[f"/{TOKEN}"] = lambda: web.Response(status=403, text=f"bad token {TOKEN}")
        bench.use(more=(sink(bench),))
        await bench.happen("https://a.example/1")
        with caplog.at_level(logging.DEBUG):
            tally = await bench.deliverer.attempt()
        ours = [record.getMessage() for record in caplog.records if record.name.startswith("monitor")]
        assert ours
        assert tally.failed == 1
        error = tally.errors["notify json"]
        assert "403" in error
        assert TOKEN not in error + str(ours)
        assert not any(logging.getLogger(name).propagate for name in ("apprise", "urllib3"))
        [row] = await bench.rows()
        assert (row.attempts, TOKEN in row.error) == (1, False)
        bench.hook.answers.clear()
        bench.now = row.next_at
        assert await bench.deliverer.attempt() == Tally(delivered=1)

    trial(tmp_path, scene)


def test_a_url_that_apprise_does_not_know_is_a_sentence_without_it() -> None:
    with pytest.raises(ValueError, match="Apprise knows no such service") as caught:
        NotifySink(NotifyAlert(name="notify nope", url=SecretStr(f"nope://{TOKEN}")))
    assert TOKEN not in str(caught.value)
