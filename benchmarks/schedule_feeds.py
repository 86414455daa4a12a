"""The feeds that schedules are compared on: a simulated population, recorded publication times, captured series.

The population, a sixth of each kind, windows of 10, 15, 20, 25, 30, 50 or 100 entries, entries by a Poisson process:
steady; diurnal (two humps a working day, nights at 2 to 30 %, weekends at 20 to 100 %, any time zone); bursts (60 % of
the entries in bursts of 4 to 12 on average, within 1 to 3 hours); half-hour (diurnal, all within 20 s after :00 and
:30); regime (diurnal, five times or a fifth of the rate from some day on); dormant (0.04 a day, every second one awake
for four days at 2 to 6 a day). Rates are log-normal around four a day with the sigma given. So made, the sketch stands
at 1.17 times the delay of the true intensity at 12 polls a day, where the sketch of the aims stood at 1.15. A harsh
population has nights at 2 to 10 % and 80 % of the burst feeds' entries in bursts; there the sketch stands at 1.25.
"""

from __future__ import annotations

import bisect
import csv
import gzip
import io
import itertools
import json
import math
import random
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from lxml import etree

DAY = 86400.0
START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()  # a Monday
HISTORY, DAYS, WARM_UP = 35, 28, 7
BIN = 900.0
KINDS = ("steady", "diurnal", "bursts", "half-hour", "regime", "dormant")
SHORTEST, LONGEST = 60.0, DAY


@dataclass
class Feed:
    """One simulated or recorded feed: when entries came, how many it shows, and its true intensity by quarter hour."""

    kind: str
    times: list[float]
    window: int
    begin: float = START
    days: float = DAYS
    warm_up: float = WARM_UP
    intensity: list[float] = field(default_factory=list)
    dates: list[datetime] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dates = [datetime.fromtimestamp(at, UTC) for at in self.times]
        self.root = [0.0, *itertools.accumulate(math.sqrt(rate) * BIN for rate in self.intensity)]
        self.mass = [0.0, *itertools.accumulate(rate * BIN for rate in self.intensity)]

    @property
    def end(self) -> float:
        return self.begin + self.days * DAY


