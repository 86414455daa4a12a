"""Events as lines for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from monitor.core.alert_rules import facts
from monitor.core.template import fill

MESSAGE = "{mark} {title}\n{url}\n{site} · {time}"
"""Our template of a message. No words of any language, so that it reads the same in all."""

DIGEST_LINES = 10
LONGEST_TITLE = 300

_SIGNS = {"url.new": "+", "url.changed": "~", "url.missing": "−", "url.returned": "↺"}
_MENTION = re.compile(r"(?<=@)(?=\w)|(?<=<)(?=[@!#])")

_MARKS = {"url.new": "+ new", "url.changed": "~ changed", "url.missing": "- missing", "url.returned": "+ returned"}


def readable(envelope: dict[str, Any]) -> str:
    """One line for people: time, what, which site, the headline, the address, and what matters of the rest.

    Titles come from strangers: control characters, which could steer a terminal, are taken out.
    """
    data = envelope["data"]
    entry = data.get("entry") or {}
    title = entry.get("title") or data.get("title")
    parts = [envelope["time"][11:19], f"{_MARKS.get(envelope['type'], '! ' + envelope['type']):<10}", data["site"]]
    if title:
        parts.append(title)
    parts.append(data.get("url") or envelope["subject"])
    if detail := _detail(envelope["type"], data):
        parts.append(f"({detail})")
    return "".join(c if c.isprintable() else " " for c in "  ".join(parts))


def message(envelope: dict[str, Any], template: str | None = None) -> str:
    """The text of a message about one event.

    Titles and names come from strangers: they are made harmless, see `_tame`.
    """
    data = envelope["data"]
    found = facts(envelope["subject"], data)
    kind = envelope["type"]
    sign = _SIGNS.get(kind)
    values = {
        "mark": sign or "!",
        "type": kind,
        "title": found.title or ("" if template or sign else kind),
        "url": found.url,
        "site": data["site"],
        "time": envelope["time"][:16].replace("T", " ") + "Z",
        "section": next(iter(found.sections[1:]), found.sections[0]),
        "authors": ", ".join(found.authors),
        "summary": str((data.get("entry") or {}).get("summary") or ""),
        "source": str((data.get("found_in") or {}).get("url") or ""),
        "detail": _detail(kind, data),
    }
    text = fill(template or MESSAGE, {name: _tame(value) for name, value in values.items()})
    if template is None and sign is None and values["detail"]:
        text += "\n" + _tame(values["detail"])
    return "\n".join(line.rstrip() for line in text.split("\n"))


def digest(envelopes: Sequence[dict[str, Any]]) -> str:
    """The text of one message about many events: how many of each sort, and the first of them."""
    counts = Counter(_SIGNS.get(each["type"], f"! {each['type']}") for each in envelopes)
    lines = ["  ".join(f"{sign} {count}" for sign, count in counts.most_common())]
    for envelope in envelopes[:DIGEST_LINES]:
        found = facts(envelope["subject"], envelope["data"])
        sign = _SIGNS.get(envelope["type"], f"! {envelope['type']}")
        title = f"{_tame(found.title)}  " if found.title else ""
        lines.append(f"{sign} {title}{_tame(found.url)}")
    if len(envelopes) > DIGEST_LINES:
        lines.append(f"… +{len(envelopes) - DIGEST_LINES}")
    return "\n".join(lines)


def _tame(text: str) -> str:
    """A stranger's text in a message: on one line, not endless, and calling nobody.

    ``@everyone`` and ``<!channel>`` would make a chat ring for all: a space of no width takes that from them.
    """
    plain = "".join(c if c.isprintable() else " " for c in text[: LONGEST_TITLE + 1])
    if len(plain) > LONGEST_TITLE:
        plain = plain[:LONGEST_TITLE] + "…"
    return _MENTION.sub("\u200b", plain)


def _detail(kind: str, data: dict[str, Any]) -> str:
    if kind == "url.new":
        delay = data.get("delay_seconds")
        found = data["found_in"]["kind"].replace("_", " ")
        return f"{found}, {delay:.0f} s after publication" if delay is not None and not data.get("late") else found
    if kind == "url.changed":
        before = data.get("before", {}).get("title")
        changed = ", ".join(data["changed"])
        return f"{changed}; was: {before}" if before else f"{changed}; evidence: {data['evidence']}"
    if kind == "url.missing":
        status = (data.get("page") or {}).get("status")
        return f"{data['reason']}, page answers {status}" if status else str(data["reason"])
    if kind == "url.returned":
        return f"after {data['missing_seconds']:.0f} s"
    if kind == "source.baseline":
        return f"{counted(data['pages'], 'page')} in {counted(data['files'], 'file')} known from now on"
    if kind == "source.surge":
        return f"{data['count']} new pages at once"
    return str(data.get("error") or data.get("to") or "")


def counted(number: int, noun: str) -> str:
    """``1 page``, ``2 pages``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
