"""Subscriptions in and out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.config import loads
from monitor.core.opml import NotOPML, Subscription, parse_opml, write_opml
from tests.test_cli import monitor

LIST = b"""<?xml version="1.0"?><opml version="1.0"><head><title>mine</title></head><body>
<outline text="News"><outline text="A &amp; B" type="rss" xmlUrl="https://feeds.a.example/x.xml" htmlUrl="https://www.a.example/news"/>
  <outline title="A sport" xmlurl="https://www.a.example/sport.rss"/></outline>
<outline text="again" xmlUrl="https://feeds.a.example/x.xml"/>
<outline text="c" xmlUrl="https://c.example/f?a=1&amp;b=2"/><outline text="no" xmlUrl="ftp://d.example/"/></body></opml>"""


def test_a_list_becomes_sites_and_a_list_again(tmp_path: Path) -> None:
    (tmp_path / "mine.opml").write_bytes(LIST)
    done = monitor("import", "opml", "mine.opml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "3 feeds in 2 sites added to sites.yaml\n"
    sites = loads((tmp_path / "sites.yaml").read_text(), name="x", env={}).sites
    assert [(site.url, site.feeds, site.sitemaps) for site in sites] == [
        ("https://www.a.example/", ("https://feeds.a.example/x.xml", "https://www.a.example/sport.rss"), ()),
        ("https://c.example/", ("https://c.example/f?a=1&b=2",), ()),
    ]
    assert "# A & B" in (tmp_path / "sites.yaml").read_text()
    again = monitor("import", "opml", "mine.opml", cwd=tmp_path)
    assert again.stdout == "0 feeds in 0 sites added to sites.yaml; 3 were there already\n"
    out = monitor("export", "opml", cwd=tmp_path)
    assert (out.returncode, out.stderr) == (0, "")
    assert {one.url for one in parse_opml(out.stdout.encode())} == {url for site in sites for url in site.feeds or ()}
    (tmp_path / "more.opml").write_bytes(LIST.replace(b"c.example/f", b"e.example/f"))
    more = monitor("import", "opml", "more.opml", "--site", "mine", cwd=tmp_path)
    assert more.stdout == "1 feed in 1 site added to sites.yaml; 2 were there already\n"
    names = [site.name for site in loads((tmp_path / "sites.yaml").read_text(), name="x", env={}).sites]
    assert names == ["a.example", "c.example", "mine"]


def test_feeds_of_a_site_that_is_there_are_told_and_the_others_added(tmp_path: Path) -> None:
    (tmp_path / "mine.opml").write_bytes(LIST)
    (tmp_path / "sites.yaml").write_text("sites:\n  - {name: mine, url: https://c.example/}\n")
    done = monitor("import", "opml", "mine.opml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "2 feeds in 1 site added to sites.yaml\n")
    assert "1 feed of https://c.example/ left out, as sites.yaml has that site as 'mine'" in done.stderr


def test_an_export_needs_no_secret_and_shows_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONITOR_TEST_KEY", "hush")
    (tmp_path / "sites.yaml").write_text(
        "alerts: [{webhook: {url: 'https://h.example/', secret: '${NONE}'}}]\nsites:\n  - url: https://a.example/\n"
        "    feeds: ['https://a.example/f', 'https://a.example/f?key=${MONITOR_TEST_KEY}', 'https://u:word@a.example/']\n"
    )
    done = monitor("export", "opml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "monitor: 2 feeds left out: the address holds a secret\n")
    assert [one.url for one in parse_opml(done.stdout.encode())] == ["https://a.example/f"]
    assert "hush" not in done.stdout
    assert "word" not in done.stdout


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is no XML"),
        (b"<rss/>", "is no OPML"),
        (b"<opml><body><outline text='x'/></body></opml>", "holds no feed"),
        (b"plain words", "is no"),
        (
            b"<!DOCTYPE opml [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><opml><outline text='&a;' xmlUrl='x'/></opml>",
            "declares entities",
        ),
        (
            "<!DOCTYPE o [<!ENTITY a 'https://a.example/'>]><opml><outline xmlUrl='&a;'/></opml>".encode("utf-16"),
            "declares entities",
        ),
    ],
)
def test_what_is_no_list_is_one_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    (tmp_path / "a.opml").write_bytes(data)
    done = monitor("import", "opml", "a.opml", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines()), sentence in done.stderr) == (1, 1, True), done
    assert not (tmp_path / "sites.yaml").exists()


def test_bare_ampersands_are_read_as_they_are_meant() -> None:
    data = b'<opml><outline text="A & B &eacute;" xmlUrl="https://a.example/f?a=1&b=2&amp;c=3"/></opml>'
    assert parse_opml(data) == [Subscription("https://a.example/f?a=1&b=2&c=3", None, "A & B &eacute;")]
    half = b'<opml><outline xmlUrl="https://a.example/f"/><outline xmlUrl="https://a.example/lo'
    assert [one.url for one in parse_opml(half)] == ["https://a.example/f"]


def test_a_document_type_elsewhere_is_not_fetched() -> None:
    data = b'<!DOCTYPE opml SYSTEM "http://127.0.0.1:9/x.dtd"><opml><outline xmlUrl="https://a.example/f"/></opml>'
    assert [one.url for one in parse_opml(data)] == ["https://a.example/f"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = monitor("import", "opml", "none.opml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "monitor: none.opml: No such file or directory\n")


@given(st.binary(max_size=300))
def test_bad_bytes_never_raise_anything_else(data: bytes) -> None:
    for body in (data, b"<opml><body>" + data + b"</body></opml>"):
        try:
            parse_opml(body)
        except NotOPML:
            continue


XML = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=30
)


@given(st.lists(st.tuples(XML, st.integers(0, 10**6)), min_size=1, max_size=5, unique_by=lambda item: item[1]))
def test_what_is_written_is_read_again(items: list[tuple[str, int]]) -> None:
    feeds = [
        Subscription(f"https://a.example/{number}?x=1&y=2", "https://a.example/", title) for title, number in items
    ]
    read = parse_opml(write_opml([("group <&>", feeds)], "t"))
    assert [one.url for one in read] == [one.url for one in feeds]
    assert [one.title for one in read] == [
        " ".join(one.title.split()) or one.url for one in feeds if one.title is not None
    ]
