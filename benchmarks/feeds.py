"""Feeds at scale, against lemon24's reader and feedparser, in one run.

    python benchmarks/feeds.py [--feeds 3000] [--changed 600] [--daemon 10000] [--rows 304,changed,parse,daemon]
                               [--workers 20] [--peer PYTHON]

1. 304: feeds, each on a loopback host of its own, all answered 304, state stored: one pass of the engine (`run --once
   --all`) against `update_feeds` of reader. 2. changed: the same with one new entry of 50 in each of `--changed` feeds.
3. parse: a changed feed, one new of 50 entries, against feedparser on the whole with its default options.
4. daemon: `monitor run` with `--daemon` feeds that are not due: resident memory, share of a core.

reader is installed into an environment of its own, or `--peer` names the interpreter of one that has it. Both sides
work through the same feeds of the same server in processes of their own; reader uses as many threads as it is given
(`--workers`; 20 was the best of 10, 20, 40 and 100 on two cores). Times are of the pass alone, feeds known and read
once before. CPU of a poll is user and system time of the engine's process; parse workers count in the passes' time.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).parent))

import feedparser
from memory import count, session, status, write_config
from polls import addresses, configuration, cpu

from monitor.commands.daemon import fetch_policy
from monitor.core.feed import parse_feed, reread_feed
from monitor.engine import Engine
from monitor.fetch import Fetcher
from monitor.parse_pool import ParsePool
from monitor.store.database import Database

WINDOW = 50
IDLE_SECONDS = 20.0
TEXT = "<p>" + "Some <a href='/x'>words</a> of a story, with <b>markup</b>. " * 20 + "</p>"
PEER = """
import json, sys, time
from reader import make_reader
path, workers, urls = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
reader = make_reader(path)
for url in urls:
    reader.add_feed(url, exist_ok=True)
began, used = time.perf_counter(), time.process_time()
bad = [r for r in reader.update_feeds_iter(scheduled=False, workers=workers) if isinstance(r.value, Exception)]
took, used = time.perf_counter() - began, time.process_time() - used
print(json.dumps({"seconds": took, "cpu": used, "bad": len(bad), "entries": reader.get_entry_counts().total}))
"""


class Shared(Protocol):
    """A number that two processes share."""

    value: int


def feed_body(path: str, version: int) -> bytes:
    """The feed at `path`: entries `version` to `version` + 49, newest first."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{path}-{n}</guid><title>Headline number {n}</title>"
        f"<link>http://127.0.0.1/news{path}/{n}</link><dc:creator>A. Writer</dc:creator><category>news</category>"
        f"<pubDate>{_date(n)}</pubDate><description><![CDATA[{TEXT[:300]}]]></description>"
        f"<content:encoded><![CDATA[{TEXT}]]></content:encoded></item>"
        for n in reversed(range(version, version + WINDOW))
    )
    return (
        "<?xml version='1.0' encoding='UTF-8'?><rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/' "
        "xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel>"
        f"<title>{path}</title><link>http://127.0.0.1/</link>{items}</channel></rss>"
    ).encode()


def _date(number: int) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(1_750_000_000 + 3600 * number))


class Server(asyncio.Protocol):
    """Just enough HTTP/1.1: 304 where the version in If-None-Match is the one now served, else the feed."""

    version: Shared

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            etag = b'"v%d"' % self.version.value
            if etag in head:
                self._transport.write(b"HTTP/1.1 304 Not Modified\r\nETag: " + etag + b"\r\n\r\n")
                continue
            body = _body(head.split(b" ", 2)[1], self.version.value)
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nETag: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (etag, len(body), body)
            )


_made: dict[int, bytes] = {}


def _body(path: bytes, version: int) -> bytes:
    if version not in _made:
        _made[version] = feed_body("%PATH%", version)
    return _made[version].replace(b"%PATH%", path)


def serve(ready: Connection, version: Shared) -> None:
    """Serve on all loopback addresses until killed; tells its port."""
    Server.version = version

    async def live() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "0.0.0.0", 0, backlog=4096)
        ready.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(live())


async def _pass(urls: list[str], database: str) -> dict[str, float]:
    config = configuration(urls, database)
    with Database(config.database) as db, ParsePool() as pool:
        async with Fetcher(fetch_policy(config)) as fetcher:
            engine = Engine(config, db, fetcher, pool, clock=time.time)
            await engine.use(config)
            await pool.feed(feed_body("/warm", 1), urls[0], None)  # workers are up, as in a daemon
            began, used = time.perf_counter(), cpu()
            done = await engine.once(everything=True)
            took, spent = time.perf_counter() - began, cpu() - used
    assert not done.problems, done.problems[:3]
    return {"seconds": took, "cpu": spent, "polled": done.polled, "modified": done.modified}


def _in_process(result: Connection, urls: list[str], database: str) -> None:
    result.send(asyncio.run(_pass(urls, database)))


