"""Events as lines for people."""

from __future__ import annotations

from typing import Any

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
