"""From checked models to the values of `monitor.config`: levels merged, names made, promises held against sources."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, SecretStr, TypeAdapter, ValidationError

from monitor import config_schema as schema
from monitor.config_load import ConfigError, Place, Tree, nearest, printable, read_tree
from monitor.config_types import DETAIL, Database, KeyValueError, format_duration, what
from monitor.config_values import (
    Alert,
    Changes,
    Config,
    Crawl,
    Expect,
    NotifyAlert,
    Poll,
    Settings,
    Site,
    StdoutAlert,
    WebhookAlert,
    default_name,
    free_name,
)

DEFAULT_DATABASE = "sqlite:///monitor.db"

Value = TypeVar("Value")

_ALERT = TypeAdapter(schema.Alert)
_SITE = TypeAdapter(schema.SiteModel)
_DEFAULTS = TypeAdapter(schema.SettingsModel)
_DATABASE = TypeAdapter(Database)
_EXTRA = "extra_forbidden"
_SECRET_KEYS = frozenset({"secret", "proxy", "database"})


def resolve(text: str, name: str, env: Mapping[str, str], path: Path | None) -> Config:
    """The configuration that `text` holds, or ConfigError with every problem in it."""
    tree = read_tree(text, name, env)
    data: dict[str, Any] = tree.data
    for key in data:
        if key not in schema.FileModel.model_fields:
            tree.report((key,), _unknown(key, schema.FileModel))
    database = _checked(tree, _DATABASE, data.get("database"), ("database",))
    model = _checked(tree, _DEFAULTS, data.get("defaults"), ("defaults",))
    defaults = _settings(tree, Settings(), model, ("defaults",))
    # The parts are checked one by one: an error in one site hides nothing in another.
    sites = _sites(tree, _items(tree, data, "sites"), defaults)
    alerts: tuple[Alert, ...] = (StdoutAlert(),)
    if data.get("alerts") is not None:
        alerts = _alerts(tree, _items(tree, data, "alerts"), sites)
    if tree.problems:
        raise ConfigError(sorted(tree.problems, key=lambda problem: problem.line or 0))
    folder = path.parent if path else Path()
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


def _checked(tree: Tree, adapter: TypeAdapter[Value], value: Any, place: Place) -> Value | None:
    """`value` as a model; None, with problems added to `tree`, if it is left out or wrong."""
    if value is None and len(place) == 1:
        return None
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        items = error.errors(include_url=False, include_input=True)
        meant = {(*item["loc"][:-1], _meant((*place, *item["loc"]))) for item in items if item["type"] == _EXTRA}
        for item in items:
            # `page` in place of `pages` is one mistake, not an unknown key and a missing one.
            if item["type"] != "missing" or item["loc"] not in meant:
                _report(tree, place, item)
        return None


def _meant(place: Place) -> str | None:
    """The key that the unknown one at `place` was probably meant to be."""
    return nearest(str(place[-1]), _keys(_model_at(place[:-1])))


def _report(tree: Tree, place: Place, item: Mapping[str, Any]) -> None:
    """Add one of pydantic's errors in our words."""
    where = (*place, *item["loc"])
    kind = item["type"]
    context = item.get("ctx", {})
    given = item["input"]
    if kind == "missing":
        return tree.report(where, "is missing")
    where = tree.known(where)
    if kind == _EXTRA:
        return tree.report(where, _unknown(str(where[-1]), _model_at(where[:-1])))
    if kind == "value_error":
        error = context["error"]
        if isinstance(error, KeyValueError):
            other = tree.shown.get((*where, error.other), "") if error.other else ""
            where = (*where, error.key)
            message = str(error).replace("{other}", repr(printable(other)))
        else:
            message = str(error)
    elif kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        near = nearest(given, choices) if isinstance(given, str) else None
        message = "{value} is not one of " + ", ".join(choices) + (f"; did you mean {near!r}?" if near else "")
    elif kind in ("greater_than_equal", "too_short"):
        message = f"must be {context['ge']} or more" if "ge" in context else "must not be empty"
    elif kind == "model_type" and len(where) > 1 and where[-2] in ("feeds", "sitemaps", "news_sitemaps"):
        message = f"must be a URL or a mapping with a url, not {what(given)}"
    else:
        message = f"must be {_WANTED.get(kind, 'something else')}, not {what(given)}"
        if kind == "list_type" and isinstance(given, str):
            message += "; did you mean ['{raw}']?"
    tree.report(where, _quoted(tree, where, message))
    return None


_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
}


def _quoted(tree: Tree, where: Place, message: str) -> str:
    secret = any(part in _SECRET_KEYS for part in where) or (where[0] == "alerts" and "url" in where)
    shown = tree.shown.get(where)
    if secret or shown is None:
        message = re.sub(r"; did you mean '[^']*\{raw\}[^']*'\?", "", message)
        message = message.partition(DETAIL)[0]
        return message.replace("{value}", "the value").replace("{raw}", "")
    if "${" in shown:  # what is wrong inside the value would show of it
        message = message.partition(DETAIL)[0]
    message = message.replace(DETAIL, ": ")
    return message.replace("{value}", repr(printable(shown))).replace("{raw}", printable(shown))


