"""Replays every series of the corpus through the whole monitor, all versions of it, and prints a line of figures each.

    python -m benchmarks.replay [--most N] [NAME ...]

`--most` bounds the versions of each series. Exits 1 where anything was told that was not so, or not told that was.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.scenarios.account import Account
from tests.scenarios.test_series import FEEDS, SITEMAPS, replay_alaska, replay_feed, replay_sitemap, replay_zhaoqi

SHOWN = 5


def replays() -> dict[str, Callable[[Path, int | None], Account]]:
    """The name of every replay, and how to run it."""
    feeds = [*(f"feed-{name}" for name in FEEDS.split()), "zhaoqi-rss2", "zhaoqi-atom"]
    return {
        **{name: partial(replay_feed, name) for name in feeds},
        **{name: partial(replay_sitemap, name) for name in SITEMAPS.split()},
        "zhaoqi": replay_zhaoqi,
        "alaska-tree": replay_alaska,
    }


def main() -> int:
    """Run what was asked for; returns the exit code."""
    logging.getLogger("monitor").setLevel(logging.CRITICAL)
    known = replays()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--most", type=int, help="replay at most so many versions of each series")
    options.add_argument("names", nargs="*", metavar="NAME", help="a series (default: all)")
    chosen = options.parse_args()
    if unknown := set(chosen.names) - set(known):
        options.error(f"no such series: {', '.join(sorted(unknown))}")
    faults = 0
    for name in chosen.names or known:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            account = known[name](Path(folder), chosen.most)
        faults += len(account.faults)
        print(f"{name}: {account}, {len(account.faults)} faults, {time.perf_counter() - began:.1f} s", flush=True)
        for fault in account.faults[:SHOWN]:
            print(f"    {fault}", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
