"""From the checked models of `alerts` to values: names made, sites and files resolved."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr, TypeAdapter

from monitor import config_schema_alerts as schema
from monitor.config_alerts import Alert, FileAlert, NotifyAlert, StdoutAlert, WebhookAlert
from monitor.config_errors import checked, quoted
from monitor.config_load import Place, Tree, nearest, printable
from monitor.config_values import Site, free_name
from monitor.core.alert_rules import Match
from monitor.core.hold import SURGE, Manner

_ALERT = TypeAdapter(schema.Alert)


def alerts_of(tree: Tree, items: list[Any], sites: Sequence[Site | None], folder: Path) -> tuple[Alert, ...]:
    """The alerts of a configuration; what is wrong with them is added to the problems of `tree`."""
    alerts: list[Alert] = []
    for number, item in enumerate(items):
        place: Place = ("alerts", number)
        model = checked(tree, _ALERT, item, place)
        if model is None:
            continue
        kind = next(name for name in schema.KINDS if getattr(model, name) is not None)
        inner: schema.FilterModel = getattr(model, kind)
        _known_sites(tree, inner.sites or [], sites, (*place, kind, "sites"))
        written = tree.shown.get((*place, kind, "path" if kind == "file" else "url"), "")
        name = free_name(_alert_name(kind, written), {alert.name for alert in alerts}, " #")
        alerts.append(_alert(inner, name, folder))
    return tuple(alerts)


def _alert(model: schema.FilterModel, name: str, folder: Path) -> Alert:
    rules: dict[str, Any] = {
        "name": name,
        "events": tuple(model.events) if model.events is not None else ("*",),
        "sites": tuple(model.sites) if model.sites is not None else ("*",),
        "pages": tuple(model.pages or ()),
        "match": _match(model.match),
        "exclude": _match(model.exclude),
        "stop": bool(model.stop),
    }
    if isinstance(model, schema.WebhookModel):
        secrets = tuple(SecretStr(secret) for secret in model.secret or ())
        return WebhookAlert(url=model.url, secrets=secrets, batch=model.batch or 1, **rules)
    if isinstance(model, schema.FileSinkModel):
        keep = 5 if model.keep is None else model.keep
        return FileAlert(path=(folder / model.path).absolute(), max_size=model.max_size, keep=keep, **rules)
    if isinstance(model, schema.NotifyModel):
        return NotifyAlert(url=SecretStr(model.url), template=model.template, manner=_manner(model), **rules)
    assert isinstance(model, schema.StdoutModel)
    return StdoutAlert(format=model.format, **rules)


def _match(model: schema.MatchModel | None) -> Match | None:
    return Match(**model.model_dump()) if model is not None else None


def _manner(model: schema.NotifyModel) -> Manner:
    digest = "surge" if model.digest is None else model.digest
    return Manner(
        quiet=tuple(model.quiet or ()),
        zone=ZoneInfo(model.time_zone) if model.time_zone else None,
        every=digest if isinstance(digest, float) else None,
        surge=SURGE if digest == "surge" else None,
        limit=model.limit,
    )


def _alert_name(kind: str, written: str) -> str:
    """A stable name from the URL as the file has it, `${NAME}` unreplaced: no token, no query, no password.

    The services of Apprise have their tokens where URLs have hosts and paths: of those only the scheme is told.
    """
    if kind == "stdout":
        return kind
    if kind == "file":
        return f"file {printable(written.strip(), 200)}"
    if kind == "notify":
        return f"notify {written.partition('://')[0]}"
    return f"webhook {printable(re.split('[?#]', written.strip())[0], 200)}"


def _known_sites(tree: Tree, patterns: list[str], sites: Sequence[Site | None], place: Place) -> None:
    if None in sites:  # the name of a site that is wrong is not known
        return
    names = [site.name for site in sites if site]
    for number, pattern in enumerate(patterns):
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            hint = f"; did you mean {near!r}?" if near else ""
            where = (*place, number)
            tree.report(where, quoted(tree, where, "{value} matches no site" + hint))
