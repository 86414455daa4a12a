"""`monitor crawl` and the reports as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.newsroom import Newsroom, serve_in_thread
from tests.test_cli import monitor


@pytest.fixture
def room() -> Iterator[Newsroom]:
    made = Newsroom(seed=5, old_pages=12, start=datetime.now(UTC))
    with serve_in_thread(made):
        yield made


@pytest.fixture
def site(tmp_path: Path, room: Newsroom) -> Path:
    (tmp_path / "sites.yaml").write_text(
        "defaults: {allow_private_networks: true}\nsites:\n"
        f'  - {{name: courier, url: {room.url!r}, crawl: {{sections: ["/"], max_pages: 30}}}}\n'
        f"  - {{name: other, url: {room.url!r}}}\n"
    )
    return tmp_path


def test_a_crawl_by_hand_and_by_the_daemon(site: Path, room: Newsroom) -> None:
    first = monitor("crawl", "courier", cwd=site)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines()[-1] == "courier: 13 pages visited (0 unchanged), 12 listed"
    again = monitor("crawl", "courier", cwd=site)
    assert "13 pages visited (13 unchanged), 12 listed" in again.stdout
    before = len(room.requests)
    assert monitor("run", "--once", cwd=site).returncode == 0
    assert not [r for r in room.requests_since(before) if r.path.startswith("/news/")]  # not due for a day
    article = room.publish(in_feed=False, in_news=False, in_sitemap=False)
    done = monitor("run", "--once", "--all", cwd=site)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(e["type"], e["subject"], e["data"]["found_in"]["kind"]) for e in events] == [
        ("url.new", article.url, "crawl")
    ]
    rows = [row for row in json.loads(monitor("status", "--json", cwd=site).stdout) if row["kind"] == "crawl"]
    assert [(row["url"], row["state"], row["pages"], row["reason"]) for row in rows] == [
        (room.url, "ok", 13, "crawled every 86400 s (crawl.every)")
    ]
    checked = json.loads(monitor("check", "--json", cwd=site).stdout)
    assert [(one["ok"], one["size"]) for one in checked if one["kind"] == "crawl"] == [(True, 13)]


def test_reports_of_one_site_and_of_all(site: Path, room: Newsroom) -> None:
    assert monitor("run", "--once", cwd=site).returncode == 0
    one = json.loads(monitor("report", "coverage", "courier", "--json", cwd=site).stdout)
    every = json.loads(monitor("report", "coverage", "--json", cwd=site).stdout)
    assert (one["site"], one["complete"], one["sources"]["crawl"]) == ("courier", True, 12)
    assert [found["site"] for found in every] == ["courier", "other"]
    assert monitor("report", "coverage", "--format", "html", "-o", "wall.html", cwd=site).stdout == ""
    assert (site / "wall.html").read_text().count("<h1>") == 2
    trust = json.loads(monitor("report", "trust", "courier", "--json", cwd=site).stdout)
    assert {found["verdict"] for found in trust} == {"unknown"}
    assert all(found["evidence"] for found in trust)
    for form in ("table", "csv", "html"):
        assert "pages-1.xml.gz" in monitor("report", "trust", "--format", form, cwd=site).stdout


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["crawl", "nobody"], 2, "no site is named 'nobody'; known are courier, other"),
        (["crawl", "other"], 2, "other has no `crawl:` in the configuration"),
        (["report", "coverage", "--format", "xml"], 2, "use table, json, csv or html"),
        (["report", "coverage", "--since", "soon"], 2, "--since soon"),
        (["report", "coverage", "nobody"], 2, "no site is named 'nobody'"),
        (["report", "lag", "-o", "nowhere/x.csv"], 1, "nowhere/x.csv: No such file or directory"),
        (["report", "trust", "--format", "xml"], 2, "use table, json, csv or html"),
        (["import", "crawl", "x", "--site", "nobody"], 2, "no site is named 'nobody'"),
    ],
)
def test_mistakes_are_one_sentence(site: Path, args: list[str], code: int, sentence: str) -> None:
    if args[0] == "report":
        from monitor.config import load
        from monitor.store import sources as source_store
        from monitor.store.database import Database

        config = load(site / "sites.yaml", {})
        with Database(config.database) as db:
            db.call(lambda c: source_store.sync_sites(c, [("courier", "https://e.example/")], 0.0))
    done = monitor(*args, cwd=site)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
