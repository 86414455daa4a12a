"""From the text of `sites.yaml` to plain values, each with its line; and the errors that name file, line and key.

The YAML nodes are read directly, not the values made from them: only nodes know the line of every key, show a key that
is given twice, and keep a date or a `010` as the text that was written.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

Place = tuple[str | int, ...]
"""Where a value stands: ``("sites", 0, "feeds", 1)``."""

MAX_BYTES = 8_000_000
MAX_VALUES = 300_000
MAX_DEPTH = 40
MAX_SECRET = 65_536
"""Bytes of a file that `${file:PATH}` names."""

UNSET = re.compile(r"^the environment variable \w+ is not set$")

_TAG = "tag:yaml.org,2002:"
_TRUE = frozenset({"true", "True", "TRUE"})
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{file:([^{}]+)\}|\$\{")
_USERINFO = re.compile(r"//[^/@\s]*@")
_HINTS = (
    ("cannot start any token", "a tab or a reserved character stands where a value starts; indent with spaces"),
    ("mapping values are not allowed", "a ':' where none may be; quote a text that holds ': '"),
    ("could not find expected ':'", "a line without 'key: value'"),
    ("unexpected end of stream", "a quotation mark is never closed"),
    ("but found another document", "more than one YAML document; remove the '---'"),
    ("but got '{'", "a '{' where none may be; inside { } and [ ] quote \"${NAME}\""),
    ("undefined alias", "an alias (*name) without its anchor (&name); quote a text that starts with '*'"),
    ("<stream end>", "the file ends inside a bracket or a quotation"),
    ("<block end>", "the indentation does not fit the lines above"),
    ("<block mapping start>", "the indentation does not fit the lines above"),
    ("unknown escape character", "an unknown '\\' escape; use single quotes"),
)


class Expanded(str):
    """A text in which `${NAME}` was replaced: never to be shown, and a number if it looks like one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing wrong with a configuration. `line` counts from 1; `key` is a path such as ``sites[0].feeds[1]``."""

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class ConfigError(ValueError):
    """The configuration cannot be used. `problems` lists every reason, `str()` gives one line for each.

    The caller shows it and ends with exit code 2, or, on a reload, keeps the configuration that it has.
    """

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(slots=True)
class Tree:
    """The values of a file (`data`: dicts, lists, texts, numbers), and for each place its line and its text as written.

    `shown` holds the texts before `${NAME}` was replaced, so that messages can quote them. `problems` grows as the
    file is checked.
    """

    file: str
    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    shown: dict[Place, str] = field(default_factory=dict)
    problems: list[ConfigProblem] = field(default_factory=list)
    bad: set[Place] = field(default_factory=set)

    def report(self, place: Place, message: str) -> None:
        """Add a problem at `place`; one that lies within a place already reported is left out."""
        if any(place[:length] in self.bad for length in range(len(place) + 1)):
            return
        self.bad.add(place)
        self.problems.append(ConfigProblem(self.file, self.line(place), key_path(place), message))

    def line(self, place: Place) -> int | None:
        """The line of `place`, or of the nearest thing around it that the file holds."""
        for length in range(len(place), -1, -1):
            if place[:length] in self.lines:
                return self.lines[place[:length]]
        return None

    def known(self, place: Place) -> Place:
        """The longest part of `place` that the file holds."""
        while place and place not in self.lines:
            place = place[:-1]
        return place


def key_path(place: Place) -> str:
    """``("sites", 0, "url")`` as people write it: ``sites[0].url``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part)}" for part in place)
    return text.removeprefix(".")


