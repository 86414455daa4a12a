"""`sites.yaml`: what loads, and what it means."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor import config
from monitor.config import ConfigError, Poll, SitemapSettings, StdoutAlert

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ENV = {"HOOK_SECRET": SECRET, "TOKEN": "t0psecret", "NUMBER": "7", "EMPTY": ""}

CONTRACT = """\
database: sqlite:///monitor.db        # or postgresql://...
defaults:                             # each may be set again on a site or a source
  user_agent: "example-monitor/1.0 (+https://example.org/bot)"
  allow_private_networks: false       # true lets sites and webhooks be on loopback or private addresses
  proxy: null
  concurrency: {total: 100, per_host: 2, host_delay: 0s}
  poll: {min: 1m, max: 1d, target_delay: 10m, requests_per_day: null}
  sitemap: {every: 6h, news_every: 10m, max_files: 50000, max_depth: 5, confirm_missing: 2}
  baseline: quiet                     # or alert
alerts:
  - stdout: {format: jsonl}           # jsonl | text
  - webhook: {url: "https://example.org/hook", secret: "${HOOK_SECRET}", events: ["url.*"], sites: ["*"]}
  - notify: {url: "slack://...", events: ["url.new"], match: "election|budget"}   # any Apprise URL
sites:
  - name: example
    url: https://www.example.com/
    hosts: [amp.example.com]          # further hosts that count as this site
    feeds: [https://www.example.com/feed.xml]     # left out: discovered
    sitemaps: [https://www.example.com/sitemap_index.xml]
    news_sitemaps: []                 # left out: told apart by content
    include: ["/news/**"]
    exclude: ["/news/live/**"]
    expect:                           # coverage promises; a broken one is a url.missing event
      - {pages: "/news/**", in: news_sitemap, within: 30m}
      - {pages: "/news/**", in: sitemap, within: 1d}
    crawl: {sections: ["/news/"], max_pages: 500, every: 1d}
    changes: {verify: auto, sample: 20}     # auto | always | never: fetch pages to confirm a change
"""


def load(text: str, **env: str) -> config.Config:
    return config.loads(text, name="sites.yaml", env={**ENV, **env})


def site(**keys: Any) -> str:
    """A file with one site, the given keys on its third line and on."""
    body = "\n    ".join(f"{key}: {value}" for key, value in keys.items())
    return f"sites:\n  - url: https://www.example.com/\n    {body}\n"


def test_contract_example() -> None:
    loaded = load(CONTRACT)
    assert loaded.database == f"sqlite:///{Path.cwd()}/monitor.db"
    assert loaded.defaults.user_agent == "example-monitor/1.0 (+https://example.org/bot)"
    assert loaded.defaults.concurrency == config.Concurrency(100, 2, 0.0)
    (only,) = loaded.sites
    assert (only.name, only.url, only.hosts) == ("example", "https://www.example.com/", ("amp.example.com",))
    assert only.feeds == ("https://www.example.com/feed.xml",)
    assert only.news_sitemaps == ()
    assert only.poll == Poll(60.0, 86400.0, 600.0, None)
    assert only.sitemap == SitemapSettings(21600.0, 600.0, 50_000, 5, 2)
    assert only.expect == (
        config.Expect("/news/**", "news_sitemap", 1800.0),
        config.Expect("/news/**", "sitemap", 86400.0),
    )
    assert only.crawl == config.Crawl(("/news/",), 500, 86400.0)
    assert only.changes == config.Changes("auto", 20)
    assert [alert.name for alert in loaded.alerts] == ["stdout", "webhook https://example.org/hook", "notify slack"]
    webhook = loaded.alerts[1]
    assert isinstance(webhook, config.WebhookAlert)
    assert [secret.get_secret_value() for secret in webhook.secrets] == [SECRET]
    assert webhook.events == ("url.*",)


def test_the_contract_only_spells_out_the_defaults() -> None:
    """A site that needs only its URL means the same as the contract's example, where that says nothing of its own."""
    least = load("sites: [{url: https://www.example.com/}]")
    full = load(CONTRACT)
    assert dataclasses.replace(full.defaults, user_agent=least.defaults.user_agent) == least.defaults
    assert least.defaults.user_agent.startswith("monitor/")
    assert least.alerts == (StdoutAlert(),)
    (only,) = least.sites
    assert only.name == "example.com"
    assert (only.feeds, only.sitemaps, only.news_sitemaps) == (None, None, None)
    assert (only.include, only.expect, only.crawl) == ((), (), None)
    assert only.changes == full.sites[0].changes
    assert least.database == full.database


def test_the_example_file_loads(tmp_path: Path) -> None:
    path = Path(__file__).parent.parent / "sites.yaml"
    loaded = config.load(path, {})
    assert [site.name for site in loaded.sites] == ["theguardian.com", "spiegel", "latimes-california", "bbc"]
    assert loaded.database == f"sqlite:///{path.parent}/monitor.db"
    assert loaded.path == path


def test_equal_files_are_equal_configurations() -> None:
    assert load(CONTRACT) == load(CONTRACT.replace("# or alert", ""))
    assert load(CONTRACT) != load(CONTRACT.replace("1d", "2d"))
    assert load(CONTRACT) != load(CONTRACT, HOOK_SECRET="whsec_" + "A" * 32)


def test_levels() -> None:
    loaded = load("""
defaults:
  proxy: http://proxy.example.org:3128
  poll: {min: 2m, requests_per_day: 5000}
  concurrency: {host_delay: 1.5s}
sites:
  - name: a
    url: https://a.example/
    proxy: null
    poll: {max: 6h}
    feeds:
      - https://a.example/1
      - {url: https://a.example/2, poll: {target_delay: 5m}, baseline: alert, user_agent: other}
    sitemaps: [{url: https://a.example/s, sitemap: {every: 1h}}]
  - {name: b, url: https://b.example/, poll: {target_delay: 1h}, concurrency: {per_host: 1}}
""")
    a, b = loaded.sites
    assert loaded.defaults.poll == Poll(120.0, 86400.0, None, 5000)
    assert a.poll == Poll(120.0, 21600.0, None, 5000)
    assert a.proxy is None
    assert a.source_settings("https://a.example/1") == a.settings
    second = a.source_settings("https://a.example/2")
    assert second.poll == Poll(120.0, 21600.0, 300.0, None)
    assert (second.baseline, second.user_agent, second.proxy) == ("alert", "other", None)
    assert a.source_settings("https://a.example/s").sitemap == SitemapSettings(every=3600.0)
    assert a.source_settings("https://a.example/s").poll == a.poll
    assert b.poll == Poll(120.0, 86400.0, 3600.0, None)
    assert b.proxy == "http://proxy.example.org:3128"
    assert b.concurrency == config.Concurrency(100, 1, 1.5)


def test_alerts_take_what_their_filters_name() -> None:
    loaded = load("""
alerts:
  - webhook: {url: https://h.example/, events: ["url.*", source.gap], sites: ["a*"]}
  - stdout:
sites: [{name: abc, url: https://a.example/}, {name: b, url: https://b.example/}]
""")
    webhook, stdout = loaded.alerts
    assert webhook.takes("url.new", "abc")
    assert webhook.takes("source.gap", "abc")
    assert not webhook.takes("source.moved", "abc")
    assert not webhook.takes("url.new", "b")
    assert stdout.takes("source.moved", "b")


def test_alert_names_are_stable_unique_and_tell_no_secret() -> None:
    loaded = load(
        """
alerts:
  - stdout
  - webhook: {url: "https://user:pass@h.example/a?token=${TOKEN}#x"}
  - webhook: {url: "https://h.example/hooks/${TOKEN}"}
  - webhook: {url: "https://h.example/a?token=2", secret: ["${HOOK_SECRET}", "${HOOK_SECRET}"]}
  - webhook: {url: "https://***@h.example/a"}
  - stdout: {format: text}
  - notify: {url: "tgram://${TOKEN}/1"}
sites: [{url: https://a.example/}]
"""
    )
    assert [alert.name for alert in loaded.alerts] == [
        "stdout",
        "webhook https://***@h.example/a",
        "webhook https://h.example/hooks/${TOKEN}",
        "webhook https://h.example/a",
        "webhook https://***@h.example/a #2",
        "stdout #2",
        "notify tgram",
    ]
    assert not any(secret in repr(loaded) for secret in (SECRET, "t0psecret", "pass"))
    hook = loaded.alerts[2]
    assert isinstance(hook, config.WebhookAlert)
    assert hook.url == "https://h.example/hooks/t0psecret"


def test_no_alerts_at_all() -> None:
    assert load("alerts: []\nsites: [{url: https://a.example/}]").alerts == ()


def test_environment() -> None:
    loaded = load(
        """
defaults: {poll: {min: "${NUMBER}m"}, concurrency: {total: "${NUMBER}"}, allow_private_networks: "${YES}"}
sites:
  - {url: "https://${TOKEN}.example/$${TOKEN}/$HOME/${EMPTY}", name: "${NUMBER}"}
""",
        YES="true",
    )
    assert loaded.defaults.poll.min == 420.0
    assert loaded.defaults.concurrency.total == 7
    assert loaded.defaults.allow_private_networks is True
    assert loaded.sites[0].url == "https://t0psecret.example/${TOKEN}/$HOME/"
    assert loaded.sites[0].name == "7"
    assert type(loaded.sites[0].url) is str
    assert "t0psecret" not in repr(loaded)


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "sites.yaml"
    path.write_bytes(b"\xef\xbb\xbfsites:\r\n  - url: https://a.example/\r\n    nam: x\r\n")
    with pytest.raises(ConfigError, match=r":3: sites\[0\].nam: unknown key; did you mean 'name'\?$"):
        config.load(path, {})


def test_aliases_and_merge_keys() -> None:
    loaded = load("""
defaults: {poll: &often {min: 2m, max: 1h}}
sites:
  - {url: https://a.example/, poll: {<<: *often, max: 2h}}
  - {url: https://b.example/, poll: *often}
""")
    assert [(site.poll.min, site.poll.max) for site in loaded.sites] == [(120.0, 7200.0), (120.0, 3600.0)]


@given(st.integers(0, 3650 * 86400 * 1000).map(lambda thousandths: thousandths / 1000))
def test_durations_round_trip(seconds: float) -> None:
    assert config.parse_duration(config.format_duration(seconds)) == pytest.approx(seconds, abs=5e-4)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("15m", 900), ("6h", 21600), ("2d", 172800), ("1.5h", 5400), ("0.25s", 0.25)],
)
def test_durations(text: str, seconds: float) -> None:
    assert config.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (60, "1m"), (90, "90s"), (86400, "1d"), (5400, "90m"), (0.5, "0.5s")]
)
def test_durations_are_written_short(seconds: float, text: str) -> None:
    assert config.format_duration(seconds) == text


