"""From checked models to the values of `monitor.config`: levels merged, names made, promises held against sources."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from monitor import config_schema as schema
from monitor.config_alerts import Alert, StdoutAlert
from monitor.config_errors import checked, merged, quoted, unknown
from monitor.config_load import ConfigError, Place, Tree, read_tree
from monitor.config_resolve_alerts import alerts_of
from monitor.config_types import Database, format_duration, what
from monitor.config_values import (
    Changes,
    Config,
    Crawl,
    Expect,
    Poll,
    Settings,
    Site,
    default_name,
)

DEFAULT_DATABASE = "sqlite:///monitor.db"

_SITE = TypeAdapter(schema.SiteModel)
_DEFAULTS = TypeAdapter(schema.SettingsModel)
_DATABASE = TypeAdapter(Database)


def resolve(text: str, name: str, env: Mapping[str, str], path: Path | None) -> Config:
    """The configuration that `text` holds, or ConfigError with every problem in it."""
    folder = path.parent if path else Path()
    tree = read_tree(text, name, env, folder)
    data: dict[str, Any] = tree.data
    for key in data:
        if key not in schema.FileModel.model_fields:
            tree.report((key,), unknown(key, schema.FileModel))
    database = checked(tree, _DATABASE, data.get("database"), ("database",))
    model = checked(tree, _DEFAULTS, data.get("defaults"), ("defaults",))
    defaults = _settings(tree, Settings(), model, ("defaults",))
    # The parts are checked one by one: an error in one site hides nothing in another.
    sites = _sites(tree, _items(tree, data, "sites"), defaults)
    alerts: tuple[Alert, ...] = (StdoutAlert(),)
    if data.get("alerts") is not None:
        alerts = alerts_of(tree, _items(tree, data, "alerts"), sites, folder)
    if tree.problems:
        raise ConfigError(sorted(tree.problems, key=lambda problem: problem.line or 0))
    url = resolve_database(database or DEFAULT_DATABASE, folder)
    return Config(path, url, defaults, alerts, tuple(site for site in sites if site))


def resolve_database(url: str, folder: Path) -> str:
    """`url` with the path of a SQLite file made absolute against `folder`; any other URL as it is.

    ``sqlite://`` and ``sqlite:///:memory:`` are databases in memory and stay so.
    """
    match = re.fullmatch(r"(sqlite(?:\+\w+)?:///)([^/?][^?]*)(\?.*)?", url, re.DOTALL)
    if match is None or match[2].startswith((":memory:", "file:")):
        return url
    return f"{match[1]}{(folder / match[2]).absolute()}{match[3] or ''}"


def _items(tree: Tree, data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if key == "sites" and not value and (value is None or isinstance(value, list)):
        tree.report((key,), "names no site; write a list of sites, each with a url")
    elif not isinstance(value, list):
        tree.report((key,), f"must be a list, not {what(value)}")
    return value if isinstance(value, list) else []


def _settings(tree: Tree, base: Settings, model: schema.SettingsModel | None, place: Place) -> Settings:
    """The settings of one level: `base`, those of the level above, with what `model` sets at `place`."""
    if model is None:
        return base
    poll = base.poll
    if model.poll is not None:
        # A level that sets one of the two aims sets the other aside.
        if model.poll.requests_per_day is not None:
            poll = dataclasses.replace(poll, target_delay=None)
        elif model.poll.target_delay is not None:
            poll = dataclasses.replace(poll, requests_per_day=None)
        poll = merged(poll, model.poll)
        if poll.min > poll.max:
            key, other = ("min", "max") if model.poll.min is not None else ("max", "min")
            inherited = getattr(base.poll, other)
            default = inherited == getattr(Poll(), other)
            origin = f"which is {format_duration(inherited)} by default" if default else "which a level above sets"
            where = (*place, "poll", key)
            relation = "more" if key == "min" else "less"
            tree.report(where, quoted(tree, where, f"{{value}} is {relation} than {other}, {origin}"))
            poll = base.poll
    return Settings(
        user_agent=model.user_agent or base.user_agent,
        allow_private_networks=(
            base.allow_private_networks if model.allow_private_networks is None else model.allow_private_networks
        ),
        # `proxy: null` takes away the proxy of the level above.
        proxy=model.proxy if "proxy" in model.model_fields_set else base.proxy,
        concurrency=merged(base.concurrency, model.concurrency),
        poll=poll,
        sitemap=merged(base.sitemap, model.sitemap),
        baseline=model.baseline or base.baseline,
    )


def _sites(tree: Tree, items: list[Any], defaults: Settings) -> list[Site | None]:
    sites: list[Site | None] = []
    names: dict[str, int] = {}
    for number, item in enumerate(items):
        place: Place = ("sites", number)
        model = checked(tree, _SITE, item, place)
        site = _site(tree, model, defaults, place) if model else None
        sites.append(site)
        if site is None:
            continue
        first = names.setdefault(site.name, number)
        if first != number:
            hint = "" if model and model.name else "; give one of them a name"
            line = tree.line(("sites", first))
            name = "{value}" if model and model.name else repr(site.name)
            message = f"{name} is the name of sites[{first}], too (line {line}){hint}"
            tree.report((*place, "name"), quoted(tree, (*place, "name"), message))
    return sites


def _site(tree: Tree, model: schema.SiteModel, defaults: Settings, place: Place) -> Site:
    settings = _settings(tree, defaults, model, place)
    overrides: list[tuple[str, Settings]] = []
    lists: dict[str, tuple[str, ...] | None] = {}
    for key in ("feeds", "sitemaps", "news_sitemaps"):
        sources: list[schema.SourceModel] | None = getattr(model, key)
        lists[key] = None if sources is None else tuple(source.url for source in sources)
        _unique(tree, lists[key] or (), (*place, key))
        for number, source in enumerate(sources or ()):
            if source.model_fields_set != {"url"}:
                overrides.append((source.url, _settings(tree, settings, source, (*place, key, number))))
    _of_one_kind(tree, lists, place)
    _unique(tree, model.hosts or (), (*place, "hosts"))
    _keepable(tree, model, place)
    return Site(
        name=model.name or default_name(model.url),
        url=model.url,
        settings=settings,
        hosts=tuple(model.hosts or ()),
        feeds=lists["feeds"],
        sitemaps=lists["sitemaps"],
        news_sitemaps=lists["news_sitemaps"],
        include=tuple(model.include or ()),
        exclude=tuple(model.exclude or ()),
        expect=tuple(Expect(promise.pages, promise.in_, promise.within) for promise in model.expect or ()),
        crawl=merged(Crawl(tuple(model.crawl.sections)), _without_lists(model.crawl)) if model.crawl else None,
        changes=merged(Changes(), model.changes),
        overrides=tuple(overrides),
    )


def _without_lists(model: schema.CrawlModel) -> schema.CrawlModel:
    return model.model_copy(update={"sections": tuple(model.sections)})


def _unique(tree: Tree, values: Iterable[str], place: Place) -> None:
    seen: dict[str, int] = {}
    for number, value in enumerate(values):
        first = seen.setdefault(value, number)
        if first != number:
            tree.report((*place, number), f"is listed twice; first in line {tree.line((*place, first))}")


def _of_one_kind(tree: Tree, lists: Mapping[str, Sequence[str] | None], place: Place) -> None:
    """An address is one source, read as one kind."""
    seen: dict[str, tuple[str, int]] = {}
    for key, urls in lists.items():
        for number, url in enumerate(urls or ()):
            first, at = seen.setdefault(url, (key, number))
            if first != key:
                line = tree.line((*place, first, at))
                message = f"is listed under {first!r}, too (line {line}); name it under {first!r} or {key!r}, not both"
                tree.report((*place, key, number), message)


def _keepable(tree: Tree, model: schema.SiteModel, place: Place) -> None:
    """A promise about a kind of source that the site has none of could only ever be broken."""
    absent = {
        "feed": model.feeds == [] and "feeds is []",
        "sitemap": model.sitemaps == [] and "sitemaps is []",
        "news_sitemap": model.news_sitemaps == [] and model.sitemaps == [] and "sitemaps and news_sitemaps are []",
        "crawl": model.crawl is None and "the site has no 'crawl'",
    }
    for number, promise in enumerate(model.expect or ()):
        why = absent[promise.in_]
        if why:
            tree.report((*place, "expect", number, "in"), f"{promise.in_!r} can never list a page: {why}")
