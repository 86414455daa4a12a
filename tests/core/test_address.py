"""Addresses of requests: taken apart, and sent as published."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.address import Address, address_of, follow


@pytest.mark.parametrize(
    ("rest", "target"),
    [
        ("", "/"),
        ("/", "/"),
        ("//", "//"),
        ("?x", "/?x"),
        ("/a?", "/a?"),
        ("/a??", "/a??"),
        ("/a#f", "/a"),
        ("/a?#f", "/a?"),
        ("/%7Eu/%c3%A9?%41", "/%7Eu/%c3%A9?%41"),
        ("/a|b?c|d", "/a|b?c|d"),
        ("/a/../b/./c", "/a/../b/./c"),
        ("/é?ü=ß", "/%C3%A9?%C3%BC=%C3%9F"),
        ('/a b"<>', "/a%20b%22%3C%3E"),
        ("/{x}^`?{y}^`", "/%7Bx%7D%5E%60?{y}^`"),
        ("/a%", "/a%"),
        ("/a\x00\x7f", "/a%00%7F"),
    ],
)
def test_targets_go_out_as_published(rest: str, target: str) -> None:
    assert address_of(f"http://h{rest}") == Address("http", "h", None, target)


@pytest.mark.parametrize(
    ("authority", "host", "port", "userinfo"),
    [
        ("EXAMPLE.com", "example.com", None, None),
        ("example.com.", "example.com.", None, None),
        ("h:80", "h", None, None),
        ("h:", "h", None, None),
        ("h:8080", "h", 8080, None),
        ("h:443", "h", 443, None),
        ("bücher.example", "xn--bcher-kva.example", None, None),
        ("[2001:DB8::1]:81", "2001:db8::1", 81, None),
        ("2130706433", "127.0.0.1", None, None),
        ("0x7f.1", "127.0.0.1", None, None),
        ("0177.0.0.1", "127.0.0.1", None, None),
        ("me:p%40ss@h", "h", None, "me:p%40ss"),
        ("a@b@h", "h", None, "a@b"),
    ],
)
def test_hosts_have_one_spelling(authority: str, host: str, port: int | None, userinfo: str | None) -> None:
    assert address_of(f"http://{authority}/") == Address("http", host, port, "/", userinfo)


@pytest.mark.parametrize(
    "url",
    [
        "", "nonsense", "ftp://h/", "file:///etc/passwd", "javascript:alert(1)", "http://", "http:///x", "http://:80/",
        "http://[::1", "http://[]/", "http://h:65536/", "http://h:99999999999999999999/", "http://h:x/", "http://a b/",
        "http://good\\@evil/", "http://999.999.999.999/", "http://h/\ud800",
        "http://h/a\r\nHost: x", "http://a\nb/", "http://xn--/", "http://a..b/", "http://" + "a" * 300,
        "http://h/" + "a" * 70_000,
    ],
)  # fmt: skip
def test_what_is_no_address_is_told_in_one_way(url: str) -> None:
    with pytest.raises(ValueError, match=r"address|host|port|surrogates"):
        address_of(url)


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("http://other/%7E?", "http://other/%7E?"),
        ("https://other/a/../b", "https://other/a/../b"),
        ("//other/x", "http://other/x"),
        ("/x?", "http://h/x?"),
        ("/x??", "http://h/x??"),
        ("?", "http://h/a/b?"),
        ("x|y", "http://h/a/x|y"),
        ("../é", "http://h/é"),
        (" /x\t ", "http://h/x"),
    ],
)
def test_where_a_location_leads(location: str, there: str) -> None:
    assert follow("http://h/a/b?c", location) == there


@given(st.text(max_size=60), st.text(max_size=30))
def test_any_text_is_an_address_or_a_value_error(rest: str, location: str) -> None:
    for text in (rest, f"http://{rest}", f"https://h/{rest}"):
        try:
            target = address_of(text).target
        except ValueError:
            continue
        assert target.isascii()
        assert not set(target) & set(" \r\n\t\0#")
    try:
        follow("http://h/a", location)
    except ValueError:
        return