def poisson(random_: random.Random, mean: float) -> int:
    """A Poisson variate (inversion; means here are small)."""
    if mean > 30:
        return max(0, round(random_.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, random_.random()
    while product > limit:
        count += 1
        product *= random_.random()
    return count


def make(kind: str, random_: random.Random, sigma: float, *, harsh: bool = False) -> Feed:
    """One feed of a kind, with a history that its window may still show at the first poll."""
    night_most, share = (0.1, 0.8) if harsh else (0.3, 0.6)
    rate = 4.0 * math.exp(random_.gauss(0.0, sigma)) / DAY
    window = random_.choice((10, 15, 20, 25, 30, 50, 100))
    bins = int((HISTORY + DAYS) * DAY / BIN)
    begin = START - HISTORY * DAY
    course = [1.0] * bins
    if kind in ("diurnal", "half-hour", "regime"):
        zone, night, weekend = random_.randrange(24), random_.uniform(0.02, night_most), random_.uniform(0.2, 1.0)
        for index in range(bins):
            local = (begin + index * BIN) / 3600.0 + zone
            hour, day = local % 24.0, int((local / 24.0 + 3) % 7)
            day_light = math.exp(-(((hour - 9.5) / 2.5) ** 2) / 2) + math.exp(-(((hour - 15.0) / 3.5) ** 2) / 2)
            course[index] = (night + day_light) * (weekend if day >= 5 else 1.0)
    if kind == "regime":
        turn = int((HISTORY + random_.uniform(WARM_UP + 1, DAYS - 3)) * DAY / BIN)
        factor = random_.choice((0.2, 5.0))
        course = [value * (factor if index >= turn else 1.0) for index, value in enumerate(course)]
    if kind == "dormant":
        rate = 0.04 / DAY
        if random_.random() < 0.5:
            wake = int((HISTORY + random_.uniform(WARM_UP, DAYS - 5)) * DAY / BIN)
            for index in range(wake, min(bins, wake + int(4 * DAY / BIN))):
                course[index] = random_.uniform(50.0, 150.0)
    else:
        mean = sum(course) / bins
        course = [value / mean for value in course]
    if kind == "bursts":
        course = [1.0 - share] * bins
        size = random_.uniform(4.0, 12.0)
        expected = share * rate * BIN / size
        for index in range(bins):
            if random_.random() < expected:
                length = random_.randrange(4, 13)
                for inside in range(index, min(bins, index + length)):
                    course[inside] += size / (length * BIN) / rate
    intensity = [rate * value for value in course]
    times: list[float] = []
    for index, value in enumerate(intensity):
        at = begin + index * BIN
        if kind == "half-hour":
            if index % 2 == 0:
                number = poisson(random_, BIN * (value + intensity[min(index + 1, bins - 1)]))
                times.extend(at + random_.uniform(0.0, 20.0) for _ in range(number))
        else:
            times.extend(at + random_.random() * BIN for _ in range(poisson(random_, value * BIN)))
    times.sort()
    first = int(HISTORY * DAY / BIN)
    return Feed(kind, times, window, intensity=intensity[first:])


def read_trace(path: Path) -> Iterator[Feed]:
    """The sources of one trace, `source,published_utc,url_hash`: the last 28 days of each, its history before."""
    opener = gzip.open if path.suffix == ".gz" else open
    times: dict[str, set[tuple[float, str]]] = {}
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.fromisoformat(row["published_utc"].replace("Z", "+00:00")).timestamp()
            times.setdefault(row["source"], set()).add((at, row["url_hash"]))
    random_ = random.Random(path.name)
    for source in sorted(times):
        all_times = sorted(at for at, _ in times[source])
        begin = max(all_times[0] + DAY, all_times[-1] - DAYS * DAY)
        if all_times[-1] - begin >= (DAYS - 1) * DAY and len(all_times) - bisect.bisect(all_times, begin) >= 20:
            yield Feed(path.name.split(".")[0], all_times, random_.choice((20, 25, 50)), begin, DAYS)


def read_series(path: Path) -> Feed | None:
    """The last 28 days of a captured feed: each entry at its own date where the captures bear that out, else at the
    first capture that shows it; the window is what a capture shows. None where fewer than 20 entries came, or where the
    captures are too far apart to tell: more than 2 % of them share no entry with the one before."""
    with tarfile.open(path) as archive:
        versions = sorted(
            (_captured(member.name), file.read())
            for member in archive
            if re.search(r"\d{8}T\d{6}Z", member.name) and (file := archive.extractfile(member)) is not None
        )
    last = versions[-1][0]
    versions = [version for version in versions if version[0] > last - (DAYS + 1) * DAY]
    known: dict[str, float] = {}
    sizes: list[int] = []
    before, torn = -math.inf, 0
    for at, data in versions:
        entries = list(_entries(data))
        sizes.append(len(entries))
        torn += bool(known) and not any(key in known for key, _ in entries)
        for key, date in entries:
            if key not in known:
                known[key] = date if date is not None and (before - DAY < date or before < 0) and date <= at else at
        before = at
    times = sorted(known.values())
    begin = versions[0][0]
    days = (last - begin) / DAY
    if days < 1.5 or torn > 0.02 * len(versions) or len(times) - bisect.bisect(times, begin) < 20:
        return None
    return Feed("series", times, max(1, sorted(sizes)[len(sizes) // 2]), begin, days, min(float(WARM_UP), days / 4.0))


def _captured(name: str) -> float:
    text = re.findall(r"\d{8}T\d{6}Z", name)[-1]
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _entries(data: bytes) -> Iterator[tuple[str, float | None]]:
    """Id and date of each entry."""
    if data.lstrip()[:1] == b"{":
        for item in json.loads(data).get("items", []):
            yield str(item.get("id") or item.get("url")), _date(item.get("date_published"))
        return
    try:
        tree = etree.parse(io.BytesIO(data), etree.XMLParser(recover=True, resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return
    for item in tree.iter("{*}item", "{*}entry"):
        found = {etree.QName(child).localname: child for child in item if isinstance(child.tag, str)}
        link = found["link"].get("href") or found["link"].text if "link" in found else None
        key = next((found[name].text for name in ("guid", "id") if name in found and found[name].text), link)
        date = next((found[name].text for name in ("pubDate", "published", "date", "updated") if name in found), None)
        if key:
            yield key, _date(date)


def _date(text: str | None) -> float | None:
    if not text:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            at = read(text.strip())
        except ValueError:
            continue
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return None