def _model_at(place: Place) -> type[BaseModel]:
    """The model whose keys stand at `place` in the file."""
    model: type[BaseModel] = schema.FileModel
    for part in place:
        if isinstance(part, str):
            by_key = {info.alias or name: info for name, info in model.model_fields.items()}
            model = next(_models_in(by_key[part].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)


_HOMES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("'defaults' or a site", schema.SettingsModel),
    ("a site", schema.SiteModel),
    ("'poll'", schema.PollModel),
    ("'sitemap'", schema.SitemapModel),
    ("'concurrency'", schema.ConcurrencyModel),
    ("'crawl'", schema.CrawlModel),
    ("'changes'", schema.ChangesModel),
    ("an alert", schema.WebhookModel),
    ("the top of the file", schema.FileModel),
)


def _keys(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _unknown(key: str, model: type[BaseModel]) -> str:
    keys = _keys(model)
    near = nearest(key, keys)
    if near:
        return f"unknown key; did you mean {near!r}?"
    home = next((home for home, other in _HOMES if key in other.model_fields and other is not model), None)
    if home:
        return f"unknown key here; it belongs to {home}"
    return "unknown key; known here: " + ", ".join(keys)


def _merged(base: Value, model: BaseModel | None) -> Value:
    """`base` with what `model` sets."""
    if model is None:
        return base
    changes = {name: value for name in model.model_fields_set if (value := getattr(model, name)) is not None}
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


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
        poll = _merged(poll, model.poll)
        if poll.min > poll.max:
            key, other = ("min", "max") if model.poll.min is not None else ("max", "min")
            inherited = getattr(base.poll, other)
            default = inherited == getattr(Poll(), other)
            origin = f"which is {format_duration(inherited)} by default" if default else "which a level above sets"
            where = (*place, "poll", key)
            relation = "more" if key == "min" else "less"
            tree.report(where, _quoted(tree, where, f"{{value}} is {relation} than {other}, {origin}"))
            poll = base.poll
    return Settings(
        user_agent=model.user_agent or base.user_agent,
        allow_private_networks=(
            base.allow_private_networks if model.allow_private_networks is None else model.allow_private_networks
        ),
        # `proxy: null` takes away the proxy of the level above.
        proxy=model.proxy if "proxy" in model.model_fields_set else base.proxy,
        concurrency=_merged(base.concurrency, model.concurrency),
        poll=poll,
        sitemap=_merged(base.sitemap, model.sitemap),
        baseline=model.baseline or base.baseline,
    )


def _sites(tree: Tree, items: list[Any], defaults: Settings) -> list[Site | None]:
    sites: list[Site | None] = []
    names: dict[str, int] = {}
    for number, item in enumerate(items):
        place: Place = ("sites", number)
        model = _checked(tree, _SITE, item, place)
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
            tree.report((*place, "name"), _quoted(tree, (*place, "name"), message))
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
        crawl=_merged(Crawl(tuple(model.crawl.sections)), _without_lists(model.crawl)) if model.crawl else None,
        changes=_merged(Changes(), model.changes),
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


def _alerts(tree: Tree, items: list[Any], sites: list[Site | None]) -> tuple[Alert, ...]:
    alerts: list[Alert] = []
    for number, item in enumerate(items):
        place: Place = ("alerts", number)
        model = _checked(tree, _ALERT, item, place)
        if model is None:
            continue
        kind = "webhook" if model.webhook else "notify" if model.notify else "stdout"
        inner: schema.FilterModel = getattr(model, kind)
        _known_sites(tree, inner.sites or [], sites, (*place, kind, "sites"))
        written = tree.shown.get((*place, kind, "url"), "")
        name = free_name(_alert_name(kind, written), {alert.name for alert in alerts}, " #")
        common: dict[str, Any] = {
            "name": name,
            "events": tuple(inner.events) if inner.events is not None else ("*",),
            "sites": tuple(inner.sites) if inner.sites is not None else ("*",),
            "match": inner.match,
        }
        if model.webhook:
            secrets = tuple(SecretStr(secret) for secret in model.webhook.secret or ())
            alerts.append(WebhookAlert(url=model.webhook.url, secrets=secrets, **common))
        elif model.notify:
            alerts.append(NotifyAlert(url=SecretStr(model.notify.url), **common))
        elif model.stdout:
            alerts.append(StdoutAlert(format=model.stdout.format, **common))
    return tuple(alerts)


def _alert_name(kind: str, written: str) -> str:
    """A stable name from the URL as the file has it, `${NAME}` unreplaced: no token, no query, no password.

    The services of Apprise have their tokens where URLs have hosts and paths: of those only the scheme is told.
    """
    if kind == "stdout":
        return kind
    if kind == "notify":
        return f"notify {written.partition('://')[0]}"
    return f"webhook {printable(re.split('[?#]', written.strip())[0], 200)}"


def _known_sites(tree: Tree, patterns: list[str], sites: list[Site | None], place: Place) -> None:
    if None in sites:  # the name of a site that is wrong is not known
        return
    names = [site.name for site in sites if site]
    for number, pattern in enumerate(patterns):
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            hint = f"; did you mean {near!r}?" if near else ""
            where = (*place, number)
            tree.report(where, _quoted(tree, where, "{value} matches no site" + hint))
