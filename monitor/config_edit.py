"""Adding sites to the text of a `sites.yaml`: what stands there stays as it is, to the byte.

The new text is put behind the last site, where the YAML nodes say that it ends. Nothing is parsed and written anew: a
round trip through a parser moves comments, quotes and blank lines.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from monitor.config import ConfigError, ConfigProblem, loads
from monitor.config_load import UNSET, printable, read_tree
from monitor.config_values import default_name, free_name
from monitor.core.url import page_key

HEAD = """\
# What to watch, and where to tell of it. `monitor check` reads every source once and changes nothing; `monitor run`
# watches: the first read of each source is a quiet baseline, from then on it tells of what is new, changed, missing.

# defaults:
#   Say who you are and where you can be reached: publishers block what they do not know.
#   user_agent: "example-monitor/1.0 (+https://example.org/bot)"

# alerts:                               # left out: events go to standard output
#   - webhook: {url: "https://example.org/hook", secret: "${HOOK_SECRET}"}

sites:
"""

_PLAIN = re.compile(r"https?://[A-Za-z0-9._~/+=&%;@!?()-]+|[A-Za-z][A-Za-z0-9._-]*")
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n"])


@dataclass(frozen=True, slots=True)
class NewSite:
    """A site to add. `lists` has for each key of sources its (URL, comment) pairs; `notes` are further comments."""

    url: str
    lists: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    private: bool = False
    name: str | None = None


def add_sites(text: str, sites: Sequence[NewSite], *, file: str, path: Path, env: Mapping[str, str]) -> str:
    """`text`, which may be empty, with `sites` behind those that it has.

    Raises ConfigError where `text` is no configuration, or names a site already.
    """
    if not text.strip():
        text = HEAD
        names: list[str] = []
    else:
        _check(text, file, path, env)
        names = _known(text, sites, file, path, env)
    named = []
    for site in sites:
        name = free_name(site.name or default_name(site.url), names, "-")
        names.append(name)
        named.append((name, site))
    done = _inserted(text, named)
    _check(done, file, path, env)
    return done


def write_config(path: Path, text: str) -> None:
    """Replace the file whole or not at all; its mode stays. Raises OSError."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _check(text: str, file: str, path: Path, env: Mapping[str, str]) -> None:
    """Raises ConfigError for all but variables that only a run needs."""
    try:
        loads(text.removeprefix("\ufeff"), name=file, env=env, path=path)
    except ConfigError as error:
        problems = [problem for problem in error.problems if not UNSET.search(problem.message)]
        if problems:
            raise ConfigError(problems) from None


def _known(text: str, sites: Sequence[NewSite], file: str, path: Path, env: Mapping[str, str]) -> list[str]:
    """The names that are taken. Raises ConfigError for a site that is there already."""
    rows = read_tree(text.removeprefix("\ufeff"), file, env, path.parent).data["sites"]
    there = {page_key(row["url"]): number for number, row in enumerate(rows)}
    problems = [
        ConfigProblem(file, None, f"sites[{there[page_key(site.url)]}]", f"{site.url} is there already")
        for site in sites
        if page_key(site.url) in there
    ]
    if problems:
        raise ConfigError(problems)
    return [row.get("name") or default_name(row["url"]) for row in rows]


def _inserted(text: str, named: Sequence[tuple[str, NewSite]]) -> str:
    plain = text.removeprefix("\ufeff")
    skipped = len(text) - len(plain)
    end = "\r\n" if "\r\n" in plain else "\n"
    if plain == HEAD:
        return text + "".join(_block(name, site, 2) for name, site in named)
    node = _sites_node(plain)
    if node.flow_style:
        at = node.end_mark.index - 1 + skipped
        tail = plain[node.value[-1].end_mark.index : node.end_mark.index - 1]
        comma = "" if "," in re.sub(r"#[^\n]*", "", tail) else ", "
        return text[:at] + comma + ", ".join(_flow(name, site) for name, site in named) + text[at:]
    lines = text.splitlines(keepends=True)
    last = _last_line(node)
    if last < len(lines) and not lines[last].endswith(("\n", "\r")):
        lines[last] += end
    block = "".join(_block(name, site, node.start_mark.column) for name, site in named).replace("\n", end)
    return "".join([*lines[: last + 1], end, block, *lines[last + 1 :]])


def _sites_node(text: str) -> SequenceNode:
    root = YAML(typ="safe", pure=True).compose(text)
    assert isinstance(root, MappingNode)  # it was checked
    found = next(value for key, value in root.value if key.value == "sites")
    assert isinstance(found, SequenceNode)
    return found


def _last_line(node: Node) -> int:
    """The line, from 0, on which a node ends: of a block its last scalar's, for its own mark lies behind comments."""
    if isinstance(node, ScalarNode):
        behind = node.style in ("|", ">") or (node.end_mark.column == 0 and node.end_mark.line > node.start_mark.line)
        return int(node.end_mark.line) - behind
    if not isinstance(node, MappingNode | SequenceNode) or node.flow_style or not node.value:
        return int(node.end_mark.line)
    last = node.value[-1]
    return max(map(_last_line, last)) if isinstance(last, tuple) else _last_line(last)


def _block(name: str, site: NewSite, indent: int) -> str:
    lead = " " * indent
    lines = [f"{lead}- name: {_scalar(name)}", f"{lead}  url: {_scalar(site.url)}"]
    lines += [f"{lead}  # {printable(note, 110)}" for note in site.notes]
    if site.private:
        lines.append(f"{lead}  allow_private_networks: true")
    for key, rows in site.lists.items():
        lines.append(f"{lead}  {key}:" + ("" if rows else " []"))
        lines += [
            f"{lead}    - {_scalar(url)}" + (f"   # {printable(comment, 80)}" if comment else "")
            for url, comment in rows
        ]
    return "\n".join(lines) + "\n"


def _flow(name: str, site: NewSite) -> str:
    """On one line, in flow style: JSON is YAML."""
    value: dict[str, object] = {"name": name, "url": site.url.replace("${", "$${")}
    if site.private:
        value["allow_private_networks"] = True
    value |= {key: [url.replace("${", "$${") for url, _comment in rows] for key, rows in site.lists.items()}
    return json.dumps(value, ensure_ascii=False)


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)
