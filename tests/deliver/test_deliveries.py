"""What an operator does about alerts that wait: `monitor deliveries` and its verbs."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from monitor.core.reconcile import Draft
from monitor.deliver.outbox import Tally
from monitor.store import deliveries as delivery_store
from monitor.store import events as event_store
from monitor.store.database import Database
from monitor.store.deliveries import Choice
from monitor.store.events import Route
from tests.deliver.bench import NOW, Bench, trial
from tests.test_cli import monitor

GOOD, BAD = "webhook https://hook.example/good", "webhook https://hook.example/bad"


@pytest.fixture
def waiting(tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder with a database in which three events wait for two endpoints, two of them parked for one."""
    (tmp_path / "sites.yaml").write_text(
        "alerts:\n"
        '  - webhook: {url: "https://hook.example/good?key=hush"}\n'
        '  - webhook: {url: "https://hook.example/bad", events: ["url.missing"]}\n'
        "sites: [{name: paper, url: https://paper.example/}]\n"
    )
    routes = [Route(name, lambda _event: True) for name in (GOOD, BAD)]
    with Database(f"sqlite:///{tmp_path}/monitor.db") as db:
        drafts = [Draft("url.new", f"https://paper.example/{n}", {"site": "paper"}) for n in range(3)]

        def fill(connection: Any) -> list[str]:
            event_store.sync_endpoints(connection, [(GOOD, "x"), (BAD, "y")])
            made = event_store.add_events(connection, "paper", drafts, routes, time.time() - 100)
            for item in event_store.pending_deliveries(connection, time.time(), [BAD], 2):
                event_store.parked(connection, item, "HTTP 500")
            return [event.id for event in made]

        ids = db.call(fill)
    return tmp_path, ids


def listed(folder: Path, *args: str) -> dict[str, Any]:
    found = monitor("deliveries", "--json", *args, cwd=folder)
    assert (found.returncode, found.stderr) == (0, "")
    return dict(json.loads(found.stdout))


def test_what_waits_is_listed_by_endpoint_and_event(waiting: tuple[Path, list[str]]) -> None:
    folder, ids = waiting
    told = listed(folder)
    good, bad = sorted(told["endpoints"], key=lambda each: each["name"], reverse=True)
    assert (good["name"], good["state"], good["pending"], good["parked"]) == (GOOD, "ok", 3, 0)
    assert (bad["name"], bad["pending"], bad["parked"], bad["error"]) == (BAD, 1, 2, "HTTP 500")
    parked = [row for row in told["deliveries"] if row["state"] == "parked"]
    assert [(row["id"], row["endpoint"], row["next_at"]) for row in parked] == [(one, BAD, None) for one in ids[:2]]
    assert len(listed(folder, "--limit", "1")["deliveries"]) == 1
    assert {row["endpoint"] for row in listed(folder, "--endpoint", GOOD)["deliveries"]} == {GOOD}
    table = monitor("deliveries", cwd=folder).stdout
    assert ids[0] in table
    assert "HTTP 500" in table
    assert "hush" not in table


def test_parked_ones_are_retried_and_dropped_by_id_by_endpoint_and_all(waiting: tuple[Path, list[str]]) -> None:
    folder, ids = waiting
    one = monitor("deliveries", "retry", ids[0], cwd=folder)
    assert (one.returncode, one.stdout) == (0, "")
    assert "2 deliveries will be tried again" in one.stderr
    assert [row["id"] for row in listed(folder, "--state", "parked")["deliveries"]] == [ids[1]]
    dropped = monitor("deliveries", "drop", "--all", "--state", "parked", cwd=folder)
    assert "1 delivery dropped" in dropped.stderr
    assert monitor("deliveries", "drop", "--endpoint", BAD, cwd=folder).returncode == 0
    left = listed(folder)
    assert [(e["name"], e["pending"], e["parked"]) for e in left["endpoints"]] == [(BAD, 0, 0), (GOOD, 3, 0)]
    assert len(monitor("events", cwd=folder).stdout.splitlines()) == 3, "the log keeps what was dropped"


