"""Killed at any moment: no event lost, none told under two ids, a database that opens, nobody left behind."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.newsroom import Newsroom
from tests.scenarios.processes import (
    Monitor,
    Receiver,
    baselines,
    live,
    log_of,
    read,
    settled,
    until,
    until_asked,
    write_config,
)

pytestmark = pytest.mark.slow

KILLS = 20


@pytest.fixture
def room() -> Newsroom:
    return Newsroom(seed=11, old_pages=60, start=datetime.now(UTC))


def test_kill_at_twenty_random_moments_loses_no_event(tmp_path: Path, room: Newsroom) -> None:
    chance = random.Random(20)
    database = tmp_path / "monitor.db"
    published: list[str] = []
    with live(room), Receiver() as receiver:
        config = write_config(tmp_path, room.url, hook=receiver.url)
        with Monitor(config) as monitor:
            until(lambda: settled(database), "the baseline")
            monitor.kill()
            until(monitor.ended, "the workers of a killed daemon end")
        for _ in range(KILLS):
            with Monitor(config) as monitor:
                until_asked(room)
                for _ in range(chance.randrange(1, 3)):
                    time.sleep(chance.uniform(0.0, 0.4))
                    published.append(room.publish().url)
                time.sleep(chance.uniform(0.0, 0.8))
                monitor.kill()
                assert read(database, "PRAGMA integrity_check") == [("ok",)]
                until(monitor.ended, "the workers of a killed daemon end")
        with Monitor(config) as monitor:
            until_asked(room)
            wanted = set(published)
            until(lambda: wanted <= {e["subject"] for e in receiver.events}, "every article at the receiver")
            until(lambda: not read(database, "SELECT 1 FROM delivery"), "an empty outbox")
            monitor.process.terminate()
            assert monitor.wait() == 0
            assert "Traceback" not in monitor.stderr

    log = log_of(database)
    news = Counter(event["subject"] for event in log if event["type"] == "url.new")
    assert news == Counter(published)
    order = [event["id"] for event in log]
    stdout = [json.loads(line) for line in (tmp_path / "stdout.jsonl").read_text().splitlines()]
    for told in (receiver.events, stdout):
        first = list(dict.fromkeys(event["id"] for event in told))
        assert first == order, "each event of the log once or more, first in the order of the log"
        assert all(event == log[order.index(event["id"])] for event in told)
    assert read(database, "PRAGMA integrity_check") == [("ok",)]


def test_kill_within_the_first_baseline_makes_no_false_news(tmp_path: Path, room: Newsroom) -> None:
    chance = random.Random(5)
    database = tmp_path / "monitor.db"
    room.latency = 0.05
    with live(room), Receiver() as receiver:
        config = write_config(tmp_path, room.url, hook=receiver.url)
        partway = 0
        for _ in range(6):
            with Monitor(config) as monitor:
                until_asked(room)
                time.sleep(chance.uniform(0.0, 0.8))
                monitor.kill()
                partway += not settled(database)
                until(monitor.ended, "the workers of a killed daemon end")
        assert partway, "no kill came before the end of the baseline: this proves nothing"
        with Monitor(config) as monitor:
            until(lambda: settled(database), "the baseline")
            quiet = len(room.requests)
            until(lambda: len(room.requests) > quiet + 15, "a few polls more")
            article = room.publish()
            until(lambda: any(e["subject"] == article.url for e in receiver.events), "the first real news")
            monitor.process.terminate()
            assert monitor.wait() == 0
    assert [e["subject"] for e in log_of(database) if e["type"].startswith("url.")] == [article.url]
    told = Counter(e["subject"] for e in log_of(database) if e["type"] == "source.baseline")
    assert set(told.values()) == {1}
    assert set(told) == baselines(database)
