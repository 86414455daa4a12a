"""What is wrong with a configuration, in our words: pydantic's errors at their place in the file, secrets unsaid."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from monitor import config_schema as schema
from monitor import config_schema_alerts as alert_schema
from monitor.config_load import Place, Tree, nearest, printable
from monitor.config_types import DETAIL, KeyValueError, what

Value = TypeVar("Value")

_EXTRA = "extra_forbidden"
_SECRET_KEYS = frozenset({"secret", "proxy", "database"})


def merged(base: Value, model: BaseModel | None) -> Value:
    """`base` with what `model` sets."""
    if model is None:
        return base
    changes = {name: value for name in model.model_fields_set if (value := getattr(model, name)) is not None}
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


def checked(tree: Tree, adapter: TypeAdapter[Value], value: Any, place: Place) -> Value | None:
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
        return tree.report(where, unknown(str(where[-1]), _model_at(where[:-1])))
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
    tree.report(where, quoted(tree, where, message))
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


def quoted(tree: Tree, where: Place, message: str) -> str:
    """`message` with ``{value}`` and ``{raw}`` replaced by what the file has at `where`, if that may be shown."""
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
    ("a webhook alert", alert_schema.WebhookModel),
    ("a notify alert", alert_schema.NotifyModel),
    ("a file alert", alert_schema.FileSinkModel),
    ("the top of the file", schema.FileModel),
)


def _keys(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def unknown(key: str, model: type[BaseModel]) -> str:
    """What is said of a key that `model` does not have."""
    keys = _keys(model)
    near = nearest(key, keys)
    if near:
        return f"unknown key; did you mean {near!r}?"
    home = next((home for home, other in _HOMES if key in other.model_fields and other is not model), None)
    if home:
        return f"unknown key here; it belongs to {home}"
    return "unknown key; known here: " + ", ".join(keys)
