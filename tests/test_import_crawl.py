"""`monitor import crawl`: from a file to the crawl source, and again."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.test_cli import monitor

SITES = """\
database: sqlite:///monitor.db
sites:
  - {name: one, url: "https://one.example/", feeds: [], sitemaps: ["https://one.example/s.xml"]}
  - {name: two, url: "https://two.example/", feeds: [], sitemaps: ["https://two.example/s.xml"], include: ["/news/**"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sites.yaml").write_text(SITES)
    return tmp_path


def coverage(folder: Path, site: str) -> dict[str, Any]:
    done = monitor("report", "coverage", site, "--format", "json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_list_goes_to_the_sites_of_its_hosts(folder: Path) -> None:
    urls = [f"https://one.example/{n}" for n in range(30)] + ["https://one.example/1?utm_source=x"]
    urls += ["https://www.two.example/news/a", "https://two.example/sport/b", "https://three.example/c", "nothing"]
    (folder / "list.txt.gz").write_bytes(gzip.compress("\n".join(urls).encode()))
    done = monitor("import", "crawl", "list.txt.gz", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "one: 30 pages in the crawl, 0 of them news\ntwo: 1 pages in the crawl, 0 of them news\n"
    assert "1 URLs are on hosts of no site (three.example)" in done.stderr
    assert "1 rows hold no http or https address" in done.stderr
    assert coverage(folder, "one")["sources"]["crawl"] == 30
    assert coverage(folder, "two")["sections"] == [
        {"prefix": "/news/", "feed": 0, "news_sitemap": 0, "sitemap": 0, "crawl": 1}
    ]


def test_a_further_import_takes_the_place_of_the_first_and_what_is_new_is_news(folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"https://one.example/{n}\n" for n in range(20)))
    (folder / "b.csv").write_text("n,Address\n" + "".join(f"{n},https://one.example/{n}\n" for n in range(5, 22)))
    assert monitor("import", "crawl", "a.txt", cwd=folder).returncode == 0
    done = monitor("import", "crawl", "b.csv", cwd=folder)
    assert done.stdout == "one: 17 pages in the crawl, 2 of them news\n"
    assert monitor("import", "crawl", "b.csv", cwd=folder).stdout == "one: 17 pages in the crawl, 0 of them news\n"
    events = [json.loads(line) for line in monitor("events", cwd=folder).stdout.splitlines()]
    assert sorted(e["subject"] for e in events if e["type"] == "url.new") == [
        "https://one.example/20",
        "https://one.example/21",
    ]
    assert {e["type"] for e in events} == {"source.baseline", "url.new"}
    assert monitor("explain", "https://one.example/20", cwd=folder).stdout.count("crawl import:crawl") == 1
    rows = {row["url"]: row for row in json.loads(monitor("status", "--json", cwd=folder).stdout)}
    assert (rows["import:crawl"]["pages"], rows["import:crawl"]["next_poll"]) == (17, None)


def test_a_long_list_is_split_and_told_in_one_event(folder: Path) -> None:
    (folder / "long.txt").write_text("".join(f"https://one.example/news/{n}\n" for n in range(120_000)))
    done = monitor("import", "crawl", "long.txt", cwd=folder)
    assert done.stdout == "one: 120,000 pages in the crawl, 0 of them news\n", done.stderr
    with sqlite3.connect(folder / "monitor.db") as db:
        parts = [row[0] for row in db.execute("SELECT rows FROM listing")]
    db.close()
    assert len(parts) == 4
    assert sum(parts) == 120_000
    assert coverage(folder, "one")["sources"]["crawl"] == 120_000
    # A short list after it lists what it lists.
    (folder / "short.txt").write_text("https://one.example/news/7\nhttps://one.example/news/x\n")
    assert "2 pages in the crawl, 1 of them news" in monitor("import", "crawl", "short.txt", cwd=folder).stdout


def test_a_named_site_takes_what_its_hosts_would_not_tell(folder: Path) -> None:
    (folder / "a.txt").write_text("https://three.example/a\nhttps://one.example/a\n")
    done = monitor("import", "crawl", "a.txt", "--site", "one", cwd=folder)
    assert done.stdout == "one: 1 pages in the crawl, 0 of them news\n"
    assert coverage(folder, "one")["off_host"] == [
        {"kind": "crawl", "url": "import:crawl/0/0", "count": 1, "sample": ["https://three.example/a"]}
    ]


@pytest.mark.parametrize(
    ("name", "content", "code", "sentence"),
    [
        ("none.txt", None, 2, "No such file"),
        ("empty.txt", b"", 1, "no column of it holds http or https addresses"),
        ("words.csv", b"a,b\n1,2\n", 1, "no column of it holds http or https addresses (a, b)"),
        ("cut.gz", gzip.compress(b"https://one.example/a\n" * 99, mtime=0)[:-9], 1, "is damaged"),
        ("other.txt", b"https://three.example/a\n", 1, "nothing was imported"),
        ("binary", bytes(range(256)) * 9, 1, "no column of it holds"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, name: str, content: bytes | None, code: int, sentence: str) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    done = monitor("import", "crawl", name, cwd=folder)
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
