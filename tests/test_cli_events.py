"""`monitor events --cursor`: a consumer that may die at any moment gets every event, in order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.core.reconcile import Draft
from monitor.store import cursors
from monitor.store import events as event_store
from monitor.store.database import Database
from tests.scenarios.processes import until
from tests.test_cli import monitor


class Log:
    """A database that gets events."""

    def __init__(self, folder: Path) -> None:
        (folder / "sites.yaml").write_text("sites: [{url: https://paper.example/}]\n")
        self.folder = folder
        self.db = Database(f"sqlite:///{folder}/monitor.db")

    def happen(self, *subjects: str, kind: str = "url.new") -> None:
        data = {"site": "paper", "found_in": {"kind": "feed", "url": "https://paper.example/feed"}}
        drafts = [Draft(kind, subject, data) for subject in subjects]
        self.db.call(lambda c: event_store.add_events(c, "paper", drafts, [], time.time()) and None)

    def read(self, *args: str) -> list[str]:
        done = monitor("events", "--cursor", "a", *args, cwd=self.folder)
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line)["subject"] for line in done.stdout.splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path)
    yield made
    made.db.close()


def test_each_reader_goes_on_where_it_stopped(log: Log) -> None:
    log.happen("1", "2")
    assert log.read() == ["1", "2"]
    assert log.read() == []
    log.happen("3")
    log.happen("moved", kind="source.moved")
    assert log.read("--type", "url.*") == ["3"]
    assert log.read() == [], "what its types left out is behind it, too"
    other = monitor("events", "--cursor", "b", "--type", "source.*", cwd=log.folder)
    assert [json.loads(line)["subject"] for line in other.stdout.splitlines()] == ["moved"]
    assert len(monitor("events", cwd=log.folder).stdout.splitlines()) == 4, "without a cursor, all of it"
    assert log.read("--since", "1h") == [], "--since is where a new cursor begins"


def test_what_nobody_took_is_printed_again(log: Log) -> None:
    log.happen(*map(str, range(3)))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "monitor", "events", "--cursor", "a"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=log.folder, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert log.read() == ["0", "1", "2"]


def test_two_readers_under_one_name_are_told(log: Log) -> None:
    assert log.db.call(lambda c: cursors.move(c, "a", None, 1, 0.0))
    assert not log.db.call(lambda c: cursors.move(c, "a", None, 5, 0.0))
    assert log.db.call(lambda c: cursors.move(c, "a", 1, 5, 0.0))
    assert not log.db.call(lambda c: cursors.move(c, "a", 1, 9, 0.0))
    log.happen("1")
    command = [sys.executable, "-m", "monitor", "events", "--follow", "--cursor", "b"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=log.folder) as slow:
        assert slow.stdout is not None
        assert json.loads(slow.stdout.readline())["subject"] == "1"
        until(lambda: log.db.call(lambda c: cursors.position(c, "b")) == 1, "the cursor")
        assert log.db.call(lambda c: cursors.move(c, "b", 1, 2, 0.0))
        log.happen("2", "3")
        _out, err = slow.communicate(timeout=30)
    assert slow.returncode == 1
    assert b"another reader moves the cursor 'b'" in err
    assert b"Traceback" not in err


@pytest.mark.slow
def test_a_reader_killed_at_any_moment_misses_nothing(log: Log, tmp_path: Path) -> None:
    chance = random.Random(7)
    out = tmp_path / "got.jsonl"
    number = 0
    command = [sys.executable, "-m", "monitor", "events", "--follow", "--cursor", "a"]
    for _ in range(8):
        with out.open("ab") as file, subprocess.Popen(command, stdout=file, cwd=log.folder) as reader:
            before = out.stat().st_size
            log.happen(str(number))
            number += 1
            until(lambda size=before: out.stat().st_size > size, "the first event of a reader")
            for _ in range(chance.randrange(40)):
                log.happen(str(number))
                number += 1
                time.sleep(chance.uniform(0, 0.03))
            reader.send_signal(signal.SIGKILL)
    with out.open("ab") as file:
        subprocess.run([*command[:4], *command[5:]], stdout=file, cwd=log.folder, check=True)
    told = [json.loads(line)["subject"] for line in out.read_text().splitlines()]
    assert list(dict.fromkeys(told)) == [str(each) for each in range(number)]
