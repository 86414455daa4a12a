from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core import url as urls
from monitor.core.url import absolute, host_of, is_site_host, matches, page_key, registrable

SAME = [
    ("HTTPS://Example.COM:443/a", "https://example.com/a"),
    ("http://example.com:80/a", "http://example.com/a"),
    ("https://example.com", "https://example.com/"),
    ("https://example.com?x=1", "https://example.com/?x=1"),
    ("https://example.com./a", "https://example.com/a"),
    ("https://example.com/a%2fb", "https://example.com/a%2Fb"),
    ("https://münchen.de/a", "https://xn--mnchen-3ya.de/a"),
    ("https://example.com/é", "https://example.com/%C3%A9"),
    ("https://example.com/%c3%a9", "https://example.com/%C3%A9"),
    ("https://example.com/%7Ea%2Db", "https://example.com/~a-b"),
    ("https://example.com/a b", "https://example.com/a%20b"),
    ("https://example.com/a?x[]=1", "https://example.com/a?x%5B%5D=1"),
    ("https://example.com/100%", "https://example.com/100%25"),
    ("https://example.com/a#comments", "https://example.com/a"),
    ("https://example.com/a#xtor=RSS-4", "https://example.com/a"),
    ("https://example.com/a#!", "https://example.com/a"),
    ("https://example.com/b/../c/./d", "https://example.com/c/d"),
    ("https://example.com/b/%2e%2e/c", "https://example.com/c"),
    ("https://example.com/a?utm_source=rss&UTM_Medium=x", "https://example.com/a"),
    ("https://example.com/a?fbclid=1&id=2", "https://example.com/a?id=2"),
    ("https://example.com/a?at_medium=RSS&at_campaign=KARANGA", "https://example.com/a"),
    ("https://example.com/a?a=1&b=2", "https://example.com/a?b=2&a=1"),
    ("https://example.com/a;jsessionid=12AF?b=1", "https://example.com/a?b=1"),
    ("\u00a0 https://example.com/a\u200b\n", "https://example.com/a"),
]

DIFFERENT = [
    ("https://example.com/#!/a", "https://example.com/#!/b"),
    ("https://example.com/a//b", "https://example.com/a/b"),
    ("http://example.com/a", "https://example.com/a"),
    ("https://www.example.com/a", "https://example.com/a"),
    ("https://m.example.com/a", "https://example.com/a"),
    ("https://amp.example.com/a", "https://example.com/a"),
    ("https://example.com/a/amp", "https://example.com/a"),
    ("https://example.com/a?outputType=amp", "https://example.com/a"),
    ("https://news.example.com/a", "https://example.com/a"),
    ("https://example.com/a/", "https://example.com/a"),
    ("https://example.com/a/index.html", "https://example.com/a/"),
    ("https://example.com/a?CMP=rss_b", "https://example.com/a"),
    ("https://example.com/a?smid=rss", "https://example.com/a"),
    ("https://example.com/a?partner=rss", "https://example.com/a"),
    ("https://example.com/a?x=1&x=2", "https://example.com/a?x=2&x=1"),
    ("https://example.com/a?cid=1", "https://example.com/a?cid=2"),
    ("https://example.com/a?source=1", "https://example.com/a?source=2"),
    ("https://example.com/a?eid=1", "https://example.com/a?eid=2"),
    ("https://example.com/a?gallery=1", "https://example.com/a?gallery=2"),
    ("https://example.com/a?s=1", "https://example.com/a?s=2"),
    ("https://example.com/A", "https://example.com/a"),
    ("https://example.com/a?id=X", "https://example.com/a?id=x"),
    ("https://example.com/r?url=https://x.com/z", "https://x.com/z"),
    ("https://example.com/a?u=1%26v=2", "https://example.com/a?u=1&v=2"),
    ("https://example.com/a%2Fb", "https://example.com/a/b"),
    ("https://example.com/a?variable", "https://example.com/a"),
    ("https://example.com/a?", "https://example.com/a"),
    ("https://example.com/a?p&q", "https://example.com/a?q&p"),
    ("https://example.com/a?x=", "https://example.com/a?x"),
    ("https://example.com:8443/a", "https://example.com/a"),
    ("https://example.com/a+b", "https://example.com/a%20b"),
    ("https://example.com/a?utmost=1", "https://example.com/a"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_page(one: str, other: str) -> None:
    assert page_key(one) == page_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_pages(one: str, other: str) -> None:
    assert page_key(one) != page_key(other)


@pytest.mark.parametrize("text", ["", "nonsense", "https://exa mple.com/", "mailto:a@example.com", "/a/b", "\ud800"])
def test_what_is_no_web_address_is_its_own_key(text: str) -> None:
    assert page_key(f" {text} ") == text


def test_keeps_the_fragment_where_it_is_asked_for() -> None:
    assert page_key("https://example.com/a?utm_source=x#b", keep_fragment=True) == "https://example.com/a#b"
    assert page_key("https://example.com/a#", keep_fragment=True) == "https://example.com/a"


PIECES = [
    "/",
    ".",
    "..",
    "%2e",
    "%2F",
    "%41",
    "%c3%a9",
    "%",
    "%%32e",
    "a",
    "B",
    "~",
    "é",
    ";jsessionid=1",
    "?",
    "&",
    "=",
]
PIECES += ["utm_a=1", "x=2", "y=1", "+", "'", "\\", "|", "#", "!", "[", "]", " ", "\t", "@", ":", '"']
HOSTS = ["https://a.com", "http://a.b.com", "https://A.com:443", "https://a.com.", "https://1.2.", "https://u@a.com"]
addresses = st.builds("{}{}".format, st.sampled_from(HOSTS), st.lists(st.sampled_from(PIECES), max_size=9).map("".join))


@given(addresses | st.text(max_size=40), st.booleans())
def test_a_key_is_its_own_key(address: str, keep: bool) -> None:
    key = page_key(address, keep_fragment=keep)
    assert page_key(key, keep_fragment=keep) == key


@given(addresses)
def test_the_short_way_agrees_with_the_long_one(address: str) -> None:
    assert page_key(address) == urls._slow_key(address, keep_fragment=False)


@given(st.permutations(["a=1", "b=2", "c=3", "utm_source=x"]))
def test_order_of_distinct_parameters_does_not_matter(pairs: list[str]) -> None:
    assert page_key(f"https://a.com/?{'&'.join(pairs)}") == "https://a.com/?a=1&b=2&c=3"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://Example.com/é?utm_source=x#y", "https://Example.com/é?utm_source=x#y"),
        ("\u2003https://example.com/a%7eb\ufeff", "https://example.com/a%7eb"),
        ("https://example.com/a\n  b", "https://example.com/a  b"),
        ("HTTP://example.com/a", "HTTP://example.com/a"),
        ("/fclick.php?variable", "https://base.com/fclick.php?variable"),
        ("x", "https://base.com/dir/x"),
        ("../x", "https://base.com/x"),
        ("//other.com/x", "https://other.com/x"),
        ("?p=1", "https://base.com/dir/file?p=1"),
        ("", None),
        (" ", None),
        ("mailto:a@example.com", None),
        ("javascript:void(0)", None),
        ("https://exa mple.com/", None),
        ("https://", None),
        ("\ud800", None),
    ],
)
def test_absolute(text: str, expected: str | None) -> None:
    assert absolute(text, "https://base.com/dir/file") == expected


