"""The JSON Schemas: valid themselves, and of one mind with the loader and the contract."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from monitor import config
from monitor.event_schema import EVENT_TYPES, REASONS, event_schema
from monitor.model import Event
from tests.test_config import CONTRACT

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema, which checks the schemas, is not installed")


def config_errors(text: str) -> list[str]:
    data = YAML(typ="safe", pure=True).load(text)
    return [error.message for error in jsonschema.Draft202012Validator(config.json_schema()).iter_errors(data)]


def event_errors(event: dict[str, Any]) -> list[str]:
    checker = jsonschema.Draft202012Validator(event_schema(), format_checker=jsonschema.FormatChecker())
    return [error.message for error in checker.iter_errors(event)]


def test_both_are_schemas() -> None:
    jsonschema.Draft202012Validator.check_schema(config.json_schema())
    jsonschema.Draft202012Validator.check_schema(event_schema())


def properties(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "properties":
                yield from value.items()
            yield from properties(value)
    elif isinstance(node, list):
        for item in node:
            yield from properties(item)


@pytest.mark.parametrize("schema", [config.json_schema(), event_schema()], ids=["config", "event"])
def test_every_key_has_a_description(schema: dict[str, Any]) -> None:
    found = list(properties(schema))
    assert len(found) > 30
    bare = {key for key, value in found if not value.get("description")}
    assert bare <= {"type", "data"}  # these two stand in the branches by type, and are described above them


@pytest.mark.parametrize(
    "text",
    [
        CONTRACT,
        (Path(__file__).parent.parent / "sites.yaml").read_text(encoding="utf-8"),
        "sites: [{url: https://a.example/}]",
        "sites: [{url: '${HOME_PAGE}', poll: {min: '${MIN}', requests_per_day: '${N}'}, baseline: '${BASELINE}'}]",
        "sites: [{url: https://a.example/, feeds: [{url: https://a.example/f, poll: {max: 1.5h}}], proxy: null}]",
        "alerts: [stdout, {stdout: null}, {stdout: {}}]\nsites: [{url: https://a.example/, feeds: null}]",
        "alerts: [{webhook: {url: https://a.example/, secret: ['${A}', '${B}']}}]\nsites: [{url: https://a.example/}]",
    ],
)
def test_what_loads_is_valid(text: str) -> None:
    env = {"HOOK_SECRET": "whsec_AAAA", "HOME_PAGE": "https://a.example/", "MIN": "5m", "N": "9", "BASELINE": "alert"}
    env |= {"A": "whsec_AAAA", "B": "whsec_BBBB"}
    config.loads(text, name="sites.yaml", env=env)
    assert config_errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "sites: []",
        "database: sqlite://",
        "sites: [{name: a}]",
        "sites: [{url: a.example}]",
        "sites: [{url: https://a.example/, feedz: []}]",
        "sites: [{url: https://a.example/, feeds: [7]}]",
        "sites: [{url: https://a.example/, name: a/b}]",
        "sites: [{url: https://a.example/, poll: {min: 15}}]",
        "sites: [{url: https://a.example/, poll: {min: 1w}}]",
        "sites: [{url: https://a.example/, baseline: loud}]",
        "sites: [{url: https://a.example/, concurrency: {total: 0}}]",
        "sites: [{url: https://a.example/, crawl: {}}]",
        "alerts: [{}]\nsites: [{url: https://a.example/}]",
        "alerts: [{stdout: {}, notify: {url: slack://x}}]\nsites: [{url: https://a.example/}]",
        "alerts: [{webhook: {url: https://a.example/, secret: x}}]\nsites: [{url: https://a.example/}]",
        "database: mysql://x\nsites: [{url: https://a.example/}]",
    ],
)
def test_what_is_invalid_does_not_load(text: str) -> None:
    assert config_errors(text)
    with pytest.raises(config.ConfigError):
        config.loads(text, name="sites.yaml", env={})


CONTRACT_EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "01J0000000000000000000000A",
    "type": "url.new",
    "source": "/sites/example",
    "subject": "https://www.example.com/news/a",
    "time": "2026-12-01T09:00:03.120Z",
    "datacontenttype": "application/json",
    "data": {
        "site": "example",
        "url": "https://www.example.com/news/a",
        "observed_url": "https://www.example.com/news/a?utm_source=rss",
        "found_in": {"kind": "feed", "url": "https://www.example.com/feed.xml"},
        "entry": {
            "id": "tag:example.com,2026:1",
            "title": "A headline",
            "published": "2026-12-01T08:58:00Z",
            "updated": None,
            "authors": [],
            "tags": [],
            "summary": None,
        },
        "delay_seconds": 123.1,
    },
}

COMMON = {
    "site": "example",
    "url": "https://www.example.com/a",
    "found_in": {"kind": "sitemap", "url": "https://www.example.com/sitemap.xml"},
}
DATA: dict[str, dict[str, Any]] = {
    "url.new": {"observed_url": "https://www.example.com/a", "entry": None, "delay_seconds": None, "late": False},
    "url.changed": {"changed": ["title"], "before": {"title": "A"}, "after": {"title": "B"}, "evidence": "entry"},
    "url.missing": {
        "reason": "removed",
        "missing_from": ["sitemap"],
        "last_seen": "2026-12-01T08:58:00Z",
        "page": {"status": 200, "final_url": None, "noindex": False},
    },
    "url.returned": {"reason": "removed", "missing_seconds": 60.0},
    "source.baseline": {"pages": 10, "files": 1, "seconds": 0.5},
    "source.gap": {
        "known_before": 20,
        "oldest_now": "2026-12-01T08:58:00Z",
        "estimated_lost": 3,
        "recovered": 0,
    },
    "source.failing": {"status": 500, "error": "server error", "since": "2026-12-01T08:58:00Z"},
    "source.recovered": {"status": 200, "error": None, "since": "2026-12-01T08:58:00Z"},
    "source.moved": {"to": "https://www.example.com/b"},
    "source.gone": {"status": 410, "error": None},
    "source.surge": {"count": 5000, "sample": ["https://www.example.com/a"], "usual": 12},
    "source.untrusted": {"evidence": ["most rows share one instant"]},
    "source.trusted": {"evidence": []},
}


def event(kind: str, **changes: Any) -> dict[str, Any]:
    made = Event(
        "01J", kind, "example", "https://www.example.com/a", datetime(2026, 12, 1, tzinfo=UTC), COMMON | DATA[kind]
    )
    envelope = made.envelope()
    return envelope | {"data": envelope["data"] | changes}


def test_the_contract_event_is_valid() -> None:
    assert event_errors(CONTRACT_EVENT) == []


def test_every_type_has_an_example_here() -> None:
    assert tuple(DATA) == EVENT_TYPES


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_events_are_valid_and_may_gain_fields(kind: str) -> None:
    assert event_errors(event(kind)) == []
    assert event_errors(event(kind, something_new=1)) == []


@pytest.mark.parametrize("kind", EVENT_TYPES)
@pytest.mark.parametrize("field", ["site", "url", "found_in"])
def test_events_need_what_is_common_to_all(kind: str, field: str) -> None:
    made = event(kind)
    del made["data"][field]
    assert event_errors(made)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("url.new", {"delay_seconds": -1}),
        ("url.new", {"found_in": {"kind": "rumour", "url": "x"}}),
        ("url.changed", {"evidence": "hearsay"}),
        ("url.missing", {"reason": "vanished"}),
        ("url.missing", {"missing_from": "sitemap"}),
        ("source.baseline", {"pages": "ten"}),
        ("source.moved", {"to": None}),
    ],
)
def test_wrong_data_is_invalid(kind: str, changes: dict[str, Any]) -> None:
    assert event_errors(event(kind, **changes))


@pytest.mark.parametrize(
    "change", [{"type": "url.seen"}, {"specversion": "0.3"}, {"source": "example"}, {"data": None}]
)
def test_wrong_envelopes_are_invalid(change: dict[str, Any]) -> None:
    assert event_errors(event("url.new") | change)


@pytest.mark.parametrize("reason", REASONS)
def test_reasons(reason: str) -> None:
    assert event_errors(event("url.missing", reason=reason)) == []
