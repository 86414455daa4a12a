"""How far the lastmods of a site's sitemap files are worth believing, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from monitor.core.dates import parse_date
from monitor.core.listing_pack import unpack_lines
from monitor.core.reconcile import when
from monitor.core.trust import REDEEM, STRIKES, Spread, score
from monitor.report.sitemaps import count_fresh
from monitor.store import listings as listing_store

CHECKED = 2000
"""Different lastmods of a file that are looked at for being dates at all, evenly chosen."""


@dataclass(frozen=True, slots=True)
class TrustReport:
    """One sitemap file. `verdict` is ``unknown`` until its lastmods have spoken; shares are parts of the dated rows.

    `confirmed` and `denied` count moved lastmods of which the page itself said that it had changed, or had not;
    `strikes` are reads in a row with signs of a generation time, `clean` reads with honest moves since.
    """

    site: str
    url: str
    kind: str
    verdict: str
    score: float | None
    urls: int
    dated: int
    invalid: int
    same_share: float | None
    fresh_share: float | None
    confirmed: int
    denied: int
    strikes: int
    clean: int
    read: str | None

    @property
    def evidence(self) -> str:
        """The evidence in words."""
        if not self.dated:
            return "no row has a lastmod"
        parts = []
        if self.strikes:
            parts.append(f"{self.strikes} of {STRIKES} reads in a row moved most of them at once")
        if self.confirmed or self.denied:
            asked = self.confirmed + self.denied
            parts.append(f"of {asked} sampled pages whose lastmod moved {self.confirmed} had changed")
        if self.same_share is not None and self.same_share >= 0.5 and self.dated > 1:
            parts.append(f"{self.same_share:.0%} have one and the same value")
        if self.fresh_share is not None and self.fresh_share >= 0.9 and self.dated > 1:
            parts.append(f"{self.fresh_share:.0%} claim to be of the last day")
        if self.invalid:
            parts.append(f"{self.invalid:,} are no date, or lie in the future")
        if self.verdict == "untrusted" and self.clean:
            parts.append(f"{self.clean} of {REDEEM} clean reads to be trusted again")
        return "; ".join(parts) or "none has moved in a way that could be held against its page"


def report(connection: Connection, sites: Sequence[tuple[int, str]], now: float) -> list[TrustReport]:
    """The sitemap files of these (id, name) sites that list pages."""
    return [
        _file(connection, name, row, now)
        for site_id, name in sites
        for row in listing_store.documents_of_site(connection, site_id)
        if row.kind != "index" and not row.unlisted and row.read_at is not None
    ]


def spread_of(dates: Sequence[str], now: datetime) -> Spread:
    """How these lastmods lie; an empty text is a row without one."""
    counts = Counter(filter(None, dates))
    step = -(-len(counts) // CHECKED) or 1
    chosen = list(counts.items())[::step]
    bad = sum(count for text, count in chosen if (at := parse_date(text).instant) is None or at.timestamp() > _end(now))
    looked = sum(count for _text, count in chosen)
    dated = counts.total()
    invalid = round(bad * dated / looked) if looked else 0
    return Spread(len(dates), dated, invalid, max(counts.values(), default=0), count_fresh(dates, now))


def _end(now: datetime) -> float:
    """A lastmod later than this lies in the future: a day may end elsewhere, and clocks differ."""
    return now.timestamp() + 86400.0


def _file(connection: Connection, site: str, row: Any, now: float) -> TrustReport:
    lines = unpack_lines(listing_store.text_of(connection, row.id))
    spread = spread_of([line.split("\t", 2)[1] for line in lines], datetime.fromtimestamp(now, UTC))
    memory: dict[str, Any] = (json.loads(row.state) if row.state else {}).get("trust") or {}
    return TrustReport(
        site=site,
        url=row.url,
        kind=row.kind,
        verdict=memory.get("verdict", "unknown"),
        score=score(memory, spread),
        urls=spread.rows,
        dated=spread.dated,
        invalid=spread.invalid,
        same_share=round(spread.top / spread.dated, 4) if spread.dated else None,
        fresh_share=round(spread.fresh / spread.dated, 4) if spread.dated else None,
        confirmed=int(memory.get("confirmed", 0)),
        denied=int(memory.get("denied", 0)),
        strikes=int(memory.get("strikes", 0)),
        clean=int(memory.get("clean", 0)),
        read=when(row.read_at),
    )
