"""Alerts in sites.yaml: rules, manners, secrets from files; each mistake a sentence with its line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from monitor import config
from monitor.config import ConfigError, FileAlert, NotifyAlert, WebhookAlert
from monitor.core.hold import SURGE
from monitor.model import Event
from monitor.runtime import routes_of
from monitor.store.events import recipients

SITES = "sites: [{name: paper, url: https://paper.example/}]\n"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def load(text: str, path: Path | None = None, **env: str) -> config.Config:
    return config.loads(text + SITES, name="sites.yaml", env=env, path=path)


def event(kind: str = "url.new", url: str = "https://paper.example/news/politics/vote-7", **entry: Any) -> Event:
    data = {"site": "paper", "url": url, "entry": entry or None}
    return Event("01X", kind, "paper", url, datetime(2026, 12, 1, tzinfo=UTC), data)


VOTE = event(title="Council votes on the budget", authors=["Ada Lovelace"], tags=["Politics"])


@pytest.mark.parametrize(
    ("rules", "taken"),
    [
        ("match: budget", True),
        ("match: Lovelace", True),
        ("match: /politics/", True),
        ("match: election", False),
        ("match: {title: budget}", True),
        ("match: {url: budget}", False),
        ("match: {section: '^Politics$'}", True),
        ("match: {section: '^/news/politics/$'}", True),
        ("match: {author: Ada, title: budget}", True),
        ("match: {author: Grace, title: budget}", False),
        ("exclude: budget", False),
        ("exclude: {author: Grace, title: budget}", False),
        ("exclude: {author: Grace}", True),
        ("match: budget, exclude: {section: Sport}", True),
        ('pages: ["/news/**"]', True),
        ('pages: ["/sport/**", "/news/*/vote-*"]', True),
        ('pages: ["/sport/**"]', False),
    ],
)
def test_rules_look_at_title_url_section_and_author(rules: str, taken: bool) -> None:
    (alert,) = load(f"alerts: [{{stdout: {{{rules}}}}}]\n").alerts
    assert alert.takes_event(VOTE) is taken


def test_an_alert_for_pages_takes_nothing_about_sources() -> None:
    (alert,) = load('alerts: [{stdout: {pages: ["/**"]}}]\n').alerts
    assert alert.takes_event(event())
    assert not alert.takes_event(event("source.failing", "https://paper.example/feed.xml"))


def test_what_has_no_title_and_no_entry_is_matched_by_its_url() -> None:
    (alert,) = load("alerts: [{stdout: {match: {title: budget}}}]\n").alerts
    assert not alert.takes_event(event("url.missing"))
    (alert,) = load("alerts: [{stdout: {match: vote}}]\n").alerts
    assert alert.takes_event(event("url.missing"))


def test_the_first_that_stops_an_event_is_the_last_to_have_it() -> None:
    loaded = load("""
