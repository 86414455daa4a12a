"""What the documents of a population have in common: the prior of what is not yet known of one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.core.schedule_state import State

DEFAULT_COUNT = 10.0
"""What is usual counts as so many documents against those that were watched."""
KNOWN_HOURS = 24.0
"""A document counts once its dates, or its polls, cover a day."""
WEIGHT_LEAST, WEIGHT_MOST = 0.2, 4.0
RATE_LEAST, RATE_MOST = 0.1 / 24.0, 100.0 / 24.0
ARRIVALS_MOST = 60.0
"""Beyond so many arrivals a document says no more of the common profile than any other."""


@dataclass(frozen=True, slots=True)
class Population:
    """Common to the documents of one monitor; constant in size.

    `rate` is their mean, in arrivals an hour, `weight` how many arrivals that mean counts for in the rate of one
    document: the shape of a gamma distribution of rates, small where they differ much. `hours` (24 factors of mean 1,
    from the quiet hour on) and `days` (7, from Monday on) are the common course of day and week, `size` the number of
    documents that it was learnt from.
    """

    rate: float = 4.0 / 24.0
    weight: float = 0.4
    hours: tuple[float, ...] = (1.0,) * 24
    days: tuple[float, ...] = (1.06, 1.06, 1.06, 1.06, 1.06, 0.85, 0.85)
    size: int = 0

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON values; `from_json` reads it back equal."""
        return {
            "rate": self.rate,
            "weight": self.weight,
            "hours": list(self.hours),
            "days": list(self.days),
            "size": self.size,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Population:
        """Reads what `to_json` gave. Raises KeyError or TypeError where `data` is none."""
        return cls(data["rate"], data["weight"], tuple(data["hours"]), tuple(data["days"]), data["size"])


USUAL = Population()
"""Feeds of news sites publish about four entries a day, and a little less at weekends."""


def population(states: Iterable[State]) -> Population:
    """What these documents have in common, shrunk towards `USUAL` where they are few.

    The rates are taken for a sample of a gamma distribution (maximum likelihood by the approximation of Minka 2002 to
    log mean minus mean log); the course of the day is averaged from each publisher's own quiet hour on, so that time
    zones do not blur it.
    """
    number = total = logs = 0.0
    evidence = DEFAULT_COUNT
    hours = [DEFAULT_COUNT] * 24
    days = [DEFAULT_COUNT * factor for factor in USUAL.days]
    for state in states:
        exposure = state.exposures[4]
        if exposure < KNOWN_HOURS:
            continue
        count, rate = state.prior[1], state.prior[0]
        rate = (state.counts[4] + count) / (exposure + count / rate)
        number += 1.0
        total += rate
        logs += math.log(rate)
        worth = min(state.counts[4], ARRIVALS_MOST) / ARRIVALS_MOST
        evidence += worth
        for hour, factor in enumerate(state.learnt.hour_profile):
            hours[hour] += worth * factor
        for day, factor in enumerate(state.learnt.day_profile):
            days[day] += worth * factor
    if not number:
        return USUAL
    mean = total / number
    apart = max(1e-3, math.log(mean) - logs / number)
    shape = (3.0 - apart + math.sqrt((apart - 3.0) ** 2 + 24.0 * apart)) / (12.0 * apart)
    trust = number / (number + DEFAULT_COUNT)
    return Population(
        rate=_between(RATE_LEAST, _mix(USUAL.rate, mean, trust), RATE_MOST),
        weight=_between(WEIGHT_LEAST, _mix(USUAL.weight, shape, trust), WEIGHT_MOST),
        hours=_mean_one(hours),
        days=_mean_one(days),
        size=int(number),
    )


def _mix(usual: float, found: float, trust: float) -> float:
    return math.exp((1.0 - trust) * math.log(usual) + trust * math.log(found))


def _between(least: float, value: float, most: float) -> float:
    return max(least, min(most, value))


def _mean_one(values: list[float]) -> tuple[float, ...]:
    mean = sum(values) / len(values)
    return tuple(round(value / mean, 3) for value in values)
