"""Adding sites to the text of a `sites.yaml`: what stands there stays as it is, to the byte.

The new text is put behind the last site (`config_insert`). Nothing is parsed and written anew: a round trip through a
parser moves comments, quotes and blank lines.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ada_url

from monitor.config import Config, ConfigError, ConfigProblem, loads
from monitor.config_insert import CannotInsertError, Item, insert_items
from monitor.config_load import UNSET, Place, printable, read_tree
from monitor.config_types import web_url
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
_NO_SITE_YET = re.compile("names no site|is empty;")
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
        _check(text, file, path, env, new=False)
        names = _known(text, sites, file, path, env)
    named = []
    places: dict[str, str] = {}
    for site in sites:
        twin = places.setdefault(site.name or place(site.url), site.url)
        if twin != site.url:
            message = f"{site.url} is on the host of {twin}; write a second site of one host by hand, with 'include:'"
            raise ConfigError([ConfigProblem(file, None, "", message)])
        name = free_name(site.name or default_name(site.url), names, "-")
        names.append(name)
        named.append((name, site))
    plain = text.removeprefix("\ufeff")
    try:
        done = text[: len(text) - len(plain)] + insert_items(plain, [_item(name, site) for name, site in named])
    except CannotInsertError as error:
        raise ConfigError([ConfigProblem(file, None, "", str(error))]) from None
    _check(done, file, path, env, new=True)
    return done


def place(url: str) -> str:
    """Host and port of an address, without ``www.``: two addresses of one place are one site's."""
    return page_key(url).partition("://")[2].partition("/")[0].removeprefix("www.")


def writable(url: str) -> str | None:
    """`url` in a form that the configuration takes; None where there is none: what is published may be anything."""
    with contextlib.suppress(ValueError):
        return web_url(url)
    with contextlib.suppress(ValueError):
        return web_url(ada_url.URL(url).href)
    return None


def peek(text: str, path: Path, env: Mapping[str, str]) -> Config | None:
    """What a text says where secrets that only a run needs may be missing; None where it cannot be loaded so, either.

    Its alerts are not to be used.
    """
    try:
        return loads(text.removeprefix("\ufeff"), name=str(path), env=_AnyEnvironment(env), path=path)
    except ConfigError:
        return None


def addresses_from_environment(text: str, path: Path, env: Mapping[str, str]) -> frozenset[str]:
    """The addresses of a text that hold a value of the environment or of a file: nobody is to be shown them."""
    tree = read_tree(text.removeprefix("\ufeff"), str(path), _AnyEnvironment(env), path.parent)
    found = set()
    for number, site in enumerate(tree.data.get("sites") or ()):
        places: list[tuple[Place, Any]] = [(("sites", number, "url"), site.get("url"))]
        for at, feed in enumerate(site.get("feeds") or ()):
            where: Place = ("sites", number, "feeds", at)
            places.append(((*where, "url"), feed["url"]) if isinstance(feed, dict) else (where, feed))
        found |= {str(url).strip() for where, url in places if "${" in tree.shown.get(where, "").replace("$${", "")}
    return frozenset(found)


class _AnyEnvironment(dict[str, str]):
    """The environment, in which every variable is set, to what can stand for a secret."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "whsec_AAAA"


def write_config(path: Path, text: str) -> None:
    """Replace the file whole or not at all; its mode stays, and a link is one still. Raises OSError."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check(text: str, file: str, path: Path, env: Mapping[str, str], *, new: bool) -> None:
    """Raises ConfigError for all but variables that only a run needs, and, before sites are added, for having none."""
    try:
        loads(text.removeprefix("\ufeff"), name=file, env=env, path=path)
    except ConfigError as error:
        problems = [problem for problem in error.problems if not UNSET.search(problem.message)]
        if not new:
            problems = [problem for problem in problems if not _NO_SITE_YET.match(problem.message)]
        if problems:
            raise ConfigError(problems) from None


def _known(text: str, sites: Sequence[NewSite], file: str, path: Path, env: Mapping[str, str]) -> list[str]:
    """The names that are taken. Raises ConfigError for a site that is there already."""
    try:
        rows = read_tree(text.removeprefix("\ufeff"), file, env, path.parent).data.get("sites") or []
    except ConfigError:
        return []  # comments alone: it was checked
    there = {key(row["url"]): number for number, row in enumerate(rows) for key in (page_key, place)}
    problems = []
    for site in sites:
        # Whoever gives a name of its own to a second site of a host knows that it is one.
        number = there.get(page_key(site.url), None if site.name else there.get(place(site.url)))
        if number is not None:
            name = rows[number].get("name") or default_name(rows[number]["url"])
            problems.append(ConfigProblem(file, None, f"sites[{number}]", f"{site.url} is there already, as {name!r}"))
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