def test_a_replay_follows_the_rules_of_now_and_doubles_nothing_that_waits(waiting: tuple[Path, list[str]]) -> None:
    folder, ids = waiting
    monitor("deliveries", "drop", ids[2], "--endpoint", GOOD, cwd=folder)
    again = monitor("deliveries", "replay", "--since", "1h", cwd=folder)
    assert again.returncode == 0
    assert "1 delivery will be sent again" in again.stderr, "two wait already, and the other takes url.missing alone"
    told = listed(folder)
    assert [(e["pending"], e["parked"]) for e in told["endpoints"]] == [(1, 2), (3, 0)]
    assert "0 deliveries" in monitor("deliveries", "replay", "--since", "10s", cwd=folder).stderr


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["retry"], 2, "say which deliveries to retry"),
        (["drop", "--all", "--endpoint", "x"], 2, "--all excludes"),
        (["retry", "01NONE"], 1, "nothing waits for the event 01NONE"),
        (["drop", "--endpoint", "nobody"], 1, "no endpoint is named 'nobody'"),
        (["--state", "lost"], 2, "use pending or parked"),
        (["replay", "--since", "yesterday"], 2, "--since yesterday"),
        (["replay", "--since", "1h", "--endpoint", "nobody"], 1, "no alert is named 'nobody'"),
    ],
)
def test_a_mistake_is_one_sentence(waiting: tuple[Path, list[str]], args: list[str], code: int, sentence: str) -> None:
    done = monitor("deliveries", *args, cwd=waiting[0])
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_disabled_endpoint_is_enabled_by_a_retry_of_all_that_waits_for_it(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.hook.answers["/hook"] = lambda: web.Response(status=410)
        bench.use("hook")
        await bench.db.run(lambda c: event_store.sync_endpoints(c, [("hook", "x")]))
        await bench.happen("a", "b")
        await bench.deliverer.attempt()
        [row] = await bench.db.run(delivery_store.endpoints)
        assert (row.state, row.pending, row.parked) == ("disabled", 0, 2)
        bench.hook.answers.clear()
        [first, _second] = await bench.db.run(lambda c: delivery_store.waiting(c, Choice(), None))
        await bench.db.run(lambda c: delivery_store.retry(c, Choice(ids=(first.id,)), NOW))
        assert await bench.deliverer.attempt() == Tally(), "one event asks for no endpoint to be enabled"
        await bench.db.run(lambda c: delivery_store.retry(c, Choice(endpoint="hook"), NOW))
        assert await bench.deliverer.attempt() == Tally(delivered=2)

    trial(tmp_path, scene)


def test_a_replay_takes_up_what_was_parked_in_steps_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_store, "CHUNK", 2)

    async def scene(bench: Bench) -> None:
        bench.use("hook")
        await bench.happen("a", "b", "c", "d", "e")
        await bench.db.run(lambda c: event_store.disable(c, "hook", "gone", NOW))
        await bench.db.run(lambda c: event_store.sync_endpoints(c, [("hook", "new")]))
        going: int | None = 0
        added = []
        span = {"since": 0.0, "until": NOW, "endpoint_name": None, "now": NOW}
        while going is not None:
            step = partial(delivery_store.replay, routes=bench.routes, after=going, **span)
            count, going = await bench.db.run(step)
            added.append(count)
        assert added == [2, 2, 1]
        assert await bench.deliverer.attempt() == Tally(delivered=5)
        assert bench.hook.subjects("/hook") == ["a", "b", "c", "d", "e"]

    trial(tmp_path, scene)


def test_a_route_that_stops_takes_an_event_from_the_later_ones(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.use("first", "second")
        _first, second = bench.routes
        bench.routes = [Route("first", lambda event: event.subject == "a", stop=True), second]
        await bench.happen("a", "b")
        assert await bench.deliverer.attempt() == Tally(delivered=2)
        assert bench.hook.subjects("/first") == ["a"]
        assert bench.hook.subjects("/second") == ["b"]

    trial(tmp_path, scene)
