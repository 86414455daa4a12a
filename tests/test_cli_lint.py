"""`monitor lint` as a user runs it: on files, standard input and addresses; exit codes, JSON, no traceback."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from monitor.newsroom import Newsroom, serve_in_thread
from tests.core.lint_documents import SITE, rss, urlset


def lint(*args: str, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "monitor", "lint", *args],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=cwd,
        timeout=60,
    )


def report(*args: str, **more: Any) -> tuple[int, dict[str, Any]]:
    done = lint(*args, "--json", **more)
    assert done.stderr == b""
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


@pytest.fixture(scope="module")
def room() -> Iterator[Newsroom]:
    made = Newsroom(seed=5, old_pages=12, start=datetime.now(UTC))
    with serve_in_thread(made):
        yield made


def test_a_file_plain_or_compressed_or_from_standard_input(tmp_path: Path) -> None:
    data = urlset(f"<url><loc>{SITE}/a</loc></url>\n<url><loc>/b</loc></url>")
    (tmp_path / "map.xml").write_bytes(data)
    (tmp_path / "map.xml.gz").write_bytes(gzip.compress(data))
    for subject in ("map.xml", "map.xml.gz", "-"):
        code, found = report(subject, cwd=tmp_path, stdin=data if subject == "-" else b"")
        assert code == 1
        assert list(found) == ["url", "kind", "format", "size", "complete", "findings"]
        assert (found["url"], found["kind"], found["complete"]) == (subject, "sitemap", True)
        (finding,) = found["findings"]
        assert list(finding) == ["rule", "severity", "place", "message", "source", "count"]
        assert (finding["rule"], finding["severity"], finding["place"]) == ("row.relative", "error", "line 4, /b")


def test_the_table_is_for_people(tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_bytes(rss(itself="").replace(b">A<", b">\x1b[31m[red]A<"))
    done = lint("feed.xml", cwd=tmp_path)
    text = done.stdout.decode()
    assert done.returncode == 1
    assert "xml.character" in text
    assert "feed.self" in text
    assert "\x1b" not in text
    assert text.endswith("feed.xml: feed (rss20), 1 entries; 1 error, no warnings, 1 note\n")


def test_without_errors_the_exit_code_is_0(tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_bytes(rss(itself=""))
    assert lint("feed.xml", cwd=tmp_path).returncode == 0


def test_every_document_of_a_sound_site_is_without_error(room: Newsroom) -> None:
    for path in ("feed.xml", "feed.json", "news-sitemap.xml", "sitemap_index.xml", "sitemaps/pages-1.xml.gz"):
        code, found = report(f"{room.url}{path}", "--allow-private-networks")
        assert (path, code, [f for f in found["findings"] if f["severity"] != "note"]) == (path, 0, [])
        assert found["complete"]


def test_a_page_in_place_of_a_feed_names_the_feed(room: Newsroom) -> None:
    done = lint(room.url, "--allow-private-networks")
    assert done.returncode == 1
    assert f"it names one at {room.url}feed.xml" in done.stdout.decode()


def test_an_address_that_does_not_answer_with_a_document_is_an_error(room: Newsroom) -> None:
    code, found = report(f"{room.url}nowhere.xml", "--allow-private-networks")
    assert (code, found["kind"]) == (1, None)
    assert [finding["rule"] for finding in found["findings"]] == ["http.status"]
    code, found = report(f"{room.url}feed.xml")
    assert (code, [finding["rule"] for finding in found["findings"]]) == (1, ["http.failure"])
    assert "an address that is not public" in found["findings"][0]["message"]


@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        ("nowhere.xml", b"there is no file nowhere.xml"),
        (".", b". cannot be read: Is a directory"),
        ("ftp://e.example/feed.xml", b"only http and https addresses can be fetched"),
        ("a\x7f.xml", b"there is no file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_exit_2(tmp_path: Path, subject: str, sentence: bytes) -> None:
    done = lint(subject, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    assert sentence in done.stderr
    assert done.stderr.count(b"\n") == 1
