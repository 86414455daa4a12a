from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.robots import MAX_BYTES, Robots, parse_robots
from tests.corpus import expectations, members

URL = "https://www.example.com/robots.txt"
AGENT = "example-monitor/1.0 (+https://example.org/bot)"


def read(text: str | bytes, *, status: int = 200, url: str = URL) -> Robots:
    return parse_robots(text.encode() if isinstance(text, str) else text, status=status, url=url)


@pytest.mark.parametrize(
    ("text", "sitemaps"),
    [
        ("Sitemap: https://a.com/s.xml", ["https://a.com/s.xml"]),
        ("SITEMAP:https://a.com/S.xml", ["https://a.com/S.xml"]),
        ("site-map: https://a.com/s.xml", ["https://a.com/s.xml"]),
        ("Sitemap https://a.com/s.xml", ["https://a.com/s.xml"]),
        ("Sitemap: https://a.com/s.xml # all pages", ["https://a.com/s.xml"]),
        ("Sitemap: https://a.com/s.xml#all", ["https://a.com/s.xml"]),
        ("Sitemap: <https://a.com/s.xml>", ["https://a.com/s.xml"]),
        ("Sitemap: https://a.com/1.xml https://a.com/2.xml", ["https://a.com/1.xml", "https://a.com/2.xml"]),
        ("Sitemap: /s.xml?a=1&b=2", ["https://www.example.com/s.xml?a=1&b=2"]),
        ("Sitemap: s.xml", ["https://www.example.com/s.xml"]),
        ("Sitemap: www.example.com/s.xml", ["https://www.example.com/s.xml"]),
        ("Sitemap: example.com/s.xml", ["https://example.com/s.xml"]),
        ("Sitemap: //cdn.a.com/s.xml", ["https://cdn.a.com/s.xml"]),
        ("  https://a.com/s.xml  ", ["https://a.com/s.xml"]),
        ("Sitemap: https://b.com/s\nSitemap: https://a.com/s\nSitemap: https://b.com/s", ["https://b.com/s", "https://a.com/s"]),
        ("User-agent: *\rDisallow: /x\rSitemap: https://a.com/s.xml\r", ["https://a.com/s.xml"]),
        ("Sitemap:\nSitemap: #none\nSitemap: mailto:a@b.com", []),
        ("# Sitemap: https://a.com/s.xml", []),
        ("Disallow: /sitemap.xml", []),
        ("<!doctype html><p>\nSitemap: https://a.com/s.xml\n", []),
    ],
)  # fmt: skip
def test_sitemaps(text: str, sitemaps: list[str]) -> None:
    assert list(read(text).sitemaps) == sitemaps


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_reads_utf_8_and_utf_16(encoding: str) -> None:
    robots = read("Sitemap: https://a.com/s.xml\nUser-agent: *\nDisallow: /x\n".encode(encoding))
    assert robots.sitemaps == ("https://a.com/s.xml",)
    assert not robots.allows("https://www.example.com/x", AGENT)


def test_a_byte_order_mark_of_utf_16_be() -> None:
    robots = read(b"\xfe\xff" + "User-agent: *\nDisallow: /x\n".encode("utf-16-be"))
    assert not robots.allows("https://www.example.com/x", AGENT)


def test_bytes_that_are_no_text_cost_nothing_else() -> None:
    robots = read(b"# caf\xe9 \xff\xfe\nSitemap: https://a.com/s.xml\nUser-agent: *\nDisallow: /\xe9x\nDisallow: /y\n")
    assert robots.sitemaps == ("https://a.com/s.xml",)
    assert not robots.allows("https://www.example.com/y", AGENT)


@pytest.mark.parametrize(
    ("status", "allowed"),
    [(200, False), (301, True), (401, True), (404, True), (410, True), (500, False), (503, False), (0, False)],
)
def test_the_status_decides_first(status: int, allowed: bool) -> None:
    robots = read("User-agent: *\nDisallow: /\nCrawl-delay: 5\nSitemap: https://a.com/s.xml", status=status)
    assert robots.allows("https://www.example.com/a", AGENT) is allowed
    assert bool(robots.sitemaps) is (status == 200)
    assert robots.crawl_delay(AGENT) == (5 if status == 200 else None)


def test_an_unreachable_host_forbids_what_its_empty_file_would_allow() -> None:
    assert read("").allows("https://www.example.com/a", AGENT)
    assert not read("", status=502).allows("https://www.example.com/a", AGENT)


