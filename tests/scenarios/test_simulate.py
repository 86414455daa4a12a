"""`monitor simulate` on the history that real passes have stored."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from monitor.newsroom import Newsroom, serve_in_thread
from tests.scenarios.watch import watching
from tests.test_cli import monitor


def test_polls_with_news_are_kept_and_replayed(tmp_path: Path) -> None:
    with watching(tmp_path, sitemaps=(), news_sitemaps=()) as watch:
        room = watch.room
        watch.once()
        published = 0
        for hour in range(40):
            if hour % 4 == 0:
                room.publish()
                published += 1
            watch.once(advance=3600.0)
        (tmp_path / "sites.yaml").write_text(
            f"defaults: {{allow_private_networks: true}}\nsites: [{{url: '{room.url}'}}]\n"
        )
        with closing(sqlite3.connect(tmp_path / "monitor.db")) as db:
            rows = db.execute("select new, since_at is null from poll order by at").fetchall()
            assert rows[0][1] == 1
            assert sum(new for new, first in rows if not first) >= published
            # What was stored on the site's clock is moved to end now, as if it had just happened.
            (end,) = db.execute("select max(at) from poll").fetchone()
            shift = time.time() - end
            db.execute("update poll set at = at + ?, since_at = since_at + ?", (shift, shift))
            db.commit()
    answer = monitor("simulate", "--target-delay", "5m", "--target-delay", "6h", "--json", cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    told = json.loads(answer.stdout)
    lines = {line["setting"]: line for line in told["settings"]}
    assert list(lines) == ["as it was", "as configured", "target_delay 5m", "target_delay 6h"]
    assert lines["target_delay 5m"]["polls_per_day"] > lines["target_delay 6h"]["polls_per_day"]
    assert lines["as it was"]["entries"] > 0
    table = monitor("simulate", "--requests-per-day", "50", cwd=tmp_path)
    assert "requests_per_day 50" in table.stdout


def test_no_history_and_wrong_options_are_one_sentence(tmp_path: Path) -> None:
    room = Newsroom(seed=7, old_pages=5, start=datetime.now(UTC))
    with serve_in_thread(room):
        (tmp_path / "sites.yaml").write_text(
            f"defaults: {{allow_private_networks: true}}\nsites: [{{name: a, url: '{room.url}'}}]\n"
        )
        assert monitor("run", "--once", cwd=tmp_path).returncode == 0
    young = monitor("simulate", cwd=tmp_path)
    assert (young.returncode, young.stdout) == (1, "")
    assert "no history of polls over a day long yet" in young.stderr
    for words, code, sentence in (
        (("b",), 1, "no site is named 'b'"),
        (("--target-delay", "soon"), 2, "--target-delay: soon is no duration"),
        (("--since", "x"), 2, "--since x"),
    ):
        told = monitor("simulate", *words, cwd=tmp_path)
        assert told.returncode == code, told
        assert sentence in told.stderr
        assert len(told.stderr.splitlines()) == 1