alerts:
  - file: {path: all.jsonl}
  - webhook: {url: https://h.example/sport, match: {section: Sport}, stop: true}
  - webhook: {url: https://h.example/politics, match: {section: Politics}, stop: true}
  - webhook: {url: https://h.example/rest}
""")
    got = recipients(routes_of(loaded), VOTE)
    assert got == ["file all.jsonl", "webhook https://h.example/politics"]
    assert recipients(routes_of(loaded), event())[1:] == ["webhook https://h.example/rest"]


def test_manners_and_files_are_values() -> None:
    loaded = load(
        """
alerts:
  - notify: {url: "slack://a/b/c"}
  - notify: {url: "slack://a/b/c", quiet: "22:00-07:00", time_zone: Europe/Berlin, digest: 15m, limit: 20/1h}
  - notify: {url: "slack://a/b/c", quiet: ["12:00-13:00", "20:00-24:00"], digest: never, template: "{{{title}}} {url}"}
  - file: {path: out/events.jsonl, max_size: 10MB, keep: 2}
  - webhook: {url: https://h.example/, batch: 50}
""",
        Path("/etc/monitor/sites.yaml"),
    )
    usual, held, plain, file, hook = loaded.alerts
    assert isinstance(usual, NotifyAlert)
    assert (usual.manner.surge, usual.manner.every, usual.manner.limit) == (SURGE, None, None)
    assert isinstance(held, NotifyAlert)
    assert held.manner.quiet == ((22 * 60, 7 * 60),)
    assert (held.manner.zone, held.manner.every) == (ZoneInfo("Europe/Berlin"), 900.0)
    assert (held.manner.surge, held.manner.limit) == (None, (20, 3600.0))
    assert isinstance(plain, NotifyAlert)
    assert (plain.manner.surge, plain.manner.quiet) == (None, ((720, 780), (1200, 1440)))
    assert isinstance(file, FileAlert)
    assert (file.path, file.max_size, file.keep) == (Path("/etc/monitor/out/events.jsonl"), 10_000_000, 2)
    assert isinstance(hook, WebhookAlert)
    assert hook.batch == 50


def test_secrets_stand_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "old.key").write_text(f"{SECRET}\n")
    (tmp_path / "slack").write_text("slack://t0psecretA/t0psecretB/t0psecretC")
    loaded = load(
        f"""
alerts:
  - webhook: {{url: https://h.example/, secret: ["${{NEW}}", "${{file:old.key}}"]}}
  - notify: {{url: "${{file:{tmp_path}/slack}}"}}
""",
        tmp_path / "sites.yaml",
        NEW=SECRET,
    )
    hook, slack = loaded.alerts
    assert isinstance(hook, WebhookAlert)
    assert [secret.get_secret_value() for secret in hook.secrets] == [SECRET, SECRET]
    assert isinstance(slack, NotifyAlert)
    assert slack.url.get_secret_value().startswith("slack://t0psecretA")
    assert "t0psecret" not in repr(loaded)
    assert "t0psecret" not in slack.name
    assert SECRET not in repr(loaded)


@pytest.mark.parametrize(
    ("alert", "sentence"),
    [
        ("notify: {url: a://b, quiet: 22-7}", "notify.quiet: '22-7' is no span of hours; write it as 22:00-07:00"),
        ("notify: {url: a://b, quiet: '07:00-07:00'}", "is no span: it ends when it begins"),
        ("notify: {url: a://b, time_zone: Europe/Berln}", "is no time zone; did you mean 'Europe/Berlin'?"),
        ("notify: {url: a://b, digest: often}", "'often' is neither a duration such as 15m nor surge nor never"),
        ("notify: {url: a://b, limit: 20}", "notify.limit: must be text, not a number"),
        ("notify: {url: a://b, limit: 0/1h}", "'0/1h' is no limit; write messages and a time: 20/1h"),
        ("notify: {url: a://b, template: '{titel}'}", "did you mean {title}?"),
        ("notify: {url: a://b, template: '{title.__class__}'}", "no field of a template; known are mark, type"),
        ("notify: {url: a://b, template: 'a } b'}", "a single '}'; write '}}' for a literal one"),
        ("file: {path: x, max_size: 10}", "file.max_size: must be text, not a number"),
        ("file: {path: x, max_size: 10M}", "'10M' is no size; write a number and a unit: 500KB, 10MB, 1GB"),
        ("webhook: {url: https://h.example/, batch: 0}", "webhook.batch: must be 1 or more"),
        ("webhook: {url: https://h.example/, template: x}", "unknown key here; it belongs to a notify alert"),
        ("stdout: {match: {titel: x}}", "stdout.match.titel: unknown key; did you mean 'title'?"),
        ("stdout: {match: {title: '('}}", "stdout.match.title: '(' is no regular expression"),
        ("stdout: {pages: [news]}", "stdout.pages[0]: 'news' is no page pattern; did you mean '/news'?"),
        ("webhook: {url: https://h.example/, secret: '${file:none}'}", "secret: the file none cannot be read"),
        ("webhook: {url: https://h.example/, secret: '${file:/etc}'}", "secret: the file /etc cannot be read"),
    ],
)
def test_mistakes_are_sentences(alert: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"alerts: [{{{alert}}}]\n")
    assert sentence in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_a_secret_file_that_is_no_text_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"t0psecret\xff")
    (tmp_path / "huge").write_bytes(b"t0psecret" * 10_000)
    for name, why in (("key", "is no text in UTF-8"), ("huge", "holds more than 65536 bytes")):
        with pytest.raises(ConfigError, match=why) as caught:
            load(f"database: '${{file:{name}}}'\n", tmp_path / "sites.yaml")
        assert "t0psecret" not in str(caught.value)