def ours(urls: list[str], folder: Path) -> dict[str, float]:
    """One pass of the engine over all feeds, in a process of its own."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_in_process, args=(there, urls, f"sqlite:///{folder}/ours.db"))
    process.start()
    there.close()
    try:
        return dict(here.recv())
    finally:
        process.join()


def theirs(urls: list[str], folder: Path, peer: str, workers: int) -> dict[str, float]:
    """One `update_feeds` of reader over all feeds, in a process of its own."""
    command = [peer, "-W", "ignore", "-c", PEER, str(folder / "reader.db"), str(workers)]
    done = subprocess.run(command, input=json.dumps(urls), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert not result["bad"], f"reader failed at {result['bad']} feeds"
    return result


def install_peer(folder: Path) -> str:
    """An environment with lemon24's reader; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder / "peer"], check=True)
    python = folder / "peer" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "reader", "sgmllib3k"], check=True)
    return str(python)


def compare(what: str, feeds: int, mine: dict[str, float], other: dict[str, float], aim: float) -> None:
    """Print one row: polls a second of both, their ratio."""
    a, b = feeds / mine["seconds"], feeds / other["seconds"]
    print(
        f"{what:<34} ours {a:6.0f}/s, {1000 * mine['cpu'] / feeds:5.2f} ms CPU a poll; "
        f"reader {b:6.0f}/s, {1000 * other['cpu'] / feeds:5.2f} ms; {a / b:5.1f} times its polls a second (aim {aim:g})",  # noqa: E501
        flush=True,
    )


def wire_rows(options: argparse.Namespace, rows: set[str], folder: Path, urls: list[str], version: Shared) -> None:
    """Rows 1 and 2."""
    peer = options.peer or install_peer(folder)
    if "304" in rows:
        ours(urls, folder)
        theirs(urls, folder, peer, options.workers)
        mine, other = ours(urls, folder), theirs(urls, folder, peer, options.workers)
        assert mine["modified"] == 0
        compare(f"{len(urls)} feeds, all 304", len(urls), mine, other, 2.5)
    if "changed" in rows:
        part, place = urls[: options.changed], folder / "changed"
        place.mkdir()
        ours(part, place)
        before = theirs(part, place, peer, options.workers)
        version.value += 1
        mine, other = ours(part, place), theirs(part, place, peer, options.workers)
        assert mine["modified"] == len(part)
        assert other["entries"] == before["entries"] + len(part)
        compare(f"{len(part)} feeds, 1 new entry of {WINDOW}", len(part), mine, other, 8.0)


def parse_row() -> None:
    """Row 3."""
    url, before, after = "http://127.0.0.1/f.xml", feed_body("/f", 1), feed_body("/f", 2)
    marks = frozenset(reread_feed(before, url, None, frozenset(), "bench")[1])
    assert len(reread_feed(after, url, None, marks, "bench")[0].entries) == 1
    whole = _cost(lambda: feedparser.parse(io.BytesIO(after)), 10)
    full = _cost(lambda: parse_feed(after, url), 20)
    part = _cost(lambda: reread_feed(after, url, None, marks, "bench"), 100)
    print(
        f"{'parse, 1 new entry of 50':<34} ours {part:5.2f} ms, our full read {full:5.2f} ms, feedparser {whole:5.2f} ms; "  # noqa: E501
        f"1/{whole / part:.0f} of its time (aim 1/15)",
        flush=True,
    )


def _cost(work: Callable[[], Any], times: int) -> float:
    work()
    began = time.process_time()
    for _ in range(times):
        work()
    return 1000 * (time.process_time() - began) / times


def daemon_row(urls: list[str], folder: Path) -> None:
    """Row 4."""
    config = write_config(folder, urls)
    config.write_text(config.read_text().replace("min: 30s, max: 30s", "min: 1d, max: 1d"))
    daemon = subprocess.Popen(
        [sys.executable, "-m", "monitor", "run", "-c", str(config)], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while count(folder / "monitor.db", "baseline_at IS NOT NULL") < len(urls):
            assert daemon.poll() is None, "the daemon ended"
            time.sleep(1)
        time.sleep(5)
        before = _seconds(daemon.pid)
        time.sleep(IDLE_SECONDS)
        share = (_seconds(daemon.pid) - before) / IDLE_SECONDS
        rows = [row for pid in session(daemon.pid) if (row := status(pid))]
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)
    print(
        f"{f'daemon, {len(urls)} feeds, idle':<34} RSS {rows[0]['VmRSS']:.0f} MiB, peak {rows[0]['VmHWM']:.0f}, "
        f"with {len(rows) - 1} children PSS {sum(row.get('Pss', 0.0) for row in rows):.0f} (aim under 400); "
        f"{100 * share:.1f} % of a core (aim under 2)",
        flush=True,
    )


def _seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feeds", type=int, default=3000)
    parser.add_argument("--changed", type=int, default=600)
    parser.add_argument("--daemon", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--rows", default="304,changed,parse,daemon")
    parser.add_argument("--peer", help="an interpreter that has reader installed")
    options = parser.parse_args()
    rows = set(options.rows.split(","))
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    ready, tells = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    version: Shared = context.Value("q", 1, lock=False)
    server = context.Process(target=serve, args=(tells, version), daemon=True)
    server.start()
    port = ready.recv()
    try:
        with tempfile.TemporaryDirectory() as name:
            if rows & {"304", "changed"}:
                wire_rows(options, rows, Path(name), addresses(port, options.feeds, options.feeds), version)
            if "parse" in rows:
                parse_row()
            if "daemon" in rows:
                daemon_row(addresses(port, options.daemon, options.daemon), Path(name))
    finally:
        server.kill()


if __name__ == "__main__":
    main()
