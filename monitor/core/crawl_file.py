"""The URLs in what other crawlers write: plain lists, CSV, JSON Lines, CDXJ (pure).

Which it is, the first lines tell, never the file's name. Lines come one by one, so that a file may be of any size.
Rows that say of themselves that they are no page (a status other than 200, something else than HTML) are passed over.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

from monitor.core.url import absolute

Format = Literal["list", "csv", "jsonl", "cdxj"]

LOOK = 50
"""Lines that are looked at to tell the format, and the column of a CSV."""

FIELD = 1 << 17
"""Characters of a CSV field at most; a longer one is no URL."""

_CDXJ = re.compile(r"\S+ \d{4,17} (\{.*)")
_URL_NAMES = ("address", "url", "loc", "uri", "page", "link", "href", "final url", "page url")
_STATUS_NAMES = ("status code", "status", "http status code", "http status", "statuscode", "status_code")
_TYPE_NAMES = ("content type", "content-type", "mime", "mime type", "content_type")


class NoURLsError(ValueError):
    """The lines hold no URLs that could be found. `str(error)` says in one sentence what was looked for."""


@dataclass(slots=True)
class Tally:
    """What came of the lines: `urls` handed out, `others` that say they are no page, `unreadable` without a URL."""

    form: Format = "list"
    urls: int = 0
    others: int = 0
    unreadable: int = 0


def crawl_urls(lines: Iterable[str], tally: Tally) -> Iterator[str]:
    """The http(s) URLs in the lines of a file, in its order, repeats included. Raises NoURLsError."""
    source = iter(lines)
    head = list(islice(source, LOOK))
    if head:
        head[0] = head[0].removeprefix("\ufeff")
    tally.form = form_of(head)
    every = chain(head, source)
    read = {"list": _plain, "csv": _csv, "jsonl": _json_lines, "cdxj": _cdxj}[tally.form]
    for text in read(every, head, tally):
        url = absolute(text, "") if text else None
        if url is None:
            tally.unreadable += 1
            continue
        tally.urls += 1
        yield url


def form_of(head: Sequence[str]) -> Format:
    """The format of a file that begins with these lines."""
    first = next((line.strip() for line in head if line.strip()), "")
    if first.startswith("{"):
        return "jsonl"
    if _CDXJ.match(first) or first.startswith("!OpenWayback-CDXJ"):
        return "cdxj"
    if first.startswith("#") or _is_url(first):
        # A CSV without a header begins with a URL, too: then something follows it.
        return "csv" if re.match(r"\"?https?://[^\s\"]+\"?[,;\t]\s*\S*[,;\t]", first) else "list"
    return "csv"


def _is_url(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


def _plain(lines: Iterable[str], _head: Sequence[str], _tally: Tally) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            yield text


def _csv(lines: Iterable[str], head: Sequence[str], tally: Tally) -> Iterator[str]:
    """The column of a CSV that holds URLs: by its name, else by what is in it."""
    csv.field_size_limit(FIELD)
    delimiter = max(",;\t|", key=lambda mark: sum(line.count(mark) for line in head))
    sample = list(_rows(iter(head), delimiter, Tally()))
    place, names = _column(sample)
    status, kind = (_named(names, wanted) for wanted in (_STATUS_NAMES, _TYPE_NAMES))
    begun = False
    for row in _rows(lines, delimiter, tally):
        cell = row[place].strip() if place < len(row) else ""
        if not begun and not _is_url(cell):
            continue  # a title above the header, and the header
        begun = True
        if _is_other(_cell(row, status), _cell(row, kind)):
            tally.others += 1
            continue
        yield cell


def _rows(lines: Iterable[str], delimiter: str, tally: Tally) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:  # a field too long, a zero byte
            tally.unreadable += 1
            continue
        if row:
            yield row


def _column(sample: Sequence[Sequence[str]]) -> tuple[int, Sequence[str]]:
    """Which column holds the URLs, and the names above the first of them."""
    counts: dict[int, int] = {}
    names: Sequence[str] = ()
    for row in sample:
        found = [place for place, cell in enumerate(row) if _is_url(cell.strip())]
        if not found and not counts:
            names = [cell.strip().casefold() for cell in row]
        for place in found:
            counts[place] = counts.get(place, 0) + 1
    if not counts:
        told = ", ".join(filter(None, sample[0] if sample else ()))[:200] or "no columns"
        raise NoURLsError(f"no column of it holds http or https addresses ({told})")
    by_name = [place for name in _URL_NAMES for place, found in enumerate(names) if found == name and place in counts]
    return (by_name or [max(counts, key=lambda place: (counts[place], -place))])[0], names


def _named(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((place for name in wanted for place, found in enumerate(names) if found == name), None)


def _cell(row: Sequence[str], place: int | None) -> str:
    return row[place].strip() if place is not None and place < len(row) else ""


def _is_other(status: str, kind: str) -> bool:
    """Whether a row is of something else than a page that can be read."""
    if status.isdecimal() and status != "200":
        return True
    return bool(kind) and "html" not in kind.casefold()


def _json_lines(lines: Iterable[str], _head: Sequence[str], tally: Tally) -> Iterator[str]:
    for line in lines:
        if line.strip():
            yield from _of_object(line, tally)


def _cdxj(lines: Iterable[str], _head: Sequence[str], tally: Tally) -> Iterator[str]:
    """`key timestamp {"url": ..., "status": ..., "mime": ...}` (Open Wayback CDXJ 1.0)."""
    for line in lines:
        form = _CDXJ.match(line)
        if form is not None:
            yield from _of_object(form[1], tally)
        elif line.strip() and not line.startswith("!"):
            yield ""


def _of_object(text: str, tally: Tally) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        yield ""
        return
    fields = {str(name).casefold(): one for name, one in value.items()}
    if _is_other(_text_of(fields, _STATUS_NAMES), _text_of(fields, _TYPE_NAMES)):
        tally.others += 1
        return
    named = (fields.get(name) for name in _URL_NAMES)
    found = (one for one in chain(named, value.values()) if isinstance(one, str) and _is_url(one.strip()))
    yield next(found, "")


def _text_of(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(fields[name]) for name in names if isinstance(fields.get(name), str | int)), "")
