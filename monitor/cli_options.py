"""What the commands of the command line share: options, ways to end, opening the configuration and the database."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from monitor.config import Config

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", help="Database URL; default: the configuration's, else monitor.db beside it."),
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say only errors on stderr.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT_CONFIG = Path("sites.yaml")


@dataclass(frozen=True, slots=True)
class Context:
    """What every command that works on a configuration needs."""

    config: Config
    database: str


def fail(message: str, code: int = 1) -> NoReturn:
    """End with one clear sentence on stderr."""
    for line in message.splitlines():
        print(f"monitor: {line}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(code)


def open_config(path: Path, database: str | None) -> Context:
    """Read the configuration or end with exit code 2."""
    from monitor.config import ConfigError, load, resolve_database  # noqa: PLC0415 - keeps --help fast

    try:
        config = load(path, os.environ)
    except ConfigError as error:
        fail(str(error), 2)
    url = resolve_database(database, Path.cwd()) if database else config.database
    return Context(config, url)


def database_url(path: Path, database: str | None) -> str:
    """The database to read: the one named, else the configuration's."""
    from monitor.config import ConfigError, database_of, resolve_database  # noqa: PLC0415

    try:
        return resolve_database(database, Path.cwd()) if database else database_of(path, os.environ)
    except ConfigError as error:
        fail(str(error), 2)


def set_up_logging(*, verbose: bool, quiet: bool) -> None:
    """Logs go to stderr: warnings, with -v everything, with -q errors."""
    level = logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(message)s")
    for noisy in ("asyncio", "httpx", "alembic", "aiohttp"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))


def guarded(work: Callable[[], Any]) -> Any:
    """Do `work`; a database that cannot be used ends the command with a sentence and exit code 1, what is no database
    at all with 2."""
    from monitor.store.database import DatabaseURLError, StoreError  # noqa: PLC0415

    try:
        return work()
    except StoreError as error:
        fail(str(error), 2 if isinstance(error, DatabaseURLError) else 1)
