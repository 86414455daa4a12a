"""`monitor init`: a file that works, and one that is added to without a byte of it changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.commands.init import _site
from monitor.config import ConfigError, loads
from monitor.config_edit import NewSite, add_sites, writable
from monitor.discover_site import Discovered, Found
from monitor.newsroom import Newsroom, serve_in_thread
from tests.test_cli import monitor

NEW = NewSite("https://new.example/", {"feeds": [("https://new.example/f?a=1#b", "head link")]}, ["a: note"])
HERE = Path("sites.yaml")


def added(text: str) -> str:
    return add_sites(text, [NEW], file="sites.yaml", path=HERE, env={})


@pytest.fixture
def room() -> Iterator[Newsroom]:
    made = Newsroom(seed=5, old_pages=12, start=datetime.now(UTC))
    with serve_in_thread(made):
        yield made


def test_from_an_address_to_the_first_news(tmp_path: Path, room: Newsroom) -> None:
    done = monitor("init", room.url, "--allow-private-networks", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "robots.txt" in done.stdout
    assert "monitor check" in done.stdout
    written = (tmp_path / "sites.yaml").read_text()
    assert "# robots.txt, index" in written
    assert monitor("check", cwd=tmp_path).returncode == 0
    assert monitor("run", "--once", cwd=tmp_path).returncode == 0
    article = room.publish()
    told = monitor("run", "--once", "--all", cwd=tmp_path)
    assert [json.loads(line)["subject"] for line in told.stdout.splitlines()] == [article.url]

    again = monitor("init", room.url, "--allow-private-networks", cwd=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert (tmp_path / "sites.yaml").read_text() == written


def test_what_cannot_be_watched_is_not_written(tmp_path: Path, room: Newsroom) -> None:
    for words, code, sentence in (
        (("http://127.0.0.1:9/",), 1, "not written"),
        (("ftp://x.example/",), 2, "ftp"),
        ((room.url,), 1, "not public"),
    ):
        done = monitor("init", *words, cwd=tmp_path)
        assert (done.returncode, sentence in done.stderr, "Traceback" in done.stderr) == (code, True, False), done
        assert not (tmp_path / "sites.yaml").exists()
    (tmp_path / "sites.yaml").write_text("sites: [\n")
    done = monitor("init", room.url, cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert (tmp_path / "sites.yaml").read_text() == "sites: [\n"


def test_one_that_fails_keeps_no_other_from_being_written(tmp_path: Path, room: Newsroom) -> None:
    done = monitor("init", "http://127.0.0.1:9/", room.url, "--allow-private-networks", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert [one["written"] for one in json.loads(done.stdout)] == [False, True]
    assert [site.url for site in loads((tmp_path / "sites.yaml").read_text(), name="x", env={}).sites] == [room.url]


@pytest.mark.parametrize(
    "text",
    [
        "sites:\n  - url: https://a.example/\n",
        "sites:\n- url: https://a.example/",
        "sites:\n  - url: https://a.example/   # why\n\n# the end\n",
        "sites:\n  - {url: https://a.example/}\n  # last\ndatabase: sqlite:///x.db\n",
        "sites: [{url: https://a.example/}]\n",
        "sites: [\n  {url: https://a.example/},  # one\n]\nalerts: [stdout]\n",
        "sites:\r\n  - url: https://a.example/\r\nalerts: [stdout]\r\n",
        "\ufeffsites:\n  - url: https://a.example/\n",
        "sites:\n  - url: |-\n      https://a.example/\nalerts: [stdout]\n",
        "sites:\n  - url: https://a.example/\n    feeds:\n      - url: https://a.example/f\n        poll:\n"
        "          min: 5m\n",
        "sites:\n  - name: new.example\n    url: 'https://a.example/'\n    expect:\n"
        "      - {pages: '/**', in: feed, within: 1h}\n...\n",
        'alerts: [{webhook: {url: "https://x.example/", secret: "${UNSET_HERE}"}}]\nsites: [{url: https://a.example/}]',
    ],
)
def test_a_file_that_is_added_to_keeps_every_byte(text: str) -> None:
    done = added(text)
    rest = iter(done)
    assert all(character in rest for character in text), "what stood there stands there, in its order"
    assert len(done) - len(text) < 300
    sites = loads(done.removeprefix("\ufeff"), name="x", env={"UNSET_HERE": "whsec_QUJD"}).sites
    assert [site.url for site in sites] == ["https://a.example/", "https://new.example/"]
    assert sites[1].feeds == ("https://new.example/f?a=1#b",)
    assert len({site.name for site in sites}) == 2
    with pytest.raises(ConfigError, match="is there already"):
        added(done)


@pytest.mark.parametrize("text", ["# only comments\n", "alerts: [stdout]\n", "sites:\n# none yet\n"])
def test_a_file_without_sites_gets_its_first(text: str) -> None:
    done = added(text)
    assert text in done or text.splitlines()[1] in done
    assert [site.url for site in loads(done, name="x", env={}).sites] == ["https://new.example/"]


def test_one_host_is_one_site() -> None:
    text = "sites:\n  - url: https://www.new.example/\n"
    with pytest.raises(ConfigError, match=r"https://new\.example/ is there already, as .new\.example."):
        added(text)
    with pytest.raises(ConfigError, match=r"is on the host of https://new\.example/"):
        add_sites("", [NEW, NewSite("https://www.new.example/x")], file="x", path=HERE, env={})
    assert "8080" in add_sites(text, [NewSite("https://new.example:8080/")], file="x", path=HERE, env={})


def test_a_link_stays_one_and_the_mode_stays(tmp_path: Path, room: Newsroom) -> None:
    path, link = tmp_path / "real.yaml", tmp_path / "sites.yaml"
    path.write_text(
        "defaults: {allow_private_networks: true}\n"
        "alerts: [{webhook: {url: 'https://h.example/', secret: '${NONE}'}}]\n"
        "sites: &all\n  - url: https://a.example/\n"
    )
    path.chmod(0o640)
    link.symlink_to(path)
    done = monitor("init", room.url, cwd=tmp_path)  # the file's own defaults let it in
    assert (done.returncode, done.stderr) == (0, "")
    assert link.is_symlink()
    assert (path.stat().st_mode & 0o777, room.url in path.read_text()) == (0o640, True)
    assert path.read_text().count("allow_private_networks") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["real.yaml", "sites.yaml"]


def test_addresses_that_nobody_can_write_down_keep_no_site_from_being_written() -> None:
    assert writable("https://a.example/\u00e9 x") == "https://a.example/%C3%A9%20x"
    assert writable("https://a.example/x?y") == "https://a.example/x?y"
    assert writable("https://") is None
    made = _site(
        Discovered(
            "https://a.example/",
            feeds=(Found("https://a.example/a b", "feed", "head"), Found("https://a.example/${HOME}", "feed", "head")),
            sitemaps=(Found("https://a.example/s.xml", "sitemap", "robots.txt", verdict="HTTP 404"),),
        ),
        private=False,
    )
    env = {"HOME": "/secret"}
    (site,) = loads(add_sites("", [made], file="x", path=HERE, env=env), name="x", env=env).sites
    assert site.feeds == ("https://a.example/a%20b", "https://a.example/${HOME}")
    assert "left out: https://a.example/s.xml (HTTP 404)" in made.notes


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


@given(notes=st.lists(TEXTS, max_size=3), comment=TEXTS, path=TEXTS)
@settings(max_examples=200, deadline=None)
def test_no_text_of_strangers_breaks_the_file(notes: list[str], comment: str, path: str) -> None:
    from monitor.core.url import absolute

    url = absolute(path, "https://new.example/x/") or "https://new.example/"
    site = NewSite("https://new.example/", {"sitemaps": [(url, comment)]}, notes)
    for text in ("", "sites: [{url: https://a.example/}]", "sites:\n  - url: https://a.example/\n# end"):
        done = add_sites(text, [site], file="sites.yaml", path=HERE, env={})
        assert loads(done, name="x", env={}).sites[-1].sitemaps == (url,)
