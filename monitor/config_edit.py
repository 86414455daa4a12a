"""Adding sites to the text of a `sites.yaml`: what stands there stays as it is, to the byte.

The new text is put behind the last site (`config_insert`). Nothing is parsed and written anew: a round trip through a
parser moves comments, quotes and blank lines.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.config import ConfigError, ConfigProblem, loads
from monitor.config_insert import CannotInsertError, Item, insert_items
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
    plain = text.removeprefix("\ufeff")
    try:
        done = text[: len(text) - len(plain)] + insert_items(plain, [_item(name, site) for name, site in named])
    except CannotInsertError as error:
        raise ConfigError([ConfigProblem(file, None, "", str(error))]) from None
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


def _item(name: str, site: NewSite) -> Item:
    data: dict[str, object] = {"name": name, "url": site.url}
    lines = [f"name: {_scalar(name)}", f"url: {_scalar(site.url)}"]
    lines += [f"# {printable(note, 110)}" for note in site.notes]
    if site.private:
        data["allow_private_networks"] = True
        lines.append("allow_private_networks: true")
    for key, rows in site.lists.items():
        data[key] = [url for url, _comment in rows]
        lines.append(f"{key}:" + ("" if rows else " []"))
        lines += [
            f"  - {_scalar(url)}" + (f"   # {printable(comment, 80)}" if comment else "") for url, comment in rows
        ]
    return Item(escaped(data), lines)


def escaped(value: Any) -> Any:
    """Texts of strangers must not reach into the environment: a published `${HOOK_SECRET}` is no variable."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [escaped(item) for item in value]
    return {key: escaped(item) for key, item in value.items()} if isinstance(value, dict) else value


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(escaped(text), ensure_ascii=False)
