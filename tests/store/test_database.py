"""The database's thread, its transactions, its lock and its migrations, on a real SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, select, text

from monitor.core.reconcile import Draft
from monitor.store import events as event_store
from monitor.store import sources as source_store
from monitor.store.database import HEAD, Database, StoreError, connect, create, migrate, upgrade
from monitor.store.events import Route
from monitor.store.schema import event, metadata


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


@pytest.mark.parametrize("make", [create, upgrade])
def test_a_new_database_and_a_migrated_one_have_the_declared_schema(url: str, make: Callable[[Engine], None]) -> None:
    engine = connect(url)
    make(engine)
    migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == HEAD
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
    engine.dispose()


def test_the_migrations_lead_to_what_a_new_database_has(tmp_path: Path) -> None:
    def tables(make: Callable[[Engine], None]) -> list[tuple[str, ...]]:
        engine = connect(f"sqlite:///{tmp_path}/{make.__name__}.db")
        make(engine)
        with engine.connect() as connection:
            names = connection.execute(text("SELECT name FROM sqlite_master ORDER BY name")).scalars().all()
            made = [
                (name, *map(str, row[1:]))
                for name in names
                for row in connection.execute(text(f"PRAGMA table_xinfo('{name}')")).all()
            ]
        engine.dispose()
        return [(name,) for name in names] + sorted(made)

    assert tables(create) == tables(upgrade)


def test_two_processes_may_make_the_schema(url: str) -> None:
    first, second = connect(url), connect(url)
    create(first)
    create(second)
    with second.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    first.dispose()
    second.dispose()


def test_a_newer_schema_is_refused(url: str, tmp_path: Path) -> None:
    Database(url).close()
    with sqlite3.connect(tmp_path / "m.db") as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.close()
    with pytest.raises(StoreError, match="newer than this program"):
        Database(url)


def test_the_second_process_is_refused_with_a_sentence_and_gets_in_once_the_first_is_gone(url: str) -> None:
    with Database(url):
        code = f"from monitor.store.database import Database\nDatabase({url!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another monitor (process" in done.stderr
        with Database(url, exclusive=False) as reader:
            assert reader.call(source_store.sites) == {}
    Database(url).close()


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("nonsense", "not a database URL"),
        ("mysql://x/y", "is not supported"),
        ("sqlite:////nowhere/at/all/m.db", "does not exist"),
    ],
)
def test_unusable_databases_are_one_sentence(bad: str, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        Database(bad)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "m.db").write_bytes(b"hello " * 1000)
    with pytest.raises(StoreError, match="is not a usable database"):
        Database(f"sqlite:///{tmp_path}/m.db")


def _add(name: str) -> object:
    def work(connection: Connection) -> None:
        event_store.add_events(connection, "s", [Draft("url.new", name, {})], [Route("a", lambda _e: True)], 1.0)

    return work


def test_work_that_fails_takes_nothing_else_of_its_group_with_it(url: str) -> None:
    def broken(connection: Connection) -> None:
        _add("half")(connection)  # type: ignore[operator]
        raise LookupError("no")

    async def go(db: Database) -> list[object]:
        works = [_add("one"), broken, _add("two")]
        return await asyncio.gather(*(db.run(w) for w in works), return_exceptions=True)  # type: ignore[arg-type]

    with Database(url) as db:
        results = asyncio.run(go(db))
        assert isinstance(results[1], LookupError)
        found = [body["subject"] for _seq, body in db.call(event_store.read_events)]
    assert found == ["one", "two"]


def test_a_database_locked_by_another_process_is_told_and_nothing_is_lost(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.store.database.BUSY_SECONDS", 0.2)
    with Database(url) as db:
        other = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process holds the database's lock"):
            db.call(_add("x"))  # type: ignore[arg-type]
        other.execute("ROLLBACK")
        other.close()
        db.call(_add("y"))  # type: ignore[arg-type]
        assert [b["subject"] for _s, b in db.call(event_store.read_events)] == ["y"]


def test_deliveries_hold_their_order_per_endpoint_and_site(url: str) -> None:
    routes = [Route("a", lambda _e: True), Route("b", lambda e: e.site == "one")]

    def fill(connection: Connection) -> None:
        for site in ("one", "two"):
            drafts = [Draft("url.new", f"{site}-{n}", {}) for n in range(3)]
            event_store.add_events(connection, site, drafts, routes, 10.0)

    with Database(url) as db:
        db.call(fill)
        pending = db.call(lambda c: event_store.pending_deliveries(c, 10.0, ["a", "b"], 100))
        assert [p.endpoint for p in pending] == ["a"] * 6 + ["b"] * 3
        first = pending[0]
        db.call(lambda c: event_store.postponed(c, first, 99.0, "503"))
        again = db.call(lambda c: event_store.pending_deliveries(c, 11.0, ["a"], 100))
        assert {p.site for p in again} == {"two"}
        later = db.call(lambda c: event_store.pending_deliveries(c, 99.0, ["a"], 100))
        assert [p.seq for p in later] == sorted(p.seq for p in later)
        assert (later[0].seq, later[0].attempts) == (first.seq, 1)
        db.call(lambda c: event_store.delivered(c, "a", [p.seq for p in later]))
        assert db.call(lambda c: event_store.pending_deliveries(c, 99.0, ["a"], 100)) == []
        db.call(lambda c: event_store.disable(c, "b", "410", 1.0))
        assert db.call(lambda c: event_store.pending_deliveries(c, 99.0, ["b"], 100)) == []
        assert ("b", "parked", 3, "410") in db.call(event_store.delivery_counts)
        assert db.call(lambda c: c.execute(select(event.c.seq)).all()) != []


def test_event_ids_sort_by_time_and_never_repeat() -> None:
    ids = [event_store.new_id(1_700_000_000 + n / 100) for n in range(500)]
    assert all(len(i) == 26 for i in ids)
    assert [i[:10] for i in ids] == sorted(i[:10] for i in ids)
    assert len(set(ids)) == 500
