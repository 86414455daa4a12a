"""Templates of messages: text with ``{title}`` and a few other names. No format specs, no attributes, no code."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES = (
    "mark",
    "type",
    "title",
    "url",
    "site",
    "time",
    "section",
    "authors",
    "summary",
    "source",
    "detail",
)
"""What may stand in braces; each is a text, empty where an event has none."""

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def problem(template: str) -> tuple[str, str] | None:
    """What is wrong with a template: the part of it, and a sentence about that part; None where nothing is."""
    for part in _PART.finditer(template):
        if part[0] in ("{", "}"):
            return part[0], f"a single '{part[0]}'; write '{part[0] * 2}' for a literal one"
        if part[1] is not None and part[1] not in NAMES:
            return part[1], "no field of a template; known are " + ", ".join(NAMES)
    return None


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with its names replaced. What a value holds is never read as a template again."""

    def put(part: re.Match[str]) -> str:
        return values.get(part[1], "") if part[1] is not None else part[0][0]

    return _PART.sub(put, template)