def printable(text: str, most: int = 60) -> str:
    """`text` on one line, without control characters, user names and passwords of URLs, cut to `most` characters."""
    text = _USERINFO.sub("//***@", text)
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: most + 1])
    return text if len(text) <= most else text[:most] + "…"


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` that was probably meant, or None."""
    folded = {other.lower(): other for other in words}
    close = difflib.get_close_matches(word[:100].lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def read_tree(text: str, file: str, env: Mapping[str, str], folder: Path) -> Tree:
    """The values of a YAML text, `${NAME}` replaced from `env`, `${file:PATH}` by what a file holds.

    Relative paths are looked for in `folder`.

    Raises ConfigError when the text is no YAML mapping. Lesser problems (a key given twice, a variable that is not
    set) are left in `Tree.problems`.
    """
    tree = Tree(file)
    try:
        root = _compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError([_syntax(tree, error.problem or "", mark.line + 1 if mark else None)]) from None
    except RecursionError:
        raise ConfigError([ConfigProblem(file, None, "", "brackets are nested too deeply")]) from None
    except (YAMLError, ValueError, LookupError, ArithmeticError, NotImplementedError) as error:
        position = getattr(error, "position", None)
        line = None if position is None else text.count("\n", 0, position) + 1
        raise ConfigError([_syntax(tree, getattr(error, "reason", ""), line)]) from None
    if root is None or (isinstance(root, ScalarNode) and root.tag == _TAG + "null"):
        raise ConfigError([ConfigProblem(file, None, "", "is empty; a configuration needs at least 'sites:'")])
    if not isinstance(root, MappingNode):
        kind = "a list" if isinstance(root, SequenceNode) else "one text"
        message = f"holds {kind}, not keys with values; a configuration starts with 'sites:'"
        raise ConfigError([ConfigProblem(file, root.start_mark.line + 1, "", message)])
    _Reader(tree, env, folder).read(root)
    return tree


def _compose(text: str) -> Node | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
        return node


def _syntax(tree: Tree, problem: str, line: int | None) -> ConfigProblem:
    hint = next((hint for sign, hint in _HINTS if sign in problem), "")
    if "special characters" in problem or not problem:
        hint = "holds control characters; is it a text file?"
    return ConfigProblem(tree.file, line, "", hint or f"is no valid YAML: {printable(problem, 100)}")


class _Reader:
    """Turns nodes into values, once for each file: keeps the count of values that bounds aliases of aliases."""

    def __init__(self, tree: Tree, env: Mapping[str, str], folder: Path) -> None:
        self.tree = tree
        self.env = env
        self.folder = folder
        self.left = MAX_VALUES

    def read(self, root: Node) -> None:
        self.tree.lines[()] = root.start_mark.line + 1
        self.tree.data = self.value(root, (), 0)

    def value(self, node: Node, place: Place, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            why = "holds too many values" if self.left < 0 else "is nested too deeply, or an alias holds itself"
            raise ConfigError([ConfigProblem(self.tree.file, self.tree.line(place), "", why)])
        if isinstance(node, MappingNode):
            return self.mapping(node, place, depth)
        if isinstance(node, SequenceNode):
            items = []
            for number, item in enumerate(node.value):
                self.tree.lines[(*place, number)] = item.start_mark.line + 1
                items.append(self.value(item, (*place, number), depth + 1))
            return items
        return self.scalar(node, place)

    def mapping(self, node: MappingNode, place: Place, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[Node] = []
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _TAG + "merge":
                merged.extend(value_node.value if isinstance(value_node, SequenceNode) else [value_node])
                continue
            if not isinstance(key_node, ScalarNode):
                self.add(line, place, "a key must be a text, not a list or a mapping")
                continue
            key = str(key_node.value)
            if key in first:
                self.add(line, (*place, key), f"this key stands twice; first in line {first[key]}")
                continue
            first[key] = line
            self.tree.lines[(*place, key)] = line
            values[key] = self.value(value_node, (*place, key), depth + 1)
        for other in merged:
            self.merge(values, other, place, depth)
        return values

    def merge(self, values: dict[str, Any], other: Node, place: Place, depth: int) -> None:
        """`<<: *other` (YAML merge key): its keys count where the mapping itself has none."""
        if not isinstance(other, MappingNode):
            self.add(other.start_mark.line + 1, (*place, "<<"), "must name a mapping, such as <<: *name")
            return
        for key_node, value_node in other.value:
            key = str(key_node.value)
            if key not in values and isinstance(key_node, ScalarNode) and key != "<<":
                self.tree.lines[(*place, key)] = key_node.start_mark.line + 1
                values[key] = self.value(value_node, (*place, key), depth + 1)

    def add(self, line: int, place: Place, message: str) -> None:
        self.tree.problems.append(ConfigProblem(self.tree.file, line, key_path(place), message))

    def scalar(self, node: Node, place: Place) -> Any:
        text = str(node.value)
        self.tree.shown[place] = text
        kind = str(node.tag).removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text in _TRUE
        if kind in ("int", "float"):
            return _number(text, kind)
        if kind not in ("str", "timestamp", "value"):
            self.tree.report(place, f"the tag {printable(str(node.tag))!r} is not used here")
            return None
        return self.expand(text, place)

    def expand(self, text: str, place: Place) -> str:
        """`text` with each `${NAME}` replaced by its value; `$${` stands for a literal `${`."""
        if "${" not in text:
            return text

        def replace(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            if match[2] is not None:
                return self.held_by(match[2], place)
            if match[1] is None:
                self.tree.report(place, "'${' needs a name and a '}', as in ${NAME}; write '$${' for a literal '${'")
            elif match[1] not in self.env:
                self.tree.report(place, f"the environment variable {match[1]} is not set")
            else:
                return self.env[match[1]]
            return ""

        return Expanded(_VARIABLE.sub(replace, text))

    def held_by(self, path: str, place: Place) -> str:
        """What a file holds, without the white space around it: where secrets are mounted, one stands in each file."""
        try:
            with (self.folder / path).open("rb") as file:
                data = file.read(MAX_SECRET + 1)
            if len(data) <= MAX_SECRET:
                return data.decode().strip()
            why = f"holds more than {MAX_SECRET} bytes"
        except UnicodeDecodeError:
            why = "is no text in UTF-8"
        except (OSError, ValueError) as error:
            why = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        self.tree.report(place, f"the file {printable(path)} {why}")
        return ""


def _number(text: str, kind: str) -> int | float | str:
    plain = text.replace("_", "")
    try:
        if kind == "float":
            return float(plain.replace(".inf", "inf").replace(".nan", "nan").replace(".Inf", "inf"))
        return int(plain, 0) if plain.lstrip("+-")[:2].lower() in ("0x", "0o", "0b") else int(plain)
    except (ValueError, OverflowError):
        return text
