"""The exact sentence for everything that does not load."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor import config
from monitor.config import ConfigError
from monitor.config_load import MAX_BYTES
from tests.test_config import site

ENV = {"TOKEN": "t0psecret", "EMPTY": ""}


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config.loads(text, name="sites.yaml", env=ENV)
    lines = str(caught.value).splitlines()
    assert lines == [str(problem) for problem in caught.value.problems]
    return lines


OK = "sites: [{url: https://a.example/}]\n"
BAD = [
    # the file as a whole
    ("", "sites.yaml: is empty; a configuration needs at least 'sites:'"),
    ("# only a comment\n", "sites.yaml: is empty; a configuration needs at least 'sites:'"),
    ("- a\n- b\n", "sites.yaml:1: holds a list, not keys with values; a configuration starts with 'sites:'"),
    ("\nhello", "sites.yaml:2: holds one text, not keys with values; a configuration starts with 'sites:'"),
    (
        OK + "\tdatabase: x\n",
        "sites.yaml:2: a tab or a reserved character stands where a value starts; indent with spaces",
    ),
    (OK + "database: a: b\n", "sites.yaml:2: a ':' where none may be; quote a text that holds ': '"),
    (OK + "database: 'x\n", "sites.yaml:3: a quotation mark is never closed"),
    (OK + "database: [x\n", "sites.yaml:3: the file ends inside a bracket or a quotation"),
    ("sites:\n  - url: a\n name: b\n", "sites.yaml:3: the indentation does not fit the lines above"),
    (OK + "---\n" + OK, "sites.yaml:2: more than one YAML document; remove the '---'"),
    (
        OK + "database: *x\n",
        "sites.yaml:2: an alias (*name) without its anchor (&name); quote a text that starts with '*'",
    ),
    (
        OK + "defaults: {proxy: ${TOKEN}}\n",
        "sites.yaml:2: a '{' where none may be; inside { } and [ ] quote \"${NAME}\"",
    ),
    (OK + "database: a\x01\n", "sites.yaml:2: holds control characters; is it a text file?"),
    ("a: &a [*a]\n" + OK, "sites.yaml:1: is nested too deeply, or an alias holds itself"),
    (OK + "database: !secret x\n", "sites.yaml:2: database: the tag '!secret' is not used here"),
    # keys
    (OK + "databse: x\n", "sites.yaml:2: databse: unknown key; did you mean 'database'?"),
    (OK + "DATABASE: x\n", "sites.yaml:2: DATABASE: unknown key; did you mean 'database'?"),
    (OK + "poll: {min: 1m}\n", "sites.yaml:2: poll: unknown key here; it belongs to 'defaults' or a site"),
    (OK + "feeds: []\n", "sites.yaml:2: feeds: unknown key here; it belongs to a site"),
    (OK + "xyzzy: 1\n", "sites.yaml:2: xyzzy: unknown key; known here: database, defaults, alerts, sites"),
    (OK + "7: 1\n", "sites.yaml:2: 7: unknown key; known here: database, defaults, alerts, sites"),
    (OK + "? [a]\n: 1\n", "sites.yaml:2: a key must be a text, not a list or a mapping"),
    (OK + OK, "sites.yaml:2: sites: this key stands twice; first in line 1"),
    (site(feedz="[a]"), "sites.yaml:3: sites[0].feedz: unknown key; did you mean 'feeds'?"),
    (site(min="1m"), "sites.yaml:3: sites[0].min: unknown key here; it belongs to 'poll'"),
    (site(poll="{mim: 1m}"), "sites.yaml:3: sites[0].poll.mim: unknown key; did you mean 'min'?"),
    (
        site(feeds="[{url: https://a.example/, pol: {}}]"),
        "sites.yaml:3: sites[0].feeds[0].pol: unknown key; did you mean 'poll'?",
    ),
    (
        site(expect="[{page: /a, in: feed, within: 1h}]"),
        "sites.yaml:3: sites[0].expect[0].page: unknown key; did you mean 'pages'?",
    ),
    # types
    ("sites: {url: https://a.example/}\n", "sites.yaml:1: sites: must be a list, not a mapping"),
    ("sites: []\n", "sites.yaml:1: sites: names no site; write a list of sites, each with a url"),
    ("database: sqlite://\n", "sites.yaml:1: sites: names no site; write a list of sites, each with a url"),
    ("sites:\n  - https://a.example/\n", "sites.yaml:2: sites[0]: must be a mapping of keys to values, not text"),
    ("sites:\n  -\n", "sites.yaml:2: sites[0]: must be a mapping of keys to values, not nothing"),
    ("sites:\n  - name: a\n", "sites.yaml:2: sites[0].url: is missing"),
    (site(name="7"), "sites.yaml:3: sites[0].name: must be text, not a number"),
    (site(hosts="a.example"), "sites.yaml:3: sites[0].hosts: must be a list, not text; did you mean ['a.example']?"),
    (site(feeds="[7]"), "sites.yaml:3: sites[0].feeds[0]: must be a URL or a mapping with a url, not a number"),
    (site(poll="1m"), "sites.yaml:3: sites[0].poll: must be a mapping of keys to values, not text"),
    (
        site(allow_private_networks="yes"),
        "sites.yaml:3: sites[0].allow_private_networks: must be true or false, not text",
    ),
    (
        site(concurrency="{total: 1.5}"),
        "sites.yaml:3: sites[0].concurrency.total: must be a whole number, not a number",
    ),
    (
        site(sitemap="{max_depth: true}"),
        "sites.yaml:3: sites[0].sitemap.max_depth: must be a whole number, not true or false",
    ),
    # durations
    (site(poll="{min: 15}"), "sites.yaml:3: sites[0].poll.min: '15' needs a unit: 15s, 15m, 15h or 15d"),
    (site(poll="{min: 0}"), "sites.yaml:3: sites[0].poll.min: '0' needs a unit: 0s, 0m, 0h or 0d"),
    (site(poll="{min: 0s}"), "sites.yaml:3: sites[0].poll.min: must be more than 0s"),
    (site(poll="{min: -5m}"), "sites.yaml:3: sites[0].poll.min: '-5m' is negative; a duration is 0s or more"),
    (
        site(poll="{min: 1w}"),
        "sites.yaml:3: sites[0].poll.min: '1w' is no duration; write a number and a unit: 90s, 15m, 6h or 2d",
    ),
    (site(poll="{min: 9999d}"), "sites.yaml:3: sites[0].poll.min: '9999d' is more than ten years"),
    (site(poll="{min: [1m]}"), "sites.yaml:3: sites[0].poll.min: must be a duration such as 15m, not a list"),
    # impossible values
    (site(poll="{min: 2h, max: 60m}"), "sites.yaml:3: sites[0].poll.min: '2h' is more than max, '60m'"),
    (site(poll="{min: 2d}"), "sites.yaml:3: sites[0].poll.min: '2d' is more than max, which is 1d by default"),
    (site(poll="{max: 30s}"), "sites.yaml:3: sites[0].poll.max: '30s' is less than min, which is 1m by default"),
    (
        "defaults: {poll: {max: 1h}}\n" + site(poll="{min: 2h}"),
        "sites.yaml:4: sites[0].poll.min: '2h' is more than max, which a level above sets",
    ),
    (
        site(poll="{target_delay: 1h, requests_per_day: 5}"),
        "sites.yaml:3: sites[0].poll.requests_per_day: excludes target_delay; give one of the two",
    ),
    (site(concurrency="{total: 0}"), "sites.yaml:3: sites[0].concurrency.total: must be 1 or more"),
    (site(changes="{sample: -1}"), "sites.yaml:3: sites[0].changes.sample: must be 0 or more"),
    (
        site(changes="{verify: alway}"),
        "sites.yaml:3: sites[0].changes.verify: 'alway' is not one of auto, always, never; did you mean 'always'?",
    ),
    (site(baseline="loud"), "sites.yaml:3: sites[0].baseline: 'loud' is not one of quiet, alert"),
    (site(crawl="{sections: []}"), "sites.yaml:3: sites[0].crawl.sections: must not be empty"),
    (site(crawl="{}"), "sites.yaml:3: sites[0].crawl.sections: is missing"),
    (
        site(expect="[{pages: /a, in: feeds, within: 1h}]"),
        "sites.yaml:3: sites[0].expect[0].in: 'feeds' is not one of feed, sitemap, news_sitemap, crawl; "
        "did you mean 'feed'?",
    ),
    (
        site(expect="[{pages: /a, in: crawl, within: 1h}]"),
        "sites.yaml:3: sites[0].expect[0].in: 'crawl' can never list a page: the site has no 'crawl'",
    ),
    (
        site(feeds="[]", expect="[{pages: /a, in: feed, within: 1h}]"),
        "sites.yaml:4: sites[0].expect[0].in: 'feed' can never list a page: feeds is []",
    ),
    # URLs, hosts, names, patterns
    (
        "sites:\n  - url: www.example.com/a\n",
        "sites.yaml:2: sites[0].url: 'www.example.com/a' has no scheme; did you mean 'https://www.example.com/a'?",
    ),
    ("sites:\n  - url: ftp://a.example/\n", "sites.yaml:2: sites[0].url: 'ftp://a.example/' is no http or https URL"),
    ("sites:\n  - url: 'https://'\n", "sites.yaml:2: sites[0].url: 'https://' is no URL"),
    ("sites:\n  - url: https:/a.example/\n", "sites.yaml:2: sites[0].url: 'https:/a.example/' is no URL"),
    ("sites:\n  - url: https://u:p@a.example:x/\n", "sites.yaml:2: sites[0].url: 'https://***@a.example:x/' is no URL"),
    ("sites:\n  - url: ''\n", "sites.yaml:2: sites[0].url: is empty"),
    (
        site(feeds="[https://a.example/, https://a.example/]"),
        "sites.yaml:3: sites[0].feeds[1]: is listed twice; first in line 3",
    ),
    (
        site(feeds="[https://a.example/x]") + "    sitemaps: [{url: https://a.example/x}]\n",
        "sites.yaml:4: sites[0].sitemaps[0]: is listed under 'feeds', too (line 3); "
        "name it under 'feeds' or 'sitemaps', not both",
    ),
    (
        site(hosts="[https://b.example/]"),
        "sites.yaml:3: sites[0].hosts[0]: 'https://b.example/' is a URL; give the host name alone",
    ),
    (
        site(hosts="[b.example/x]"),
        "sites.yaml:3: sites[0].hosts[0]: 'b.example/x' is no host name such as amp.example.com",
    ),
    (
        site(name="a/b"),
        "sites.yaml:3: sites[0].name: 'a/b' is no name; use up to 100 letters, digits, '.', '_' and '-', "
        "a letter or digit first",
    ),
    (
        site(include="[news/**]"),
        "sites.yaml:3: sites[0].include[0]: 'news/**' is no page pattern; did you mean '/news/**'?",
    ),
    (
        site(include="[a.example/**]"),
        "sites.yaml:3: sites[0].include[0]: 'a.example/**' is no page pattern; did you mean 'https://a.example/**'?",
    ),
    (
        site(crawl="{sections: [news]}"),
        "sites.yaml:3: sites[0].crawl.sections[0]: 'news' is no section; did you mean '/news'?",
    ),
    (
        "sites:\n  - {url: https://a.example/}\n  - {url: https://www.a.example/b}\n",
        "sites.yaml:3: sites[1].name: 'a.example' is the name of sites[0], too (line 2); give one of them a name",
    ),
    (
        "sites:\n  - {url: https://a.example/}\n  - {url: https://b.example/, name: a.example}\n",
        "sites.yaml:3: sites[1].name: 'a.example' is the name of sites[0], too (line 2)",
    ),
    # alerts and the database
    (OK + "alerts: stdout\n", "sites.yaml:2: alerts: must be a list, not text"),
    (OK + "alerts: [{webook: {}}]\n", "sites.yaml:2: alerts[0].webook: unknown key; did you mean 'webhook'?"),
    (OK + "alerts: [{}]\n", "sites.yaml:2: alerts[0]: must have one of stdout, file, webhook and notify, but has none"),
    (
        OK + "alerts: [{stdout: {}, notify: {url: slack://x}}]\n",
        "sites.yaml:2: alerts[0]: must have one of stdout, file, webhook and notify, but has stdout and notify",
    ),
    (
        OK + "alerts: [{stdout: {format: json}}]\n",
        "sites.yaml:2: alerts[0].stdout.format: 'json' is not one of jsonl, text; did you mean 'jsonl'?",
    ),
    (OK + "alerts: [{webhook: {}}]\n", "sites.yaml:2: alerts[0].webhook.url: is missing"),
    (
        OK + "alerts: [{stdout: {events: [url.nwe]}}]\n",
        "sites.yaml:2: alerts[0].stdout.events[0]: 'url.nwe' matches no type of event; did you mean 'url.new'?",
    ),
    (
        OK + "alerts: [{stdout: {events: url.*}}]\n",
        "sites.yaml:2: alerts[0].stdout.events: must be a list, not text; did you mean ['url.*']?",
    ),
    (
        OK + "alerts: [{stdout: {sites: [a.exmple]}}]\n",
        "sites.yaml:2: alerts[0].stdout.sites[0]: 'a.exmple' matches no site; did you mean 'a.example'?",
    ),
    (
        OK + "alerts: [{stdout: {match: '(a'}}]\n",
        "sites.yaml:2: alerts[0].stdout.match: '(a' is no regular expression: missing ), unterminated subpattern",
    ),
    (OK + "alerts: [{webhook: {url: h.example/}}]\n", "sites.yaml:2: alerts[0].webhook.url: the value has no scheme"),
    (
        OK + "alerts: [{webhook: {url: https://h.example/, secret: a}}]\n",
        "sites.yaml:2: alerts[0].webhook.secret: a webhook secret starts with 'whsec_', followed by base64",
    ),
    (
        OK + "alerts: [{webhook: {url: https://h.example/, secret: [whsec_%]}}]\n",
        "sites.yaml:2: alerts[0].webhook.secret[0]: what follows 'whsec_' is not base64",
    ),
    (
        OK + "alerts: [{notify: {url: slack}}]\n",
        "sites.yaml:2: alerts[0].notify.url: is no Apprise URL such as slack://tokenA/tokenB/tokenC",
    ),
    (
        OK + "database: mysql://u:p@h/d\n",
        "sites.yaml:2: database: is no database URL; write sqlite:///monitor.db or postgresql://user@host/name",
    ),
    (
        OK + "database: sqlite://monitor.db\n",
        "sites.yaml:2: database: a SQLite URL has three slashes before a path: sqlite:///monitor.db",
    ),
    # the environment
    (OK + "database: ${NOPE}\n", "sites.yaml:2: database: the environment variable NOPE is not set"),
    (
        OK + "database: ${TOKEN:-x}\n",
        "sites.yaml:2: database: '${' needs a name and a '}', as in ${NAME}; write '$${' for a literal '${'",
    ),
    (site(name="${EMPTY}"), "sites.yaml:3: sites[0].name: is empty"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message[11:70] for _, message in BAD])
def test_bad_files(text: str, message: str) -> None:
    assert problems(text) == [message]


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    assert problems("""
databse: x
defaults: {poll: {min: 15}, proxy: nowhere}
alerts:
  - webhook: {url: https://h.example/, events: [sorce.*], secret: x}
sites:
  - url: https://a.example/
    feedz: []
    name: ${NOPE}
  - url: https://b.example/
    poll: {min: 2d}
    hosts: [b.example, c.example, b.example]
  - url: https://b.example/
""") == [
        "sites.yaml:2: databse: unknown key; did you mean 'database'?",
        "sites.yaml:3: defaults.proxy: the value is no URL",
        "sites.yaml:3: defaults.poll.min: '15' needs a unit: 15s, 15m, 15h or 15d",
        "sites.yaml:5: alerts[0].webhook.events[0]: 'sorce.*' matches no type of event; did you mean 'source.*'?",
        "sites.yaml:5: alerts[0].webhook.secret: a webhook secret starts with 'whsec_', followed by base64",
        "sites.yaml:8: sites[0].feedz: unknown key; did you mean 'feeds'?",
        "sites.yaml:9: sites[0].name: the environment variable NOPE is not set",
        "sites.yaml:11: sites[1].poll.min: '2d' is more than max, which is 1d by default",
        "sites.yaml:12: sites[1].hosts[2]: is listed twice; first in line 12",
        "sites.yaml:13: sites[2].name: 'b.example' is the name of sites[1], too (line 10); give one of them a name",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfes\x00i\x00", "holds zero bytes; is it a text file in UTF-8?"),
        (b"sites:\n  - url: https://a.example/\xe9\n", ":2: is not UTF-8; save the file as UTF-8"),
        (b" " * (MAX_BYTES + 1), "is larger than 8 MB"),
    ],
)
def test_unreadable_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "sites.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        config.load(path, {})
    assert str(caught.value) == f"{path}{message if message[0] == ':' else ': ' + message}"


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; `monitor init URL` writes one"):
        config.load(tmp_path / "nope.yaml", {})
    with pytest.raises(ConfigError, match="is a directory, not a file"):
        config.load(tmp_path, {})
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(Path("a\0b"), {})
