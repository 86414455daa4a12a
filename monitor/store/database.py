"""Opening the database, and the one thread that works it.

Everything the store does runs on one thread, in grouped transactions: work that arrives while a transaction is under
way shares the next one, so that a busy daemon pays one commit for a hundred polls. Each piece of work has a savepoint
of its own; one that fails takes nothing else with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Executable, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError
from sqlalchemy.pool import StaticPool

from monitor.store.schema import metadata

T = TypeVar("T")
Work = Callable[[Connection], T]
GROUP = 256
LINGER = 0.005
"""Seconds that rows to write wait for others to share their commit."""
HEAD = "0001"
BUSY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Write:
    """One row's worth of a statement that many polls repeat; those of one group go as one `executemany`."""

    statement: Executable
    values: Mapping[str, Any]


@dataclass(slots=True)
class _Job:
    """What was handed in: a function, or rows to write; and who waits for it, on which loop if on one."""

    work: Work[Any] | tuple[Write, ...]
    future: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None = None
    value: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        """Tell who waits; harmless where nobody does any more."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


class StoreError(Exception):
    """The database cannot be used. The message says what, where and what to do; nothing was changed."""


class DatabaseURLError(StoreError):
    """That is no URL of a database that this program can use: a mistake of usage, not a failure."""


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite URL; None for another database or one in memory."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))


def parse_url(url: str) -> URL:
    """SQLAlchemy's URL; DatabaseURLError where it is none."""
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:
        raise DatabaseURLError("not a database URL; use sqlite:///PATH or postgresql://...") from error


