"""Putting items at the end of the `sites:` of a YAML text, which else stays as it is, to the byte (pure).

The scanner's tokens say where the list ends, whatever its style; the result is read again and compared: it must hold
what the text held before and the new items behind it. Where no way leads there, nothing is put in.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.tokens import (
    AnchorToken,
    BlockEndToken,
    BlockEntryToken,
    BlockMappingStartToken,
    BlockSequenceStartToken,
    DirectiveToken,
    DocumentEndToken,
    DocumentStartToken,
    FlowEntryToken,
    FlowMappingEndToken,
    FlowMappingStartToken,
    FlowSequenceEndToken,
    FlowSequenceStartToken,
    KeyToken,
    ScalarToken,
    StreamEndToken,
    StreamStartToken,
    TagToken,
    Token,
    ValueToken,
)

from monitor.config_load import ConfigError, read_tree

_OPENING = (BlockMappingStartToken, BlockSequenceStartToken, FlowMappingStartToken, FlowSequenceStartToken)
_CLOSING = (BlockEndToken, FlowMappingEndToken, FlowSequenceEndToken)
_FRAME = (StreamStartToken, DirectiveToken, DocumentStartToken, AnchorToken, TagToken)
_LINE_END = re.compile(r"\r\n|\n|\r|\Z")


class CannotInsertError(ValueError):
    """Nothing can be put in without changing what the text says. `str()` is one sentence."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the list: what it says (`${` escaped), and how it stands in block style, a line each, no indent."""

    data: Mapping[str, Any]
    lines: Sequence[str]


def insert_items(text: str, items: Sequence[Item]) -> str:
    """`text` with `items` at the end of its `sites:`, which it may lack, or of which it may have none.

    `text` is YAML without a byte order mark. Raises CannotInsertError where there is no safe place.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    # A last line without an end gets one, as any editor gives it: that much a block text at the end may grow.
    wanted = _data(text if text.endswith(("\r", "\n")) else text + newline)
    before = wanted.get("sites") or []
    wanted["sites"] = [*(before if isinstance(before, list) else ()), *(dict(item.data) for item in items)]
    for at, addition in _ways(text, items, newline):
        result = text[:at] + addition + text[at:]
        try:
            if _data(result) == wanted:
                return result
        except ConfigError:
            continue
    raise CannotInsertError("'sites:' is written in a way that nothing can be added to safely; add the sites by hand")


def _data(text: str) -> dict[str, Any]:
    """The values of a text, `${NAME}` as written; of one that holds comments alone, none."""
    if isinstance(next(t for t in _scan(text) if not isinstance(t, _FRAME)), StreamEndToken | DocumentEndToken):
        return {}
    # No variable and no file is read for this: each `${` stands for itself, in both texts that are compared.
    data: dict[str, Any] = read_tree(text.replace("${", "$${"), "", {}, Path()).data
    return data


def _scan(text: str) -> list[Token]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(YAML(typ="safe", pure=True).scan(text))
        except (YAMLError, ValueError, LookupError, RecursionError) as error:
            raise ConfigError([]) from error


def _ways(text: str, items: Sequence[Item], newline: str) -> Iterator[tuple[int, str]]:
    """Places and what to put there, the best first; which of them is right is for the caller to see."""
    tokens = [token for token in _scan(text) if not isinstance(token, _FRAME)]
    root = tokens[0]
    if isinstance(root, StreamEndToken | DocumentEndToken):
        yield from _lines(text, _line_end(text, root.start_mark.index), "sites:", items, 2, newline)
        return
    value = _value_of_sites(tokens)
    if value is None:
        if isinstance(root, BlockMappingStartToken):
            # The last BlockEnd is the root's own; what is before it is the last thing that the mapping says.
            last = [t for t in tokens if not isinstance(t, BlockEndToken | StreamEndToken | DocumentEndToken)][-1]
            key = " " * root.start_mark.column + "sites:"
            yield from _lines(text, _after(text, last), key, items, root.start_mark.column + 2, newline)
        return
    colon, *value = value
    first = next((token for token in value if not isinstance(token, AnchorToken | TagToken)), None)
    if first is None:
        # `sites:` with nothing behind it: a list begins on the next line.
        column = (root.start_mark.column if isinstance(root, BlockMappingStartToken) else 0) + 2
        yield from _lines(text, _after(text, value[-1] if value else colon), "", items, column, newline)
    elif isinstance(first, FlowSequenceStartToken):
        before = value[-2]
        comma = "" if isinstance(before, FlowSequenceStartToken | FlowEntryToken) else ", "
        flow = comma + ", ".join(json.dumps(item.data, ensure_ascii=False) for item in items)
        yield before.end_mark.index, (" " if isinstance(before, FlowEntryToken) else "") + flow
    elif isinstance(first, BlockSequenceStartToken | BlockEntryToken):
        column = first.start_mark.column
        last = [token for token in value if not isinstance(token, BlockEndToken)][-1]
        plain = _after(text, last)
        own = re.compile(rf"(?:[ \t]*(?:\r\n|\n|\r))*[ ]{{{column + 1},}}#[^\r\n]*(?:\r\n|\n|\r|\Z)")
        at = plain
        while (comment := own.match(text, at)) is not None:  # what is indented deeper speaks of the last site
            at = comment.end()
        for place in dict.fromkeys((at, plain, value[-1].end_mark.index)):
            yield from _lines(text, place, "", items, column, newline)


def _value_of_sites(tokens: Sequence[Token]) -> list[Token] | None:
    """The tokens of the value of the root's key `sites`, the colon first; None where there is no such key."""
    depth = 0
    found: list[Token] | None = None
    for number, token in enumerate(tokens):
        if isinstance(token, _CLOSING):
            depth -= 1
        if depth == 0 and number:
            break
        if depth == 1 and isinstance(token, KeyToken | FlowEntryToken) and not _entry_of(found, token):
            if found is not None:
                break
            key = tokens[number + 1]
            if isinstance(token, KeyToken) and isinstance(key, ScalarToken) and key.value == "sites":
                found = []
        elif found is not None and (found or isinstance(token, ValueToken)):
            found.append(token)
        if isinstance(token, _OPENING):
            depth += 1
    return found


