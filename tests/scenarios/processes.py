"""Runs the real `monitor` as a process against a simulated site that goes with the real clock."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks.webhooks import Webhook

from monitor.newsroom import Newsroom, serve_in_thread

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

SITES = """\
database: sqlite:///{folder}/monitor.db
defaults:
  allow_private_networks: true
  concurrency: {{per_host: 4}}
  poll: {{min: 1s, max: 2s, target_delay: 1s}}
  sitemap: {{every: 2s, news_every: 2s}}
alerts:
{alerts}
sites:
  - name: paper
    url: {url}
"""


@contextmanager
def live(room: Newsroom) -> Iterator[Newsroom]:
    """Serve `room` and let its clock go with ours."""
    over = threading.Event()

    def tick() -> None:
        before = time.monotonic()
        while not over.wait(0.25):
            now = time.monotonic()
            room.advance(now - before)
            before = now

    clock = threading.Thread(target=tick, name="clock")
    with serve_in_thread(room):
        clock.start()
        try:
            yield room
        finally:
            over.set()
            clock.join()


class Receiver:
    """A webhook endpoint that takes everything, or what `status` says of each request.

    `events` are those that were taken, in the order of arrival, repeats included; `asked` counts all requests. Every
    signature is verified.
    """

    def __init__(self, status: Callable[[], int] = lambda: 204) -> None:
        self.events: list[dict[str, Any]] = []
        self.asked = 0
        self.forged: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                event = json.loads(body)
                receiver.asked += 1
                try:
                    Webhook(SECRET).verify(body, dict(self.headers))
                    assert self.headers["webhook-id"] == event["id"]
                except Exception as error:
                    receiver.forged.append(repr(error))
                code = status()
                if code < 300:
                    receiver.events.append(event)
                self.send_response(code)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that was killed breaks its connections."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def write_config(
    folder: Path, url: str, *, hook: str | None = None, more: Sequence[str] = (), data: Path | None = None
) -> Path:
    """A sites.yaml of one site with short intervals; alerts go to stdout and, if given, to `hook` and `more` hooks.

    The database is in `data`, or beside it.
    """
    alerts = "  - stdout: {format: jsonl}\n"
    for each in (*([hook] if hook else []), *more):
        alerts += f'  - webhook: {{url: "{each}", secret: "{SECRET}"}}\n'
    path = folder / "sites.yaml"
    path.write_text(SITES.format(folder=data or folder, alerts=alerts, url=url))
    return path


class Monitor:
    """One `monitor` process, in a session of its own: whatever it leaves behind can be found."""

    def __init__(self, config: Path, *args: str, stdout: Any = None, **options: Any) -> None:
        folder = config.parent
        self._err = (folder / "stderr.txt").open("ab")
        self._start = self._err.tell()
        self._out = stdout or (folder / "stdout.jsonl").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "monitor", "run", "-c", str(config), *args],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
            **options,
        )
        self._err_path = folder / "stderr.txt"

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._err.close()
        if not isinstance(self._out, int):
            self._out.close()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to the daemon alone, as the kernel's out-of-memory killer does."""
        self.process.kill()
        self.process.wait()

    def wait(self, seconds: float = 20.0) -> int:
        return self.process.wait(seconds)

    @property
    def stderr(self) -> str:
        """What this process has said on stderr so far."""
        with self._err_path.open("rb") as file:
            file.seek(self._start)
            return file.read().decode()

    def ended(self) -> bool:
        """Whether nothing of the session lives any more."""
        return not self.session()

    def session(self) -> list[int]:
        """Processes of the session that live: the daemon, its workers, what they left behind."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(after[3]) == self.process.pid and after[0] != "Z":
                    found.append(int(entry.name))
        return found


def until(true: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Wait for another process to bring something about; a bound, never a measure."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds:.0f} s for: {what}"
        time.sleep(0.02)


def until_asked(room: Newsroom) -> None:
    """Wait for a request from now on."""
    before = len(room.requests)
    until(lambda: len(room.requests) > before, "the first request of a daemon")


def read(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of a database that another process may be writing; none while it has no tables."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def log_of(database: Path) -> list[dict[str, Any]]:
    """The event log, in order."""
    if not database.exists():
        return []
    return [json.loads(body) for (body,) in read(database, "SELECT body FROM event ORDER BY seq")]


def baselines(database: Path) -> set[str]:
    """Addresses of the sources that had their baseline."""
    return {event["subject"] for event in log_of(database) if event["type"] == "source.baseline"}


def settled(database: Path) -> bool:
    """Whether discovery is done and every source has had its baseline."""
    if not database.exists():
        return False
    rows = read(database, "SELECT count(*), count(baseline_at) FROM source WHERE active")
    return bool(rows and rows[0][0] > 0 and rows[0][0] == rows[0][1])
