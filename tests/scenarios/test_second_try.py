"""What went wrong is told, and mending it helps at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.newsroom import Newsroom, serve_in_thread
from tests.scenarios.processes import Monitor, read, until
from tests.test_cli import monitor


def test_a_failed_discovery_is_told_until_mended_and_then_tried_at_once(tmp_path: Path) -> None:
    room = Newsroom(seed=5, old_pages=6, start=datetime.now(UTC))
    config = tmp_path / "sites.yaml"
    with serve_in_thread(room):
        config.write_text(f"sites:\n  - {{name: courier, url: {room.url!r}}}\n")
        first = monitor("run", "--once", cwd=tmp_path)
        assert first.returncode == 1
        # The host's fault is told once, not for robots.txt and the home page each.
        assert first.stderr.count("not public") == 1
        assert "under `defaults` or the site" in first.stderr
        again = monitor("run", "--once", cwd=tmp_path)
        assert again.returncode == 1
        assert "--all retries" in again.stderr
        for words in (("status",), ("explain", room.url)):
            assert "no sources found" in monitor(*words, cwd=tmp_path).stdout
        listed = monitor("status", "--json", cwd=tmp_path)
        assert (json.loads(listed.stdout), "no sources found" in listed.stderr) == ([], True)

        config.write_text("defaults: {allow_private_networks: true}\n" + config.read_text())
        mended = monitor("run", "--once", "--all", cwd=tmp_path)
        assert (mended.returncode, mended.stderr) == (0, "")
        assert "source.baseline" in mended.stdout


def test_a_daemon_that_starts_or_is_told_to_reload_looks_for_sources_again(tmp_path: Path) -> None:
    room = Newsroom(seed=5, old_pages=6, start=datetime.now(UTC))
    config = tmp_path / "sites.yaml"
    database = tmp_path / "monitor.db"
    with serve_in_thread(room):
        config.write_text(f"sites:\n  - {{name: courier, url: {room.url!r}}}\n")
        assert monitor("run", "--once", cwd=tmp_path).returncode == 1
        config.write_text("defaults: {allow_private_networks: true}\n" + config.read_text())
        with Monitor(config):
            until(lambda: read(database, "select 1 from source where baseline_at is not null"), "the sources are found")


def test_a_shorter_time_between_reads_counts_from_the_last_read_on(tmp_path: Path) -> None:
    room = Newsroom(seed=5, old_pages=6, start=datetime.now(UTC))
    config = tmp_path / "sites.yaml"
    with serve_in_thread(room):
        plain = f"sites:\n  - {{name: courier, url: {room.url!r}}}\n"
        config.write_text("defaults: {allow_private_networks: true}\n" + plain)
        assert monitor("run", "--once", cwd=tmp_path).returncode == 0
        config.write_text("defaults: {allow_private_networks: true, sitemap: {every: 5m}}\n" + plain)
        assert monitor("run", "--once", cwd=tmp_path).returncode == 0
        waits = read(tmp_path / "monitor.db", "select next_at - last_at from source where kind = 'sitemap'")
        assert waits
        assert all(wait == pytest.approx(300.0) for (wait,) in waits)


def test_reading_needs_no_secret_of_the_alerts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Newsroom(seed=5, old_pages=6, start=datetime.now(UTC))
    hook = 'alerts: [{webhook: {url: "https://example.org/", secret: "${HOOK_SECRET_OF_TEST}", events: ["url.*"]}}]\n'
    with serve_in_thread(room):
        (tmp_path / "sites.yaml").write_text(
            f"database: sqlite:///kept.db\ndefaults: {{allow_private_networks: true}}\nsites: [{{url: {room.url!r}}}]\n"
        )
        assert monitor("run", "--once", cwd=tmp_path).returncode == 0
    with (tmp_path / "sites.yaml").open("a") as file:
        file.write(hook)
    monkeypatch.delenv("HOOK_SECRET_OF_TEST", raising=False)
    for words in (("status",), ("events",), ("explain", room.url + "feed.xml"), ("report", "sitemaps")):
        told = monitor(*words, cwd=tmp_path)
        assert (told.returncode, told.stderr) == (0, ""), words
    refused = monitor("run", "--once", cwd=tmp_path)
    assert refused.returncode == 2
    assert "HOOK_SECRET_OF_TEST is not set" in refused.stderr


def test_a_narrow_terminal_shows_every_address_and_error_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    from monitor.commands import reports, tables

    room = Newsroom(seed=5, old_pages=6, start=datetime.now(UTC))
    with serve_in_thread(room):
        (tmp_path / "sites.yaml").write_text(
            f"defaults: {{allow_private_networks: true}}\nsites: [{{url: {room.url!r}, feeds: [{room.url}feed.xml, "
            f"{room.url}none.xml]}}]\n"
        )
        assert monitor("run", "--once", cwd=tmp_path).returncode == 1
    narrow = lambda: Console(width=80, highlight=False, soft_wrap=False)  # noqa: E731
    monkeypatch.setattr(tables, "console", narrow)
    monkeypatch.setattr(reports, "console", narrow)
    url = f"sqlite:///{tmp_path / 'monitor.db'}"
    tables.status(url, as_json=False)
    told = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert f"  {room.url}feed.xml" in told
    failed = told.index(f"  {room.url}none.xml")
    assert "404" in told[failed + 2]
    reports.sitemaps(url, site=None, at=None, form="table", output=None)
    told = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert f"{room.url}sitemap_index.xml" in told
    assert max(map(len, told)) <= 80