def test_absolute_without_a_base_needs_an_absolute_url() -> None:
    assert absolute("/x", "") is None
    assert absolute("https://example.com/x", "") == "https://example.com/x"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://www.example.com/a", "www.example.com"),
        ("HTTPS://user:pw@WWW.Example.com.:8443/a", "www.example.com"),
        ("https://münchen.de", "xn--mnchen-3ya.de"),
        ("http://127.1/", "127.0.0.1"),
        ("http://[::1]:80/", "[::1]"),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_host_of(address: str, host: str) -> None:
    assert host_of(address) == host


def test_www_and_the_bare_name_are_twins_other_names_are_not() -> None:
    assert is_site_host("example.com", frozenset({"www.example.com"}))
    assert is_site_host("www.example.com", frozenset({"example.com"}))
    assert is_site_host("amp.example.com", frozenset({"amp.example.com"}))
    assert not is_site_host("amp.example.com", frozenset({"example.com"}))
    assert not is_site_host("ww.example.com", frozenset({"example.com"}))
    assert not is_site_host("", frozenset({"example.com"}))


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("news.bbc.co.uk", "bbc.co.uk"),
        ("example.com", "example.com"),
        ("paper.github.io", "paper.github.io"),
        ("a.paper.github.io", "paper.github.io"),
        ("co.uk", None),
        ("localhost", None),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("", None),
    ],
)
def test_registrable(host: str, domain: str | None) -> None:
    assert registrable(host) == domain


@pytest.mark.parametrize(
    ("pattern", "address", "expected"),
    [
        ("/news/**", "https://a.com/news/2024/x?y=1", True),
        ("/news/**", "https://a.com/news/", True),
        ("/news/**", "https://a.com/newsroom/x", False),
        ("/news/**", "https://a.com/old/news/x", False),
        ("/news/**", "https://a.com/News/x", False),
        ("/news/*", "https://a.com/news/x", True),
        ("/news/*", "https://a.com/news/x/y", False),
        ("/*/live/**", "https://a.com/de/live/x", True),
        ("/**/live/**", "https://a.com/live/x", True),
        ("/**/live/**", "https://a.com/a/b/live/x", True),
        ("**", "https://a.com/x", True),
        ("**", "nonsense", False),
        ("*.pdf", "https://a.com/b/c.pdf", True),
        ("news/**", "https://a.com/news/x", True),
        ("/story?id=*", "https://a.com/story?id=4/5", True),
        ("/story?id=*", "https://a.com/story", False),
        ("/story", "https://a.com/story?id=4", True),
        ("https://amp.a.com/**", "https://amp.a.com/x", True),
        ("https://amp.a.com/**", "https://www.a.com/x", False),
        ("*://*.a.com/**", "http://amp.a.com/x", True),
        ("/é/**", "https://a.com/%c3%a9/x", True),
        ("/%C3%A9/**", "https://a.com/é/x", True),
        ("/a.b", "https://a.com/aXb", False),
        ("/a", "https://a.com/b/../a", True),
    ],
)
def test_matches(pattern: str, address: str, expected: bool) -> None:
    assert matches(pattern, address) is expected


@given(st.text(max_size=20), st.text(max_size=20))
def test_matches_never_raises(pattern: str, address: str) -> None:
    assert matches(pattern, address) in (True, False)
