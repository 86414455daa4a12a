"""Alerts through crashes, a full disk and a locked database: none lost, none under two ids, none out of order."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from pathlib import Path

import pytest

from monitor.newsroom import Newsroom
from tests.scenarios.processes import (
    Monitor,
    Receiver,
    live,
    log_of,
    read,
    settled,
    until,
    until_asked,
    write_config,
)
from tests.test_cli import monitor as command

pytestmark = pytest.mark.slow

ROUNDS = 8
PAGES = 25


@pytest.fixture
def room() -> Newsroom:
    return Newsroom(seed=3, old_pages=60, window=60, start=datetime.now(UTC))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("mounting a tmpfs needs to be root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk has no room for another byte."""
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def check(receiver: Receiver, database: Path, published: list[str], most_repeats: float) -> None:
    """Every page reached the receiver, first in the order of the log; repeats are repeats to the letter, and few."""
    log = log_of(database)
    news = Counter(event["subject"] for event in log if event["type"] == "url.new")
    assert news == Counter(published)
    first = list({event["id"]: event for event in receiver.events}.values())
    assert first == log, "each event of the log once or more, first in the order of the log"
    by_id = {event["id"]: event for event in log}
    assert all(event == by_id[event["id"]] for event in receiver.events)
    assert len(receiver.events) - len(first) <= most_repeats * len(first)
    assert receiver.forged == []
    assert read(database, "PRAGMA integrity_check") == [("ok",)]


def test_eight_rounds_killed_at_random_moments(tmp_path: Path, room: Newsroom) -> None:
    chance = random.Random(8)
    database = tmp_path / "monitor.db"
    published: list[str] = []
    # The good one fails at first; the other one always does.
    answers = chain([503], repeat(204))

    def slowly() -> int:
        time.sleep(0.02)  # so that kills fall between two deliveries of many
        return next(answers)

    with live(room), Receiver(slowly) as good, Receiver(lambda: 500) as bad:
        config = write_config(tmp_path, room.url, hook=good.url, more=[bad.url])
        with Monitor(config) as monitor:
            until(lambda: settled(database), "the baseline")
            monitor.kill()
            until(monitor.ended, "the workers of a killed daemon end")
        for _ in range(ROUNDS):
            with Monitor(config) as monitor:
                until_asked(room)
                for _ in range(PAGES):
                    time.sleep(chance.uniform(0.0, 0.05))
                    published.append(room.publish().url)
                time.sleep(chance.uniform(0.0, 1.5))
                monitor.kill()
                until(monitor.ended, "the workers of a killed daemon end")
        with Monitor(config) as monitor:
            until_asked(room)
            wanted = set(published)
            until(lambda: wanted <= {e["subject"] for e in good.events}, "every page at the good endpoint", 60.0)
            mine = f"SELECT 1 FROM delivery WHERE endpoint = 'webhook {good.url}'"
            until(lambda: not read(database, mine), "nothing left for the good endpoint")
            monitor.process.terminate()
            assert monitor.wait() == 0
            assert "Traceback" not in monitor.stderr
        assert len(published) == ROUNDS * PAGES
        check(good, database, published, 0.2)
        assert bad.events == []
        assert 0 < bad.asked < 100, "it is asked again later each time, not all the time"

        # Four days later: the last try of all that waits.
        with sqlite3.connect(database) as connection:
            connection.execute("UPDATE delivery SET attempts = 19, next_at = 0")
        connection.close()
        total = len(log_of(database))
        with Monitor(config) as monitor:
            until(
                lambda: read(database, "SELECT count(*) FROM delivery WHERE state = 'parked'")[0][0] == total, "parked"
            )
            monitor.process.terminate()
            assert monitor.wait() == 0
        told = json.loads(command("deliveries", "--json", "--limit", "0", cwd=tmp_path).stdout)
        [one] = [each for each in told["endpoints"] if each["parked"]]
        assert (one["name"], one["pending"], one["parked"]) == (f"webhook {bad.url}", 0, total)
        assert "500" in one["error"]
        assert [row["id"] for row in told["deliveries"]] == [event["id"] for event in log_of(database)]
        assert f"{total} deliveries parked for webhook {bad.url}" in command("status", cwd=tmp_path).stdout


def test_a_full_disk_ends_it_with_a_sentence_and_loses_nothing(
    tmp_path: Path, room: Newsroom, small_disk: Path
) -> None:
    database = small_disk / "monitor.db"
    published: list[str] = []
    with live(room), Receiver() as receiver:
        config = write_config(tmp_path, room.url, hook=receiver.url, data=small_disk)
        with Monitor(config) as monitor:
            until(lambda: settled(database), "the baseline")
            published += [room.publish().url for _ in range(5)]
            until(lambda: set(published) <= {e["subject"] for e in receiver.events}, "the first news")
            fill(small_disk / "ballast")
            published += [room.publish().url for _ in range(PAGES)]
            # Space that the log of the database still had, it may use; sooner or later there is none.
            end = time.monotonic() + 60
            while monitor.process.poll() is None and time.monotonic() < end:
                published.append(room.publish().url)
                time.sleep(0.05)
            assert monitor.wait() == 1
            assert "the disk is full or cannot be written" in monitor.stderr
            assert "Traceback" not in monitor.stderr
        with Monitor(config) as monitor:
            assert monitor.wait() == 1, "it does not start either, and says why"
            assert "disk" in monitor.stderr
            assert "Traceback" not in monitor.stderr
        (small_disk / "ballast").unlink()
        with Monitor(config) as monitor:
            until_asked(room)
            until(lambda: set(published) <= {e["subject"] for e in receiver.events}, "all news", 60.0)
            until(lambda: not read(database, "SELECT 1 FROM delivery"), "an empty outbox")
            monitor.process.terminate()
            assert monitor.wait() == 0
    check(receiver, database, published, 0.2)


def test_a_database_that_another_process_locks_ends_it_with_a_sentence_and_loses_nothing(
    tmp_path: Path, room: Newsroom
) -> None:
    database = tmp_path / "monitor.db"
    published: list[str] = []
    with live(room), Receiver() as receiver:
        config = write_config(tmp_path, room.url, hook=receiver.url)
        with Monitor(config) as monitor:
            until(lambda: settled(database), "the baseline")
            other = sqlite3.connect(database, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            published += [room.publish().url for _ in range(PAGES)]
            assert monitor.wait(180.0) == 1  # a lock is waited for more than once on the way out
            assert "another process holds the database's lock" in monitor.stderr
            assert "Traceback" not in monitor.stderr
        other.rollback()
        other.close()
        with Monitor(config) as monitor:
            until_asked(room)
            until(lambda: set(published) <= {e["subject"] for e in receiver.events}, "all news")
            second = command("run", "--once", cwd=tmp_path)
            assert second.returncode == 1
            assert "another monitor (process" in second.stderr
            until(lambda: not read(database, "SELECT 1 FROM delivery"), "an empty outbox")
            monitor.process.terminate()
            assert monitor.wait() == 0
    check(receiver, database, published, 0.2)
