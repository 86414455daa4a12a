"""Resident memory of the real daemon with thousands of feeds, after two rounds.

    python benchmarks/memory.py [--feeds 3000] [--hosts 600] [--rounds 2]

Runs `monitor run` as a process on a sites.yaml of so many feeds, served on loopback as in `polls.py`: the first round
reads and parses every feed, the later ones are answered 304. Prints VmRSS and VmHWM (the peak) of the daemon, and the
sum of both over it and its children (parse workers, their fork server); pages they share count in each, so PSS, which
divides them, is printed too. The aim is under 250 MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from polls import Answered, addresses, serve


def status(pid: int) -> dict[str, float]:
    """VmRSS, VmHWM and PSS of a process in MiB."""
    found = {}
    for name in ("status", "smaps_rollup"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
                field, _, value = line.partition(":")
                if field in ("VmRSS", "VmHWM", "Pss"):
                    found[field] = int(value.split()[0]) / 1024
    return found


def session(leader: int) -> list[int]:
    """Processes of a session, the leader first."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(entry.name))
    return sorted(found, key=lambda pid: pid != leader)


def report(pid: int, what: str) -> None:
    """Print the figures of now."""
    rows = [status(each) for each in session(pid)]
    rows = [row for row in rows if row]
    print(
        f"{what:<22} daemon RSS {rows[0]['VmRSS']:6.1f}  peak {rows[0]['VmHWM']:6.1f}   "
        f"with {len(rows) - 1} children RSS {sum(r['VmRSS'] for r in rows):6.1f}  peak "
        f"{sum(r['VmHWM'] for r in rows):6.1f}  PSS {sum(r.get('Pss', 0.0) for r in rows):6.1f} MiB",
        flush=True,
    )


def write_config(folder: Path, urls: list[str]) -> Path:
    """A sites.yaml with a site for each host."""
    hosts: dict[str, list[str]] = {}
    for url in urls:
        hosts.setdefault(url.rpartition("/")[0] + "/", []).append(url)
    lines = [
        f"database: sqlite:///{folder}/monitor.db",
        "defaults: {allow_private_networks: true, poll: {min: 30s, max: 30s}}",
        "sites:",
    ]
    for number, (home, feeds) in enumerate(hosts.items()):
        lines.append(f"  - {{name: site-{number}, url: '{home}', sitemaps: [], feeds: {feeds}}}")
    path = folder / "sites.yaml"
    path.write_text("\n".join(lines))
    return path


def count(database: Path, condition: str) -> int:
    """How many sources are so; 0 while there is no table."""
    with contextlib.suppress(sqlite3.OperationalError):
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            return int(connection.execute(f"SELECT count(*) FROM source WHERE {condition}").fetchone()[0])
        finally:
            connection.close()
    return 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feeds", type=int, default=3000)
    parser.add_argument("--hosts", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    ready, tells = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    answered: Answered = context.Value("q", 0, lock=False)
    server = context.Process(target=serve, args=(tells, answered), daemon=True)
    server.start()
    urls = addresses(ready.recv(), options.feeds, options.hosts)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_config(folder, urls)
        daemon = subprocess.Popen(
            [sys.executable, "-m", "monitor", "run", "-c", str(config)],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while count(folder / "monitor.db", "baseline_at IS NOT NULL") < options.feeds:
                assert daemon.poll() is None, "the daemon ended"
                time.sleep(0.5)
            report(daemon.pid, "after the first round")
            for number in range(2, options.rounds + 1):
                target = (number - 1) * options.feeds
                while answered.value < target:
                    assert daemon.poll() is None, "the daemon ended"
                    time.sleep(0.5)
                report(daemon.pid, f"after round {number}")
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(30)
            server.kill()
    print(f"({options.feeds} feeds of 20 entries on {options.hosts} hosts)")


if __name__ == "__main__":
    main()
