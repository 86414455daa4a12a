"""Whatever the file holds: ConfigError or a configuration, and never a secret in a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.config import ConfigError
from tests.test_config import load
from tests.test_config_errors import OK, problems


def error_of(text: str) -> ConfigError | None:
    try:
        load(text)
    except ConfigError as error:
        return error
    return None


@pytest.mark.parametrize(
    "line",
    [
        "url: https://${TOKEN}/ x",
        "url: ${TOKEN}.org",
        "name: a ${TOKEN}",
        "hosts: ['https://${TOKEN}']",
        "feeds: ['${TOKEN}']",
        "include: ['${TOKEN}']",
        "poll: {min: '${TOKEN}'}",
        "baseline: ${TOKEN}",
        "changes: {sample: '${TOKEN}'}",
        "crawl: {sections: ['${TOKEN}']}",
        "expect: [{pages: /a, in: '${TOKEN}', within: 1h}]",
        "proxy: ${TOKEN}",
    ],
)
def test_errors_never_show_a_value_of_the_environment(line: str) -> None:
    start = "" if line.startswith("url") else "url: https://a.example/\n    "
    (message,) = problems(f"sites:\n  - {start}{line}\n")
    assert "t0psecret" not in message


@pytest.mark.parametrize(
    "alert",
    [
        "notify: {url: t0psecret}",
        "webhook: {url: t0psecret.example.org/a}",
        "webhook: {url: https://h.example/, secret: t0psecret}",
        "webhook: {url: https://h.example/, secret: whsec_t0psecret}",
        "webhook: {url: https://h.example/, match: '(${TOKEN}'}",
        "webhook: {url: https://h.example/, events: ['${TOKEN}']}",
        "webhook: {url: https://h.example/, sites: ['${TOKEN}']}",
    ],
)
def test_errors_never_show_a_secret(alert: str) -> None:
    (message,) = problems(f"alerts:\n  - {alert}\nsites: [{{url: https://a.example/}}]\n")
    assert "t0psecret" not in message


def test_aliases_of_aliases_are_bounded() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))
    with pytest.raises(ConfigError, match="holds too many values"):
        load(bomb + OK)


@pytest.mark.parametrize("text", ["[" * 2000, "a: " + "{a: " * 5000, "- " * 5000 + "x", "a: " + "[" * 60 + "]" * 60])
def test_deep_nesting(text: str) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(text)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_loads_or_is_a_config_error(text: str) -> None:
    error = error_of(text)
    assert error is not None
    assert len(str(error).splitlines()) == len(error.problems) >= 1


# Texts of YAML's syntax, one a line; the rest are white space and line ends.
_WORDS = """sites url feeds { } [ ] &a *a << !!int ! ' " \\ # ? , 1m 0x1f .inf 1_0 0o8 1e999 2001-01-01 ~ null true ${A}
$${ https://a.example/ %YAML --- ... !!float"""
_SCRAP = st.sampled_from(
    [*_WORDS.split(), "- ", ": ", "\n", "  ", " ", "|\n", ">-\n", "\t", "\r", "\x85", "\u2028", "\ufeff"]
)


@given(st.lists(_SCRAP, max_size=30).map("".join))
@settings(max_examples=500, deadline=None)
def test_scraps_of_yaml_load_or_are_config_errors(text: str) -> None:
    error = error_of(text)
    assert error is None or len(str(error).splitlines()) == len(error.problems) >= 1


_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1m", "${T}", "*"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["url", "poll", "min", "events", "webhook", "stdout", "in", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
_SITE_KEYS = [
    *["url", "name", "hosts", "feeds", "sitemaps", "news_sitemaps", "include", "exclude", "expect", "crawl", "changes"],
    *["user_agent", "allow_private_networks", "proxy", "concurrency", "poll", "sitemap", "baseline"],
]


@given(st.dictionaries(st.sampled_from(_SITE_KEYS), _VALUE, min_size=1, max_size=4), _VALUE, _VALUE)
@settings(max_examples=300, deadline=None)
def test_any_values_load_or_are_config_errors(keys: dict[str, Any], alert: Any, defaults: Any) -> None:
    text = json.dumps({"sites": [{"url": "https://a.example/"} | keys], "alerts": [alert], "defaults": defaults})
    error = error_of(text)
    assert error is None or all(problem.key and problem.line for problem in error.problems)
