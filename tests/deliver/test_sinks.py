"""Files, batches and rotated secrets, against a real disk and real endpoints."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from pydantic import SecretStr
from standardwebhooks.webhooks import Webhook

from monitor.config import FileAlert, WebhookAlert
from monitor.deliver.file import FileSink
from monitor.deliver.outbox import Tally
from monitor.deliver.stdout import StdoutSink
from monitor.deliver.webhook import WebhookSink
from monitor.store import events as event_store
from tests.deliver.bench import POLICY, SECRET, Bench, trial

OTHER = "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXI="


def subjects(path: Path) -> list[str]:
    text = path.read_text()
    assert text.endswith("\n") or not text
    return [json.loads(line)["subject"] for line in text.splitlines()]


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file of this process may be longer than `most` bytes: a write is cut there, and the next one refused."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


def test_a_file_has_each_event_as_a_line_and_the_old_ones_move_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    async def scene(bench: Bench) -> None:
        bench.use(more=(FileSink(FileAlert(name="file", path=path, max_size=1000, keep=2)),))
        for number in range(12):
            await bench.happen(f"https://a.example/{number}", site=f"site{number % 3}")
        assert await bench.deliverer.attempt() == Tally(delivered=12)
        await bench.happen("last")
        assert await bench.deliverer.attempt() == Tally(delivered=1)

    trial(tmp_path, scene)
    files = [tmp_path / "events.jsonl.2", tmp_path / "events.jsonl.1", path]
    assert all(file.stat().st_size <= 1000 for file in files)
    assert not (tmp_path / "events.jsonl.3").exists()
    told = [subject for file in files for subject in subjects(file)]
    assert len(told) > 6
    assert told == [*(f"https://a.example/{number}" for number in range(13 - len(told), 12)), "last"]


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    async def scene(bench: Bench) -> None:
        bench.use(more=(FileSink(FileAlert(name="file", path=path)),))
        await bench.happen("a")
        await bench.deliverer.attempt()
        path.rename(tmp_path / "moved")
        await bench.happen("b")
        await bench.deliverer.attempt()
        assert (subjects(tmp_path / "moved"), subjects(path)) == (["a"], ["b"])

    trial(tmp_path, scene)


@pytest.mark.parametrize(
    ("left", "kept"), [(b'{"specversion": "1.0", "id": "01', b""), (b"notes of mine", b"notes of mine\n")]
)
def test_part_of_a_line_that_a_power_failure_left_is_taken_away_and_nothing_else(
    tmp_path: Path, left: bytes, kept: bytes
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"subject": "old"}\n' + left)

    async def scene(bench: Bench) -> None:
        bench.use(more=(FileSink(FileAlert(name="file", path=path)),))
        await bench.happen("new")
        await bench.deliverer.attempt()

    trial(tmp_path, scene)
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[:-1] == [b'{"subject": "old"}\n', *([kept] if kept else [])]
    assert json.loads(lines[-1])["subject"] == "new"


@pytest.mark.parametrize("kind", ["file", "stdout"])
def test_a_disk_that_is_full_leaves_no_part_of_a_line_and_loses_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "events.jsonl"
    script = tmp_path / "scene.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom tests.deliver.test_sinks import full_disk\n"
        f"full_disk(Path({str(tmp_path)!r}), Path({str(path)!r}), {kind!r})\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert subjects(path) == [f"https://a.example/{number}" for number in range(12)]


def full_disk(folder: Path, path: Path, kind: str) -> None:
    """The scene of the test above, in a process of its own: the limit is one of a process."""

    async def scene(bench: Bench) -> None:
        with path.open("a") as stream:
            file = FileSink(FileAlert(name="out", path=path))
            sink = file if kind == "file" else StdoutSink("out", "jsonl", stream)
            bench.use(more=(sink,))
            await bench.happen(*(f"https://a.example/{number}" for number in range(12)))
            items = await bench.db.run(lambda c: event_store.pending_deliveries(c, bench.now, ["out"], 100))
            with small_files(1000):
                receipt = await sink.send(items, bench.now)
            assert receipt.outcome == "failed", receipt
            assert "File too large" in str(receipt.error), receipt
            assert path.read_text() == ""
            assert await bench.deliverer.attempt() == Tally(delivered=12)

    trial(folder, scene)


def test_a_batch_is_one_signed_request_with_events_of_several_sites(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        alert = WebhookAlert(name="hook", url=f"{bench.hook.url}/hook", secrets=(SecretStr(SECRET),), batch=4)
        bench.use(more=(WebhookSink(alert, bench.fetcher, POLICY),))
        for number in range(10):
            await bench.happen(str(number), site=f"site{number % 3}")
        bench.now = time.time()
        answers = iter([204, 503])
        bench.hook.answers["/hook"] = lambda: web.Response(status=next(answers, 204))
        tally = await bench.deliverer.attempt()
        assert (tally.delivered, tally.failed) == (4, 4)
        waits = {row.next_at for row in await bench.rows() if row.attempts}
        assert len(waits) == 1, "a batch that failed is tried again as one"
        bench.now = waits.pop()  # seconds later, which the verifier allows
        assert await bench.deliverer.attempt() == Tally(delivered=6)
        bodies = []
        for _path, headers, body in bench.hook.got:
            assert headers["content-type"] == "application/cloudevents-batch+json"
            bodies.append([each["subject"] for each in Webhook(SECRET).verify(body, headers)])
        assert bodies == [list("0123"), list("4567"), list("4567"), list("89")]
        numbers = [headers["webhook-id"] for _path, headers, _body in bench.hook.got]
        assert numbers[1] == numbers[2]
        assert len(set(numbers)) == 3

    trial(tmp_path, scene)


def test_every_secret_signs_so_that_one_can_replace_another(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        bench.now = time.time()
        alert = WebhookAlert(name="hook", url=f"{bench.hook.url}/hook", secrets=(SecretStr(OTHER), SecretStr(SECRET)))
        bench.use(more=(WebhookSink(alert, bench.fetcher, POLICY),))
        await bench.happen("a")
        await bench.deliverer.attempt()
        [(_path, headers, body)] = bench.hook.got
        assert [Webhook(secret).verify(body, headers)["subject"] for secret in (SECRET, OTHER)] == ["a", "a"]
        with pytest.raises(Exception, match="No matching signature"):
            Webhook("whsec_AAAA").verify(body, headers)

    trial(tmp_path, scene)


@pytest.mark.parametrize("host", ["localhost", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"])
def test_a_name_that_leads_to_a_private_address_is_refused(tmp_path: Path, host: str) -> None:
    async def scene(bench: Bench) -> None:
        port = bench.hook.url.rpartition(":")[2]
        alert = WebhookAlert(name="hook", url=f"http://{host}:{port}/hook")
        bench.use(more=(WebhookSink(alert, bench.fetcher, replace(POLICY, allow_private_networks=False)),))
        await bench.happen("a")
        tally = await bench.deliverer.attempt()
        assert tally.failed == 1
        assert "allow_private_networks" in tally.errors["hook"]
        assert bench.hook.got == []

    trial(tmp_path, scene)


def test_an_endpoint_that_hangs_leaves_its_host_to_the_others(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        async def hang() -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        bench.hook.answers["/slow"] = hang
        bench.use("slow", "good")
        for number in range(16):
            await bench.happen(str(number), site=f"site{number}")
        running = asyncio.create_task(bench.deliverer.run())
        async with asyncio.timeout(20):
            while len(bench.hook.subjects("/good")) < 16:
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert sorted(bench.hook.subjects("/good"), key=int) == [str(number) for number in range(16)]

    trial(tmp_path, scene)