def connect(url: str) -> Engine:
    """An engine for `url`, set up so that a transaction takes SQLite's write lock at its start.

    SQLite runs in WAL mode with synchronous=FULL: what was committed survives power loss, so an event that was sent
    never comes again under another id.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        path = sqlite_path(url)
        if path is not None and not path.parent.is_dir():
            raise StoreError(f"the folder {path.parent} of the database does not exist; create it or set `database`")
        # A database in memory lives in its one connection.
        pool = {"poolclass": StaticPool} if path is None else {}
        engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, **pool)
        event.listen(engine, "connect", _on_sqlite_connect)
        event.listen(engine, "begin", _on_sqlite_begin)
        return engine
    if parsed.get_backend_name() in ("postgresql", "postgres"):
        try:
            return create_engine(parsed.set(drivername="postgresql+psycopg"))
        except ModuleNotFoundError as error:
            raise DatabaseURLError("PostgreSQL needs the extra `postgres`: pip install 'psycopg[binary]'") from error
    raise DatabaseURLError(f"{parsed.drivername} is not supported; use sqlite:///PATH or postgresql://...")


def _on_sqlite_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN is deferred; ours is IMMEDIATE
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _on_sqlite_begin(connection: Connection) -> None:
    mode = connection.get_execution_options().get("sqlite_begin", "IMMEDIATE")
    connection.exec_driver_sql(f"BEGIN {mode}")


def migrate(engine: Engine) -> None:
    """Bring the schema up to date; does nothing, quickly, when it is. A newer schema than ours is refused."""
    with engine.connect() as connection:
        version = current_version(connection)
    if version == HEAD:
        return
    if version is not None and version > HEAD:
        raise StoreError(f"the database has schema {version}, newer than this program's {HEAD}; upgrade the program")
    if version is None:
        create(engine)
    else:
        upgrade(engine)


def create(engine: Engine) -> None:
    """Make the schema of now in a database that is empty. Two processes may try: the first one's stands."""
    with engine.begin() as connection:
        if current_version(connection) is None:
            metadata.create_all(connection)
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def upgrade(engine: Engine) -> None:
    """Run the migrations that a database has not seen."""
    from alembic import command  # noqa: PLC0415 - 150 ms and 10 MiB that only a migration should cost
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def current_version(connection: Connection) -> str | None:
    """The schema's version, None for a database without one."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


class Lock:
    """The right to run polls on a database: one process at a time.

    For SQLite a lock on the file `<database>.lock`, for PostgreSQL a session's advisory lock; both end with the
    process, however it ends.
    """

    def __init__(self, url: str, engine: Engine) -> None:
        self._path = sqlite_path(url)
        self._engine = engine
        self._file: IO[str] | None = None
        self._connection: Connection | None = None

    def acquire(self) -> None:
        """Take the lock or raise StoreError with a sentence that says who has it."""
        if self._path is not None:
            path = Path(f"{self._path}.lock")
            try:
                file = path.open("a+")
            except OSError as error:
                raise StoreError(f"cannot write {path}: {error.strerror}") from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                file.seek(0)
                owner = file.read().strip() or "unknown"
                file.close()
                raise StoreError(
                    f"another monitor (process {owner}) is running on {self._path}; stop it, or use another database"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            self._file = file
        elif self._engine.dialect.name == "postgresql":
            connection = self._engine.connect()
            if not connection.execute(text("SELECT pg_try_advisory_lock(7304211)")).scalar():
                connection.close()
                raise StoreError("another monitor is running on this database; stop it, or use another database")
            connection.commit()
            self._connection = connection

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Database:
    """The database and its thread. `run` takes a function of a connection and gives its result.

    Use as a context manager; leaving it finishes what was handed in and closes the file. One that is not `exclusive`
    works beside the daemon: it reads, or with `writing` takes its turn at the write lock for each transaction.
    """

    def __init__(self, url: str, *, exclusive: bool = True, must_exist: bool = False, writing: bool = False) -> None:
        self.url = url
        path = sqlite_path(url)
        if must_exist and path is not None and not path.exists():
            raise StoreError(f"there is no database at {path} yet; `monitor run` creates it")
        engine = connect(url)
        # A reader must neither wait for the daemon's lock nor take it.
        self._engine = engine if exclusive or writing else engine.execution_options(sqlite_begin="DEFERRED")
        self._lock = Lock(url, self._engine)
        try:
            if exclusive:
                self._lock.acquire()
            migrate(self._engine)
        except (OperationalError, DatabaseError) as error:
            self.close_engine()
            raise StoreError(explain(error, url)) from error
        except StoreError:
            self.close_engine()
            raise
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
        self._thread.start()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue `work`; the future resolves once its transaction is committed."""
        future: Future[T] = Future()
        self._queue.put(_Job(work, future))
        return future

    async def write(self, *writes: Write) -> None:
        """Do `writes` within one transaction, those of other callers with them; returns after the commit."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put(_Job(writes, future, loop))
        await future

    async def run(self, work: Work[T]) -> T:
        """Do `work` in a transaction and return its result after the commit; its exception, if it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(work, future, loop))
        return await future

    def call(self, work: Work[T]) -> T:
        """The same from a thread without an event loop."""
        return self.submit(work).result()

    def close(self) -> None:
        """Finish what was handed in, close the file and give back the lock."""
        self._queue.put(None)
        self._thread.join()
        self.close_engine()

    def close_engine(self) -> None:
        """Close connections and lock without waiting for work."""
        self._engine.dispose()
        self._lock.release()

    def _serve(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                return
            group = [job]
            stop = False
            while len(group) < GROUP:
                try:
                    # Rows to write are in no hurry: a commit that takes more of them with it is cheaper for all.
                    patient = not callable(group[-1].work)
                    more = self._queue.get(timeout=LINGER) if patient else self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    stop = True
                    break
                group.append(more)
            self._transact(group)
            if stop:
                return

    def _transact(self, group: list[_Job]) -> None:
        batches: dict[Executable, list[Mapping[str, Any]]] = {}
        failure: BaseException | None = None
        try:
            with self._engine.begin() as connection:
                for job in group:
                    if callable(job.work):
                        # Order matters between a batch and work that may read what it wrote.
                        _flush(connection, batches)
                        job.value, job.error = self._one(connection, job.work)
                        continue
                    for write in job.work:
                        batches.setdefault(write.statement, []).append(write.values)
                _flush(connection, batches)
        except BaseException as error:
            # The commit, or the begin, failed: nothing of the group was written.
            failure = error
            for job in group:
                job.error = StoreError(explain(error, self.url)) if isinstance(error, DatabaseError) else error
        _settle(group)
        if failure is not None and not isinstance(failure, Exception):
            raise failure

    @staticmethod
    def _one(connection: Connection, work: Work[Any]) -> tuple[Any, BaseException | None]:
        savepoint = connection.begin_nested()
        try:
            value = work(connection)
        except OperationalError:
            savepoint.rollback()
            raise
        except Exception as error:
            savepoint.rollback()
            return None, error
        savepoint.commit()
        return value, None


def _settle(group: list[_Job]) -> None:
    """Tell all who wait, each loop once: waking it costs more than the rest."""
    loops: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in group:
        if job.loop is None:
            with contextlib.suppress(InvalidStateError):  # cancelled just now
                job.settle()
        else:
            loops.setdefault(job.loop, []).append(job)
    for loop, jobs in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, nobody waits
            loop.call_soon_threadsafe(_settle_each, jobs)


def _settle_each(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()


def _flush(connection: Connection, batches: dict[Executable, list[Mapping[str, Any]]]) -> None:
    for statement, rows in batches.items():
        connection.execute(statement, rows)
    batches.clear()


def explain(error: BaseException, url: str) -> str:
    """One sentence for a database's failure."""
    where = sqlite_path(url) or make_url(url).render_as_string(hide_password=True)
    cause = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
    low = cause.lower()
    if "locked" in low or "busy" in low:
        return (
            f"{where}: another process holds the database's lock for more than {BUSY_SECONDS:.0f} s; nothing was lost"
        )
    if "full" in low or "disk i/o" in low:
        return f"{where}: the disk is full or cannot be written ({cause}); nothing was lost, free some room"
    if "not a database" in low or "malformed" in low:
        return f"{where} is not a usable database ({cause}); restore a backup or move it away"
    if "readonly" in low or "unable to open" in low:
        return f"{where} cannot be opened for writing ({cause})"
    return f"{where}: {cause}"
