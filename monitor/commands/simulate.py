"""`monitor simulate`: the stored history of polls, replayed under other targets and budgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rich.table import Table

from monitor import schedule
from monitor.commands.tables import console, print_json, span
from monitor.config import Config, Poll
from monitor.core import simulate
from monitor.core.simulate import Course, Replay
from monitor.pricing import Aim, aim_of, first_price
from monitor.store import polls as poll_store
from monitor.store import sources as source_store
from monitor.store.database import Database

MOST = 300
"""At most so many feeds are replayed, evenly chosen; the figures are for all."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a line of the table is about; `aim` None: each feed's own."""

    name: str
    aim: Aim | None


@dataclass(frozen=True, slots=True)
class Line:
    """What a setting costs and gets, over all feeds. What is not known is None."""

    setting: str
    polls_per_day: float
    entries: int
    mean_delay_seconds: float | None
    lost: int | None
    overflow_risk: float | None


@dataclass(frozen=True, slots=True)
class _Past:
    """A feed with a history."""

    poll: Poll
    state: schedule.State
    course: Course


def simulate_settings(
    config: Config, url: str, *, site: str | None, since: float, settings: Sequence[Setting], as_json: bool, quiet: bool
) -> None:
    """Print what each setting would have come to since an instant. Raises LookupError where there is no history."""
    now = time.time()
    with Database(url, exclusive=False, must_exist=True) as db:
        pasts = _histories(config, db, site, since, now)
    step = -(-len(pasts) // MOST)
    chosen = pasts[::step]
    say = _progress if sys.stderr.isatty() and not quiet else lambda _text: None
    own = Setting("as configured", None)
    lines = [_sum("as it was", [simulate.as_it_was(one.course, one.state.polls) for one in chosen], step)]
    lines += [
        _sum(setting.name, list(_replayed(setting, pasts, chosen, now, say)), step) for setting in (own, *settings)
    ]
    say("")
    days = max(one.course.end - one.course.counted for one in chosen) / 86400.0
    if as_json:
        print_json(
            {"feeds": len(pasts), "replayed": len(chosen), "days": round(days, 2), "settings": list(map(asdict, lines))}
        )
        return
    _print(lines, len(pasts), len(chosen), days)


def _histories(config: Config, db: Database, name: str | None, since: float, now: float) -> list[_Past]:
    sites = {site.name: site for site in config.sites}
    if name is not None and name not in sites:
        raise LookupError(f"no site is named {name!r}; known are {', '.join(sorted(sites))}")
    found = []
    for row in db.call(source_store.all_sources):
        if row.kind != "feed" or row.schedule is None or row.site not in sites or name not in (None, row.site):
            continue
        course = simulate.course_of(db.call(lambda c, row=row: poll_store.of_source(c, row.id, since)), now)  # type: ignore[misc]
        if course is not None:
            settings = sites[row.site].source_settings(row.known_as)
            found.append(_Past(settings.poll, schedule.loads(row.schedule), course))
    if not found:
        raise LookupError("there is no history of polls over a day long yet; let `monitor run` gather one")
    return found


def _replayed(
    setting: Setting, pasts: Sequence[_Past], chosen: Sequence[_Past], now: float, say: Callable[[str], None]
) -> Iterator[Replay]:
    moment = datetime.fromtimestamp(now, UTC)
    groups: dict[Aim, list[schedule.State]] = {}
    for one in pasts:
        aim = setting.aim or aim_of(one.poll)
        groups.setdefault(aim, []).append(schedule.with_policy(one.state, _policy(one, first_price(aim))))
    prices = {
        (delay, budget): schedule.price_for(states, moment, target_delay=delay, requests_per_day=budget)
        for (delay, budget), states in groups.items()
    }
    common = schedule.population([one.state for one in pasts])
    for number, one in enumerate(chosen, 1):
        say(f"{setting.name}: {number} of {len(chosen)} feeds")
        learnt = one.state.learnt
        hints = schedule.Hints(
            max_age=one.state.max_age,
            ttl=learnt.ttl,
            update_period=learnt.update_period,
            skip_hours=frozenset(learnt.skip_hours),
            skip_days=frozenset(learnt.skip_days),
            hub=learnt.hub,
        )
        price = prices[setting.aim or aim_of(one.poll)]
        yield simulate.replay(one.course, _policy(one, price), hints, common)


def _policy(one: _Past, price: float) -> schedule.Policy:
    return schedule.Policy(min_interval=one.poll.min, max_interval=one.poll.max, price=price)


def _sum(name: str, replays: Sequence[Replay], step: int) -> Line:
    seen = sum(one.seen for one in replays)
    return Line(
        setting=name,
        polls_per_day=round(step * sum(one.polls / one.days for one in replays), 1),
        entries=step * seen,
        mean_delay_seconds=round(sum(one.delay for one in replays) / seen, 1) if seen else None,
        lost=None if any(one.lost is None for one in replays) else step * sum(one.lost or 0 for one in replays),
        overflow_risk=None if any(one.risk is None for one in replays) else max(one.risk or 0.0 for one in replays),
    )


def _print(lines: Sequence[Line], feeds: int, replayed: int, days: float) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("SETTING")
    for name in ("POLLS/DAY", "ENTRIES", "MEAN DELAY", "LOST", "RISK"):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(
            line.setting,
            f"{line.polls_per_day:,.0f}",
            f"{line.entries:,}",
            span(line.mean_delay_seconds) if line.mean_delay_seconds is not None else "-",
            "-" if line.lost is None else f"{line.lost:,}",
            "-" if line.overflow_risk is None else f"{line.overflow_risk:.2g}",
        )
    out = console()
    out.print(table)
    sample = f", {replayed} of them replayed" if replayed < feeds else ""
    out.print(f"{feeds} feeds{sample}, {days:.1f} days after a time of learning. RISK is the greatest chance of a loss")
    out.print("to the window that a poll was decided with.")


def _progress(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()