def test_groups_are_chosen_by_the_product_token() -> None:
    robots = read(
        "User-agent: *\nDisallow: /all\nCrawl-delay: 1\n\n"
        "User-agent: Example-Monitor\nUser-agent: other\nDisallow: /ours\nCrawl-delay: 2.5\n\n"
        "User-agent: bot\nDisallow: /\n\nUser-agent: mozilla\nDisallow: /\n"
    )
    assert robots.allows("https://www.example.com/all", AGENT)
    assert not robots.allows("https://www.example.com/ours/a", AGENT)
    assert robots.crawl_delay(AGENT) == 2.5
    assert not robots.allows("https://www.example.com/all", "somebody")
    assert robots.crawl_delay("somebody") == 1
    assert not robots.allows("https://www.example.com/ours", "Mozilla/5.0 (compatible; example-monitor/2.0)")


def test_a_crawl_delay_between_two_agents_does_not_end_their_group() -> None:
    robots = read(
        "User-agent: first\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /x\nCrawl-delay: 20\nUser-agent: last\n"
    )
    assert not robots.allows("https://www.example.com/x", "first")
    assert not robots.allows("https://www.example.com/x", "anybody")
    assert robots.allows("https://www.example.com/x", "last")
    assert (robots.crawl_delay("first"), robots.crawl_delay("anybody")) == (20, 20)
    apart = read(
        "User-agent: first\nCrawl-delay: 10\n\nUser-agent: second\nCrawl-delay: 5\nUser-agent: *\nDisallow: /x\n"
    )
    assert (apart.crawl_delay("first"), apart.crawl_delay("second"), apart.crawl_delay("third")) == (10, 5, None)


def test_the_longest_rule_wins_and_wildcards_count() -> None:
    robots = read("User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.pdf$\n")
    assert not robots.allows("https://www.example.com/a/c", AGENT)
    assert robots.allows("https://www.example.com/a/b/c", AGENT)
    assert not robots.allows("https://www.example.com/x.pdf", AGENT)
    assert robots.allows("https://www.example.com/x.pdf?y", AGENT)


def test_reads_no_more_than_its_limit_and_no_rule_cut_in_the_middle() -> None:
    filler = "# " + "x" * 97 + "\n"
    text = "User-agent: *\nDisallow: /early\n" + filler * (MAX_BYTES // 100 + 1)
    text = text[: MAX_BYTES - len("\nDisallow: /")] + "\nDisallow: /private\nSitemap: https://a.com/s.xml\n"
    robots = read(text)
    assert not robots.allows("https://www.example.com/early", AGENT)
    assert robots.allows("https://www.example.com/other", AGENT)
    assert robots.sitemaps == ()


def test_agents_times_rules_do_not_multiply() -> None:
    # Held as protego holds them, these would be 200 million rules.
    agents = "".join(f"useragent:a{number}\n" for number in range(14_000))
    robots = read(
        f"{agents}example-monitor\nuser-agent: example-monitor\n{'allow:/a' + chr(10)}" + "disallow:/b\n" * 14_000
    )
    assert not robots.allows("https://www.example.com/b", AGENT)


def test_a_url_that_cannot_be_parsed_is_not_allowed() -> None:
    robots = read("User-agent: *\nDisallow: /x\n")
    assert not robots.allows("http://[::1", AGENT)


@given(st.binary(max_size=300), st.text(max_size=30), st.text(max_size=30))
def test_never_raises(body: bytes, url: str, agent: str) -> None:
    robots = parse_robots(body, status=200, url=URL)
    assert robots.allows(url, agent) in (True, False)
    assert all(one.startswith(("http://", "https://")) for one in robots.sitemaps)


def test_crawler_commons_files_read_as_their_origin_states() -> None:
    archive = "suites/crawler-commons.tar.gz"
    files = dict(members(archive))
    stated = expectations("robots")
    assert stated
    for line in stated:
        robots = parse_robots(files[line["file"]], status=200, url="http://domain.com/robots.txt")
        if "n_sitemaps" in line:
            assert len(robots.sitemaps) == line["n_sitemaps"], line["file"]
        for rule in line.get("rules", ()):
            assert robots.allows(rule["url"], rule["agent"]) is rule["allowed"], (line["file"], rule)


@pytest.mark.parametrize(
    ("archive", "files"),
    [
        ("suites/robots-protego.tar.gz", 470),
        ("robots/news-sites-monthly.tar.gz", 240),
        ("robots/publishers-archived.tar.gz", 41),
    ],
)
def test_real_files_lose_no_sitemap_and_gain_none(archive: str, files: int) -> None:
    bodies = dict(members(archive))
    assert len(bodies) == files
    for name, body in bodies.items():
        robots = parse_robots(body, status=200, url=URL)
        page = body.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<")
        plain = re.findall(
            r"(?mi)^\s*sitemap:\s*(https?://[^\s#]+)", re.sub("\r\n?", "\n", body.decode("ascii", "ignore"))
        )
        assert page or set(plain) <= set(robots.sitemaps), name
        assert len(robots.sitemaps) <= len(re.findall(rb"(?i)site-?map|^\s*http", body)), name
        assert robots.allows(URL, AGENT)
