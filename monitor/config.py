"""`sites.yaml` as values: every default applied, every path and name resolved, ready for the engine.

`load` reads a file, `loads` a text, `minimal` makes a configuration from URLs alone. Whatever is wrong is told in one
ConfigError. A loaded Config is immutable and compares by value: a reload that changed nothing is equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from monitor.config_alerts import Alert, FileAlert, NotifyAlert, StdoutAlert, WebhookAlert
from monitor.config_load import MAX_BYTES, UNSET, ConfigError, ConfigProblem, read_tree
from monitor.config_resolve import DEFAULT_DATABASE, resolve, resolve_database
from monitor.config_schema import json_schema
from monitor.config_types import format_duration, parse_duration, web_url
from monitor.config_values import (
    Changes,
    Concurrency,
    Config,
    Crawl,
    Expect,
    Poll,
    Settings,
    Site,
    SitemapSettings,
    default_name,
    free_name,
)

__all__ = [
    "Alert",
    "Changes",
    "Concurrency",
    "Config",
    "ConfigError",
    "ConfigProblem",
    "Crawl",
    "Expect",
    "FileAlert",
    "NotifyAlert",
    "Poll",
    "Settings",
    "Site",
    "SitemapSettings",
    "StdoutAlert",
    "WebhookAlert",
    "database_of",
    "format_duration",
    "json_schema",
    "load",
    "loads",
    "minimal",
    "parse_duration",
    "resolve_database",
]


def load(path: Path, env: Mapping[str, str]) -> Config:
    """Read the configuration at `path`; `env` gives the values of `${NAME}`.

    Raises ConfigError, which lists everything that is wrong with it.
    """
    name = str(path)

    def fail(message: str) -> ConfigError:
        return ConfigError([ConfigProblem(name, None, "", message)])

    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise fail("no such file; `monitor init URL` writes one") from None
    except IsADirectoryError:
        raise fail("is a directory, not a file") from None
    except (OSError, ValueError) as error:
        raise fail(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise fail(f"is larger than {MAX_BYTES // 1_000_000} MB")
    if b"\0" in data:
        raise fail("holds zero bytes; is it a text file in UTF-8?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([ConfigProblem(name, line, "", "is not UTF-8; save the file as UTF-8")]) from None
    return loads(text, name=name, env=env, path=path)


def database_of(path: Path, env: Mapping[str, str]) -> str:
    """The URL of the database alone, for commands that only read it: they need no `${NAME}` of any secret.

    Raises ConfigError for whatever else is wrong, as `load` does.
    """
    try:
        return load(path, env).database
    except ConfigError as error:
        if any(problem.key == "database" or not UNSET.search(problem.message) for problem in error.problems):
            raise
    data = read_tree(path.read_text("utf-8-sig"), str(path), env, path.parent).data
    return resolve_database(data.get("database") or DEFAULT_DATABASE, path.parent)


def loads(text: str, *, name: str, env: Mapping[str, str], path: Path | None = None) -> Config:
    """The configuration that `text` holds. `name` stands for the file in messages; relative SQLite files are looked
    for beside `path`, or in the current folder.

    Raises ConfigError, which lists everything that is wrong with it.
    """
    return resolve(text, name, env, path)


def minimal(
    urls: Sequence[str], *, database: str = "sqlite://", settings: Settings | None = None, alerts: Sequence[Alert] = ()
) -> Config:
    """A configuration of the sites at `urls` without a file: all defaults, names from the hosts, made unique.

    The database is in memory unless given. Raises ConfigError for what is no http or https URL.
    """
    settings = settings or Settings()
    sites: list[Site] = []
    problems: list[ConfigProblem] = []
    for url in urls:
        try:
            name = free_name(default_name(web_url(url)), {site.name for site in sites}, "-")
        except ValueError as error:
            message = str(error).replace("{value}", repr(url)).replace("{raw}", url)
            problems.append(ConfigProblem("", None, "", message))
            continue
        sites.append(Site(name=name, url=url, settings=settings))
    if problems:
        raise ConfigError(problems)
    return Config(None, database, settings, tuple(alerts) or (StdoutAlert(),), tuple(sites))
