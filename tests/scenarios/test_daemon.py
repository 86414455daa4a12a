"""`monitor run` as its user meets it: signals, reloads, pipes, full disks, a second daemon."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.newsroom import Newsroom
from tests.scenarios.processes import Monitor, Receiver, live, log_of, read, settled, until, write_config

pytestmark = pytest.mark.slow


@pytest.fixture
def room() -> Iterator[Newsroom]:
    with live(Newsroom(seed=3, old_pages=40, start=datetime.now(UTC))) as served:
        yield served


def told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "stdout.jsonl").read_text().splitlines()]


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def pass_over(config: Path, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """`monitor run --once`, to its end."""
    command = [sys.executable, "-m", "monitor", "run", "-c", str(config), "--once", *args]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60} | options
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False, **options)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("hanging", [False, True])
def test_a_signal_ends_the_daemon_soon_and_loses_nothing(
    tmp_path: Path, room: Newsroom, number: signal.Signals, hanging: bool
) -> None:
    config, database = write_config(tmp_path, room.url), tmp_path / "monitor.db"
    with Monitor(config) as monitor:
        until(lambda: settled(database), "the baseline")
        if hanging:
            room.fail("/feed.xml", "hang")
            asked = len(room.requests)
            until(lambda: any(r.path == "/feed.xml" for r in room.requests_since(asked)), "a request that hangs")
        article = room.publish()
        monitor.send(number)
        assert monitor.wait(10) == 0
        assert monitor.stderr == ""
        until(lambda: not monitor.session(), "the workers end")
    room.mend("/feed.xml")
    with Monitor(config) as monitor:
        until(lambda: article.url in {event["subject"] for event in told(tmp_path)}, "the article")
        monitor.send(number)
        assert monitor.wait(10) == 0
    assert ids(told(tmp_path)) == ids(log_of(database))
    assert [e["subject"] for e in log_of(database) if e["type"].startswith("url.")] == [article.url]


def test_sighup_takes_a_new_configuration_and_refuses_a_broken_one(tmp_path: Path, room: Newsroom) -> None:
    config, database = write_config(tmp_path, room.url), tmp_path / "monitor.db"
    text = config.read_text()
    with live(Newsroom(seed=4, old_pages=12, start=datetime.now(UTC))) as second, Monitor(config) as monitor:
        until(lambda: settled(database), "the baseline")
        config.write_text(text + "    feedz: []\n")
        monitor.send(signal.SIGHUP)
        until(lambda: "stays as it was" in monitor.stderr, "a word about the broken file")
        line = text.count("\n") + 1
        assert f"{config}:{line}" in monitor.stderr
        assert "feedz" in monitor.stderr
        assert "Traceback" not in monitor.stderr
        first = room.publish()
        until(lambda: first.url in {event["subject"] for event in told(tmp_path)}, "news under the old configuration")
        assert second.requests == []

        config.write_text(text + f"  - name: gazette\n    url: {second.url}\n")
        monitor.send(signal.SIGHUP)
        watched = (
            "SELECT count(*), count(baseline_at) FROM source JOIN site ON site.id = site_id WHERE name = 'gazette'"
        )
        until(lambda: (rows := read(database, watched)[0])[0] and rows[0] == rows[1], "the baseline of the site added")
        article = second.publish()
        until(lambda: article.url in {event["subject"] for event in told(tmp_path)}, "news of the site added")

        config.write_text(text)
        monitor.send(signal.SIGHUP)
        until(lambda: monitor.stderr.count("configuration read again") == 2, "the second reload")
        last = room.publish()
        until(lambda: last.url in {event["subject"] for event in told(tmp_path)}, "news after a site was taken out")
        monitor.send(signal.SIGTERM)
        assert monitor.wait(10) == 0
        assert "Traceback" not in monitor.stderr


def test_a_second_daemon_on_the_same_database_is_refused_in_one_sentence(tmp_path: Path, room: Newsroom) -> None:
    config = write_config(tmp_path, room.url)
    with Monitor(config) as monitor:
        until(lambda: settled(tmp_path / "monitor.db"), "the baseline")
        second = pass_over(config)
        assert second.returncode == 1
        assert second.stdout == ""
        assert len(second.stderr.splitlines()) == 1
        assert f"process {monitor.process.pid}" in second.stderr
        assert str(tmp_path / "monitor.db") in second.stderr
        monitor.send(signal.SIGTERM)
        assert monitor.wait(10) == 0
    assert pass_over(config).returncode == 0


def test_once_prints_json_lines_in_a_pipe_and_says_nothing_else(tmp_path: Path, room: Newsroom) -> None:
    config = write_config(tmp_path, room.url)
    first = pass_over(config)
    assert (first.returncode, first.stderr) == (0, "")
    assert {json.loads(line)["type"] for line in first.stdout.splitlines()} == {"source.baseline"}
    article = room.publish()
    again = pass_over(config, "--all")
    assert (again.returncode, again.stderr) == (0, "")
    assert [(e["type"], e["subject"]) for e in map(json.loads, again.stdout.splitlines())] == [("url.new", article.url)]


def test_a_closed_pipe_ends_it_quietly_and_the_rest_comes_next_time(tmp_path: Path, room: Newsroom) -> None:
    config, database = write_config(tmp_path, room.url), tmp_path / "monitor.db"
    assert pass_over(config).returncode == 0
    published = [room.publish().url for _ in range(400)]  # more than a pipe holds, and than a feed shows
    with (tmp_path / "stderr.txt").open("wb") as stderr:
        head = subprocess.Popen(
            f"{sys.executable} -m monitor run -c {config} --once --all | head -1",
            shell=True, executable="/bin/bash", stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
        line, _ = head.communicate(timeout=60)
    assert (tmp_path / "stderr.txt").read_text() == ""
    one = json.loads(line)
    news = [e for e in log_of(database) if e["type"] == "url.new"]
    assert sorted(e["subject"] for e in news) == sorted(published)
    rest = [json.loads(line) for line in pass_over(config).stdout.splitlines()]
    assert one["id"] not in ids(rest[1:])
    got = {e["subject"] for e in [one, *rest]}
    # What a pipe's buffer took when its reader left was written as far as any program can tell.
    assert got >= set(published[-100:]) or got >= set(published[:100])
    assert ids(rest) == [i for i in ids(log_of(database)) if i in set(ids(rest))]


def test_a_daemon_whose_reader_goes_away_ends_and_keeps_what_was_not_read(tmp_path: Path, room: Newsroom) -> None:
    config, database = write_config(tmp_path, room.url), tmp_path / "monitor.db"
    reader, writer = os.pipe()
    with Monitor(config, stdout=writer) as monitor:
        os.close(writer)
        until(lambda: settled(database), "the baseline")
        until(lambda: not read(database, "SELECT 1 FROM delivery"), "an empty outbox")
        os.close(reader)
        article = room.publish()
        assert monitor.wait(20) == 0
        assert monitor.stderr == ""
    assert article.url in pass_over(config).stdout


def test_a_reader_that_pauses_keeps_nobody_from_stopping_the_daemon(tmp_path: Path, room: Newsroom) -> None:
    config, database = write_config(tmp_path, room.url), tmp_path / "monitor.db"
    reader, writer = os.pipe()
    with Receiver() as receiver:
        config = write_config(tmp_path, room.url, hook=receiver.url)
        with Monitor(config, stdout=writer) as monitor:
            os.close(writer)
            until(lambda: settled(database), "the baseline")
            for _ in range(200):
                room.publish()
            wanted = {article.url for article in room.articles[:200]}
            until(lambda: wanted <= {e["subject"] for e in receiver.events}, "news at the other endpoint")
            assert read(database, "SELECT count(*) FROM delivery WHERE endpoint LIKE 'stdout%'")[0][0] > 0
            monitor.send(signal.SIGTERM)
            assert monitor.wait(10) == 0
            os.close(reader)


def test_a_full_disk_is_one_sentence(tmp_path: Path, room: Newsroom) -> None:
    config = write_config(tmp_path, room.url)

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))

    full = pass_over(config, preexec_fn=small)
    assert full.returncode == 1
    assert len(full.stderr.splitlines()) == 1, full.stderr
    assert "disk is full or cannot be written" in full.stderr
    assert pass_over(config).returncode == 0


def test_a_disk_that_fills_ends_the_daemon_with_a_sentence(tmp_path: Path, room: Newsroom) -> None:
    config, database = write_config(tmp_path, room.url), tmp_path / "monitor.db"
    assert pass_over(config).returncode == 0
    limit = database.stat().st_size + 40_000
    with Monitor(config, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) as monitor:
        for _ in range(300):
            room.publish()
        assert monitor.wait(30) == 1
        assert len(monitor.stderr.splitlines()) == 1, monitor.stderr
        assert "disk is full or cannot be written" in monitor.stderr
    after = pass_over(config, "--all")
    assert after.returncode == 0
    assert len({e["subject"] for e in log_of(database) if e["type"] == "url.new"}) == 300


@pytest.mark.parametrize("place", ["/sys/monitor.db", "/nowhere/monitor.db", "."])
def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path, room: Newsroom, place: str) -> None:
    config = write_config(tmp_path, room.url)
    answer = pass_over(config, "--database", f"sqlite:///{place}", cwd=tmp_path)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert len(answer.stderr.splitlines()) == 1, answer.stderr
    assert answer.stderr.startswith("monitor: ")


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path, room: Newsroom) -> None:
    config = write_config(tmp_path, room.url)
    (tmp_path / "monitor.db").write_bytes(b"not a database, but long enough to be read as one " * 40)
    answer = pass_over(config)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert len(answer.stderr.splitlines()) == 1, answer.stderr
    assert "not a usable database" in answer.stderr


def test_all_obeys_retry_after(tmp_path: Path, room: Newsroom) -> None:
    config = write_config(tmp_path, room.url)
    assert pass_over(config).returncode == 0
    room.fail("/feed.xml", 503, retry_after=3600)
    first = pass_over(config, "--all")
    assert first.returncode == 1
    assert "/feed.xml" in first.stderr
    asked = len(room.requests)
    second = pass_over(config, "--all")
    assert second.returncode == 0
    assert room.requests_since(asked)
    assert "/feed.xml" not in {request.path for request in room.requests_since(asked)}


def test_a_failing_child_is_named_and_fails_the_pass(tmp_path: Path, room: Newsroom) -> None:
    config = write_config(tmp_path, room.url)
    assert pass_over(config).returncode == 0
    room.fail("/sitemaps/pages-1.xml.gz", 500)
    answer = pass_over(config, "--all")
    assert answer.returncode == 1
    assert "/sitemaps/pages-1.xml.gz" in answer.stderr
    assert "500" in answer.stderr
    assert answer.stdout == ""
