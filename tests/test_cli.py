"""The commands as a user runs them: exit codes, what goes to stdout and what to stderr, no traceback for a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.newsroom import Newsroom, serve_in_thread


def monitor(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "monitor", *args], capture_output=True, text=True, cwd=cwd, check=False, timeout=120
    )


@pytest.fixture
def room() -> Iterator[Newsroom]:
    made = Newsroom(seed=5, old_pages=12, start=datetime.now(UTC))
    with serve_in_thread(made):
        yield made


@pytest.fixture
def site(tmp_path: Path, room: Newsroom) -> Path:
    (tmp_path / "sites.yaml").write_text(
        f"defaults: {{allow_private_networks: true}}\nsites:\n  - {{name: courier, url: {room.url!r}}}\n"
    )
    return tmp_path


def test_the_main_job_from_an_address_alone(site: Path, room: Newsroom) -> None:
    first = monitor("run", "--once", cwd=site)
    assert (first.returncode, first.stderr) == (0, "")
    assert {json.loads(line)["type"] for line in first.stdout.splitlines()} == {"source.baseline"}
    article = room.publish()
    second = monitor("run", "--once", "--all", cwd=site)
    assert (second.returncode, second.stderr) == (0, "")
    events = [json.loads(line) for line in second.stdout.splitlines()]
    assert [(e["type"], e["subject"], e["source"]) for e in events] == [("url.new", article.url, "/sites/courier")]

    log = monitor("events", "--type", "url.*", "--format", "jsonl", cwd=site)
    assert [json.loads(line) for line in log.stdout.splitlines()] == events
    assert article.title in monitor("events", "--format", "table", "--since", "1h", cwd=site).stdout
    assert monitor("events", "--since", "2001-01-01T00:00:00Z", "--site", "nobody", cwd=site).stdout == ""

    rows = json.loads(monitor("status", "--json", cwd=site).stdout)
    assert {row["kind"] for row in rows} == {"feed", "news_sitemap", "sitemap"}
    assert all(row["state"] == "ok" and row["last_error"] is None for row in rows)
    assert all(row["rate_per_day"] > 0 and row["reason"] for row in rows if row["kind"] == "feed")
    assert "feed.xml" in monitor("status", cwd=site).stdout

    why = monitor("explain", f"{room.url}feed.xml", cwd=site)
    assert "overflow" in why.stdout
    page = json.loads(monitor("explain", article.url, "--json", cwd=site).stdout)["pages"][0]
    assert {item["kind"] for item in page["listed"]} == {"feed", "news_sitemap", "sitemap"}
    assert [e["id"] for e in page["events"]] == [events[0]["id"]]
    unknown = monitor("explain", "https://nowhere.example/x", cwd=site)
    assert (unknown.returncode, unknown.stdout) == (1, "")


def test_a_failing_file_is_named_on_stderr_and_exits_1(site: Path, room: Newsroom) -> None:
    monitor("run", "--once", cwd=site)
    room.fail("/sitemaps/pages-1.xml.gz", 500)
    done = monitor("run", "--once", "--all", cwd=site)
    assert done.returncode == 1
    assert "/sitemaps/pages-1.xml.gz" in done.stderr
    assert "HTTP 500" in done.stderr
    assert done.stdout == ""


def test_report_sitemaps_shows_each_file_and_what_it_listed_before(site: Path, room: Newsroom) -> None:
    monitor("run", "--once", cwd=site)
    article = room.publish()
    monitor("run", "--once", "--all", cwd=site)
    (report,) = json.loads(monitor("report", "sitemaps", "--json", cwd=site).stdout)
    files = {file["url"].removeprefix(room.url): file for file in report["files"]}
    assert files["news-sitemap.xml"]["kind"] == "news_sitemap"
    assert all(file["complete"] and file["problems"] is None and file["bytes"] > 0 for file in files.values())
    listing = [file for file in files.values() if file["kind"] == "sitemap" and file["urls"]]
    assert listing
    assert all(file["lastmod_share"] == 1.0 for file in listing)
    assert report["urls"] == sum(file["urls"] for file in files.values())
    table = monitor("report", "sitemaps", "courier", cwd=site)
    assert (table.returncode, table.stderr) == (0, "")
    assert "news-sitemap.xml" in table.stdout
    now = monitor("report", "sitemaps", "--at", "0s", "--format", "csv", cwd=site).stdout
    assert article.url in now
    unknown = monitor("report", "sitemaps", "nobody", cwd=site)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no site is named 'nobody'; known are courier" in unknown.stderr


def test_check_reads_and_changes_nothing(site: Path, room: Newsroom) -> None:
    good = monitor("check", "--json", cwd=site)
    assert good.returncode == 0
    assert all(trial["ok"] for trial in json.loads(good.stdout))
    assert not (site / "monitor.db").exists()
    room.fail("/news-sitemap.xml", "html")
    bad = monitor("check", cwd=site)
    assert bad.returncode == 1
    assert "HTML" in bad.stderr


def test_discover_shows_what_it_found_and_how(site: Path, room: Newsroom) -> None:
    found = json.loads(monitor("discover", room.url, "--allow-private-networks", "--json", cwd=site).stdout)
    assert {f["how"] for f in found["sitemaps"] + found["news_sitemaps"]} == {"robots.txt"}
    assert f"{room.url}feed.xml" in [f["url"] for f in found["feeds"]]
    refused = monitor("discover", room.url, cwd=site)
    assert refused.returncode == 1
    assert "`allow_private_networks: true` in sites.yaml" in refused.stderr
    assert "--allow-private-networks" in refused.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sites:\n  - url: https://a.example/\n    feedz: []\n", "sites.yaml:3: sites[0].feedz: unknown key"),
        ("sites: [\n", "sites.yaml:"),
        ("", "sites.yaml"),
        (
            "sites:\n  - {url: 'https://a.example/', sitemap: {every: 5 parsecs}}\n",
            "sites.yaml:2: sites[0].sitemap.every",
        ),
    ],
)
def test_a_wrong_configuration_is_told_with_its_place_and_exits_2(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "sites.yaml").write_text(text)
    for command in (["run", "--once"], ["check"], ["status"]):
        done = monitor(*command, cwd=tmp_path)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["run", "--all"], 2, "--all needs --once"),
        (["run", "-c", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["status"], 1, "there is no database"),
        (["events", "--format", "csv"], 2, "use jsonl or table"),
        (["events", "--since", "yesterday"], 2, "--since yesterday"),
        (["schema", "cats"], 2, "cats"),
        (["run", "--once", "--database", "mysql://x/y"], 2, "is not supported"),
        (["status", "--database", "foo"], 2, "not a database URL"),
        (["status", "--database", "postgresql://u@h:port/x"], 2, "not a database URL"),
        (["events", "--since", "\u00b2h"], 2, "--since \u00b2h: use a time"),
        (["discover", "http://[::1"], 2, "'http://[::1' is no URL"),
        (["discover", "ftp://x"], 2, "'ftp://x' is no http or https URL"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_mistakes_are_one_sentence(site: Path, args: list[str], code: int, sentence: str) -> None:
    done = monitor(*args, cwd=site)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_of_our_own_is_no_mistake_in_the_configuration(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from monitor import config
    from monitor.commands import daemon
    from monitor.deliver import endpoints
    from monitor.engine import Engine

    async def broken(*_: object, **__: object) -> None:
        raise ValueError("lost")

    def unusable(*_: object) -> None:
        raise ValueError("an extra is not installed")

    made = config.load(site / "sites.yaml", {})
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "once", broken)
        with pytest.raises(ValueError, match="lost"):
            daemon.run(made, made.database, once=True, everything=False)
    monkeypatch.setattr(endpoints, "build", unusable)
    assert daemon.run(made, made.database, once=True, everything=False) == 2
    assert capsys.readouterr().err == "monitor: an extra is not installed\n"


def test_schema_is_json_schema(tmp_path: Path) -> None:
    both = json.loads(monitor("schema", cwd=tmp_path).stdout)
    assert set(both) == {"sites", "events"}
    assert json.loads(monitor("schema", "events", cwd=tmp_path).stdout) == both["events"]


def test_a_second_run_on_the_same_database_is_refused(site: Path) -> None:
    from monitor.store.database import Database

    with Database(f"sqlite:///{site}/monitor.db"):
        done = monitor("run", "--once", cwd=site)
    assert done.returncode == 1
    assert "another monitor" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_demo_tells_of_every_article_and_ends_by_itself(tmp_path: Path) -> None:
    done = monitor("demo", "--seconds", "16", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "0 of the new ones missed, 0 told twice" in done.stdout
    assert "+ new" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_python_api_is_what_the_contract_names() -> None:
    code = """
import monitor
from monitor import schedule
rss = b'<rss version="2.0"><channel><title>t</title><item><guid>1</guid></item></channel></rss>'
feed = monitor.parse_feed(rss, url="https://e.example/f", content_type="application/rss+xml", known=frozenset())
assert feed.format == "rss20" and feed.size == 1
rows = b"<urlset><url><loc>https://e.example/a</loc></url></urlset>"
sitemap = monitor.parse_sitemap(rows, url="https://e.example/s")
assert sitemap.kind == "urlset" and sitemap.complete and sitemap.rows[0].url == "https://e.example/a"
assert monitor.page_key("https://www.example.com/a?utm_source=rss#top") == "https://www.example.com/a"
assert callable(monitor.discover) and callable(monitor.read_sitemaps)
schedule.start(schedule.Policy(min_interval=60, max_interval=86400, price=600))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
