"""Turns of sitemap files by their own rate of change, against asking every file in each pass and a fixed rule.

    python benchmarks/file_turns.py [--files 400] [--days 60] [--every 21600] [--seed 1]

A tree of files whose changes a day are log-normal (a few hot files, an archive behind them), read every `--every`
seconds. Printed: requests a day, the mean time that a change waits for its read, and the longest. The fixed rule is the
one that `monitor` had before: a file that was unchanged eight times in a row is asked in every fourth pass.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable

from monitor.core.file_turns import Watched, after_read, every_passes

Rule = Callable[[Watched, int], int]


def replay(rates: list[float], passes: int, every: float, rule: Rule, seed: int) -> tuple[int, float, float]:
    """Requests, mean and longest wait in seconds, after a sixth of the time. `rates` are in changes a second."""
    chance = random.Random(seed)
    asked, waits = 0, []
    for rate in rates:
        watched, still, at = Watched(), 0, chance.expovariate(rate)
        for turn in range(passes):
            if turn % rule(watched, still):
                continue
            now, changed = turn * every, False
            counts = turn > passes // 6
            asked += counts
            while at <= now:
                changed = True
                waits += [now - at] if counts else []
                at += chance.expovariate(rate)
            still = 0 if changed else still + 1
            watched = after_read(watched, turn, changed=changed)
    return asked, sum(waits) / len(waits), max(waits)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--every", type=float, default=21_600.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    rates = [chance.lognormvariate(-3.5, 2.5) / 86400.0 for _ in range(options.files)]
    passes = int(options.days * 86400 / options.every)
    rules: dict[str, Rule] = {
        "every file in each pass": lambda _watched, _still: 1,
        "every fourth pass after eight still": lambda _watched, still: 4 if still >= 8 else 1,
        "by its own rate": lambda watched, _still: every_passes(watched, options.every),
    }
    floor = None
    for name, rule in rules.items():
        asked, mean, longest = replay(rates, passes, options.every, rule, options.seed)
        floor = floor or asked
        days = options.days * 5 / 6
        print(
            f"{name:<38} {asked / days:8.0f} requests a day ({asked / floor:.2f}), "
            f"a change waits {mean / 3600:5.2f} h, at most {longest / 3600:5.1f} h"
        )


if __name__ == "__main__":
    main()
