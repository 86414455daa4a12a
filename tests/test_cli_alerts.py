"""`monitor alerts test` as a user runs it: each endpoint's answer, and no secret anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from standardwebhooks.webhooks import Webhook

from tests.test_cli import monitor
from tests.test_schemas import event_errors

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "t0psecret"


@pytest.fixture
def hooks() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1") as server:
        server.expect_request("/good").respond_with_data(status=204)
        server.expect_request("/bad").respond_with_data("no", status=500)
        server.expect_request(f"/{TOKEN}").respond_with_data("no", status=403)
        yield server


def write(folder: Path, hooks: HTTPServer, *alerts: str, private: str = "true") -> None:
    base = hooks.url_for("").rstrip("/")
    (folder / "key").write_text(SECRET)
    lines = "".join(f"  - {alert}\n" for alert in alerts).replace("HOOK", base)
    lines = lines.replace("JSON", base.replace("http", "json"))
    (folder / "sites.yaml").write_text(
        f"defaults: {{allow_private_networks: {private}}}\nalerts:\n{lines}sites: [{{name: paper, url: {base}/}}]\n"
    )


GOOD = 'webhook: {url: "HOOK/good?key=t0psecret", secret: "${file:key}", events: [source.gap]}'


def test_each_endpoint_gets_a_sample_and_its_answer_is_shown(tmp_path: Path, hooks: HTTPServer) -> None:
    write(tmp_path, hooks, "stdout: {format: jsonl}", GOOD, "file: {path: events.jsonl}")
    done = monitor("alerts", "test", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    [line] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert event_errors(line) == []
    assert line["data"]["test"] is True
    assert "HTTP 204 in" in done.stdout
    [(request, _answer)] = hooks.log
    told = Webhook(SECRET).verify(request.get_data(), dict(request.headers))
    assert told["subject"] == line["subject"]
    assert json.loads((tmp_path / "events.jsonl").read_text())["type"] == "url.new"
    assert not (tmp_path / "monitor.db").exists()
    assert TOKEN not in done.stdout


def test_one_that_fails_is_named_and_exits_1(tmp_path: Path, hooks: HTTPServer) -> None:
    write(tmp_path, hooks, "stdout", GOOD, 'webhook: {url: "HOOK/bad"}', "file: {path: none/events.jsonl}")
    done = monitor("alerts", "test", "--json", cwd=tmp_path)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [trial["ok"] for trial in told] == [True, True, False, False]
    assert json.loads(told[0]["answer"])["type"] == "url.new"
    assert "HTTP 500" in told[2]["answer"]
    assert "No such file or directory" in told[3]["answer"]
    assert "HTTP 500" in done.stderr
    only = monitor("alerts", "test", "--endpoint", told[1]["endpoint"], cwd=tmp_path)
    assert (only.returncode, only.stderr) == (0, "")
    unknown = monitor("alerts", "test", "--endpoint", "nobody", cwd=tmp_path)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no alert is named 'nobody'" in unknown.stderr


def test_a_private_address_is_refused_unless_it_is_permitted(tmp_path: Path, hooks: HTTPServer) -> None:
    write(tmp_path, hooks, GOOD, private="false")
    done = monitor("alerts", "test", cwd=tmp_path)
    assert done.returncode == 1
    assert "allow_private_networks" in done.stderr
    assert hooks.log == []


def test_what_a_service_refuses_shows_no_token_however_much_is_logged(tmp_path: Path, hooks: HTTPServer) -> None:
    pytest.importorskip("apprise", reason="the extra `notify` is not installed")
    write(tmp_path, hooks, f'notify: {{url: "JSON/{TOKEN}"}}', 'notify: {url: "nope://t0psecret"}')
    done = monitor("alerts", "test", "-v", cwd=tmp_path)
    assert done.returncode == 1
    assert "the service did not take the message" in done.stderr
    assert "403" in done.stderr
    assert "Apprise knows no such service" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