def test_pages_and_hosts_of_a_site() -> None:
    (one,) = load(
        site(include="[/news/**]", exclude="['/news/live/**']", hosts="[AMP.example.com, münchen.example]")
    ).sites
    assert one.match_page("https://www.example.com/news/a")
    assert not one.match_page("https://www.example.com/news/live/a")
    assert not one.match_page("https://www.example.com/sport/a")
    assert one.hosts == ("amp.example.com", "xn--mnchen-3ya.example")
    assert all(map(one.owns_host, ("example.com", "www.example.com", "amp.example.com", "xn--mnchen-3ya.example")))
    assert not one.owns_host("other.example.com")
    (every,) = load("sites: [{url: https://example.com/}]").sites
    assert every.match_page("https://example.com/anything")
    assert every.owns_host("www.example.com")


@pytest.mark.parametrize(
    ("url", "resolved"),
    [
        ("sqlite:///monitor.db", "sqlite:////etc/news/monitor.db"),
        ("sqlite:///data/a.db?timeout=5", "sqlite:////etc/news/data/a.db?timeout=5"),
        ("sqlite:////var/a.db", "sqlite:////var/a.db"),
        ("sqlite://", "sqlite://"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
    ],
)
def test_relative_databases_lie_beside_the_configuration(url: str, resolved: str) -> None:
    assert config.resolve_database(url, Path("/etc/news")) == resolved


def test_minimal() -> None:
    made = config.minimal(["http://127.0.0.1:8000/", "http://127.0.0.1:8001/", "https://www.example.com/news"])
    assert [site.name for site in made.sites] == ["127.0.0.1", "127.0.0.1-2", "example.com"]
    assert made.alerts == (StdoutAlert(),)
    assert (made.path, made.database) == (None, "sqlite://")
    assert made.site("example.com") is made.sites[2]
    assert made.site("nope") is None
    with pytest.raises(ConfigError, match=r"^'example.org' has no scheme; did you mean 'https://example.org'\?$"):
        config.minimal(["example.org"])
