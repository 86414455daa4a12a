"""Google's rules for the `news:news` blocks of a sitemap (pure).

Source: developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap. What of a block the sitemap parser
already reports (a second block in a row, over 1,000 blocks) comes from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from monitor.core.dates import parse_date
from monitor.core.lint_dates import ZONE, fits_w3c, in_future
from monitor.core.lint_rules import Findings
from monitor.core.sitemap_rows import local, text_of

NAMESPACE = "http://www.google.com/schemas/sitemap-news/0.9"
MAX_AGE = timedelta(days=2)
"""Google wants articles of the last two days only."""

DEPRECATED = ("access", "genres", "keywords", "stock_tickers", "geo_locations")
_FIELDS = ("publication", "name", "language", "publication_date", "title")
_PARENTHESES = re.compile(r"\([^()]*\)")
# ISO 639-1; of the three-letter codes of ISO 639-2 and 639-3 there are thousands, and only the shape is checked.
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en "
    "eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv "
    "ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne "
    "ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss "
    "st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
_LANGUAGES = frozenset(_CODES.split())
_REGION = re.compile(r"([a-z]{2,3})[-_][a-z0-9_-]{2,12}", re.I | re.ASCII)


class NewsBlocks:
    """Checks one document's blocks, one after the other; `finish` tells what was summed up."""

    def __init__(self, now: datetime, findings: Findings) -> None:
        self._now = now
        self._findings = findings
        self._deprecated: dict[str, list[str]] = {}

    def check(self, block: Any, place: str) -> None:
        """Check the `news:news` element of the row at `place`."""
        found: dict[str, list[str]] = {}
        for element in _elements(block):
            found.setdefault(local(element.tag), []).append(text_of(element))
        add = self._findings.add
        for name in _FIELDS:
            if len(found.get(name, ())) > 1:
                add("news.repeated", place, f"{name} is there {len(found[name])} times")
        for name in DEPRECATED:
            if name in found:
                self._deprecated.setdefault(name, []).append(place)
        if "publication" not in found:
            add("news.publication", place)
        self._name(_first(found, "name"), place, within="publication" in found)
        self._language(_first(found, "language"), place, within="publication" in found)
        self._date(_first(found, "publication_date"), place)
        if not _first(found, "title"):
            add("news.title", place)

    def finish(self) -> None:
        """One finding for each tag that is no longer read, however many rows have it."""
        for name, places in self._deprecated.items():
            self._findings.add("news.deprecated", places[0], f"news:{name}, in {len(places)} of the rows")

    def _name(self, name: str, place: str, *, within: bool) -> None:
        if not name:
            if within:
                self._findings.add("news.name", place)
        elif suffix := _PARENTHESES.search(name[:300]):
            self._findings.add("news.name-suffix", place, suffix[0])

    def _language(self, code: str, place: str, *, within: bool) -> None:
        lower = code.lower()
        if not code:
            if within:
                self._findings.add("news.language", place)
        elif lower in _LANGUAGES or lower in ("zh-cn", "zh-tw") or re.fullmatch("[a-z]{3}", lower, re.ASCII):
            pass
        elif (form := _REGION.fullmatch(code)) and (form[1].lower() in _LANGUAGES or len(form[1]) == 3):
            self._findings.add("news.language-region", place, f"{code!r} has one")
        else:
            self._findings.add("news.language-code", place, f"{code[:40]!r} is none")

    def _date(self, text: str, place: str) -> None:
        add = self._findings.add
        if not text:
            add("news.date", place)
            return
        date = parse_date(text)
        if date.instant is None:
            add("news.date-invalid", place, f"{date.text[:40]!r} is no date ({date.problem})")
            return
        if not fits_w3c(text):
            add("news.date-form", place, f"{date.text[:40]!r} is not of that form")
        timed = date.zone and date.precision in ("minute", "second")
        if in_future(date.instant, self._now, zone=timed):
            add("news.date-future", place, f"{date.text!r}")
        # A date without a time may be that of an article at the end of its day, in the last zone of the world.
        slack = timedelta() if timed else ZONE + timedelta(days=date.precision not in ("minute", "second"))
        if self._now - date.instant > MAX_AGE + slack:
            add("news.old", place, f"published {date.text}")


def _elements(block: Any) -> Iterator[Any]:
    """The block's fields and those of its publication; a hostile block has no more than 100 that count."""
    for number, element in enumerate(block.iterdescendants("*")):
        if number >= 100:
            return
        yield element


def _first(found: dict[str, list[str]], name: str) -> str:
    return next((text for text in found.get(name, ()) if text), "")