def _entry_of(found: list[Token] | None, token: Token) -> bool:
    """Whether the token belongs to a key that is being read: only a value can stand between a key and its colon."""
    return found is not None and not found and not isinstance(token, KeyToken)


def _after(text: str, token: Token) -> int:
    """Where the line ends in which the token does; a block text ends with its last line break already."""
    at: int = token.end_mark.index
    return at if at and text[at - 1] in "\r\n" else _line_end(text, at)


def _line_end(text: str, at: int) -> int:
    match = _LINE_END.search(text, at)
    return match.end() if match else len(text)


def _lines(text: str, at: int, key: str, items: Sequence[Item], column: int, newline: str) -> Iterator[tuple[int, str]]:
    """The sites as lines to put in at `at`: with an empty line before each, or, where that would count, without."""
    start = "" if at == 0 or text[at - 1] in "\r\n" else newline
    head = [key] if key else []
    for gap in ([""], []):
        lines: list[str] = []
        for item in items:
            # No empty line right behind `sites:`.
            lines += ([] if not lines and (key or _ends_in_colon(text[:at])) else gap) + _indented(
                item.lines, " " * column
            )
        yield at, start + "".join(line + newline for line in [*head, *lines])


def _ends_in_colon(text: str) -> bool:
    return text.rstrip().endswith("sites:")


def _indented(lines: Sequence[str], lead: str) -> list[str]:
    """The lines of an item, a dash before the first that is no comment."""
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [f"{lead}{'- ' if n == first else '  ' if n > first else ''}{line}" for n, line in enumerate(lines)]
