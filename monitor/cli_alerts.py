"""The command line's alerts: `monitor deliveries …` and `monitor alerts …`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli_options import (
    DEFAULT_CONFIG,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    QuietOption,
    VerboseOption,
    database_url,
    fail,
    guarded,
    open_config,
    set_up_logging,
)

if TYPE_CHECKING:
    from monitor.store.deliveries import Choice

deliveries_app = typer.Typer(help="Alerts that wait, and those that failed.", invoke_without_command=True)

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID...]", help="Ids of events.")]
EndpointOption = Annotated[str | None, typer.Option("--endpoint", help="One endpoint, by its name in the list.")]
StateOption = Annotated[str | None, typer.Option("--state", help="pending or parked.")]
AllOption = Annotated[bool, typer.Option("--all", help="Everything that waits.")]


def _choice(ids: list[str] | None, endpoint: str | None, state: str | None) -> Choice:
    from monitor.store.deliveries import Choice  # noqa: PLC0415

    if state is not None and state not in ("pending", "parked"):
        fail(f"--state {state}: use pending or parked", 2)
    return Choice(tuple(ids or ()), endpoint, state)  # type: ignore[arg-type]


def _named(ids: list[str] | None, endpoint: str | None, everything: bool, verb: str) -> None:
    """End with exit code 2 unless it was said which deliveries are meant."""
    if not ids and endpoint is None and not everything:
        fail(f"say which deliveries to {verb}: ids of events, --endpoint NAME or --all", 2)
    if everything and (ids or endpoint is not None):
        fail("--all excludes ids and --endpoint", 2)


def _done(work: Callable[[], int]) -> None:
    from monitor.commands.deliveries import CannotChooseError  # noqa: PLC0415

    try:
        code = guarded(work)
    except CannotChooseError as error:
        fail(str(error), 1)
    raise typer.Exit(code)


@deliveries_app.callback()
def deliveries(
    context: typer.Context,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    endpoint: EndpointOption = None,
    state: StateOption = None,
    limit: Annotated[int, typer.Option(min=0, help="Most deliveries to show; 0: all.")] = 50,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """The endpoints, and the alerts that wait for them: pending ones have a next try, parked ones failed for good.

    Example: monitor deliveries --state parked --json
    """
    if context.invoked_subcommand is not None:
        return
    set_up_logging(verbose=verbose, quiet=quiet)
    chosen = _choice(None, endpoint, state)
    url = database_url(config, database)
    from monitor.commands import deliveries as command  # noqa: PLC0415

    def work() -> int:
        command.show(url, chosen, limit=limit or None, as_json=as_json)
        return 0

    _done(work)


@deliveries_app.command()
def retry(
    ids: IdsArgument = None,
    endpoint: EndpointOption = None,
    everything: AllOption = False,
    state: StateOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Try alerts again at once, parked ones too. A running daemon takes them up by itself, a disabled endpoint is
    enabled.

    Example: monitor deliveries retry --endpoint "webhook https://example.org/hook"
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    _named(ids, endpoint, everything, "retry")
    chosen = _choice(ids, endpoint, state)
    url = database_url(config, database)
    from monitor.commands import deliveries as command  # noqa: PLC0415

    _done(lambda: command.retry(url, chosen))


@deliveries_app.command()
def drop(
    ids: IdsArgument = None,
    endpoint: EndpointOption = None,
    everything: AllOption = False,
    state: StateOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Give alerts up: they leave the outbox, the events stay in the log.

    Example: monitor deliveries drop --all --state parked
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    _named(ids, endpoint, everything, "drop")
    chosen = _choice(ids, endpoint, state)
    url = database_url(config, database)
    from monitor.commands import deliveries as command  # noqa: PLC0415

    _done(lambda: command.drop(url, chosen))


@deliveries_app.command()
def replay(
    since: Annotated[str, typer.Option(help="From when on: a time (RFC 3339), or how long ago (90s, 6h, 2d).")],
    until: Annotated[str | None, typer.Option(help="Up to when: likewise.")] = None,
    endpoint: EndpointOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Send events of the log once more, with the ids they had, to the endpoints that take them by the rules of now.

    Example: monitor deliveries replay --since 6h --endpoint "webhook https://example.org/hook"
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    opened = open_config(config, database)
    from monitor.commands import deliveries as command  # noqa: PLC0415
    from monitor.commands import tables  # noqa: PLC0415

    try:
        after = tables.parse_since(since)
        before = tables.parse_since(until, name="--until") if until else None
    except ValueError as error:
        fail(str(error), 2)
    _done(lambda: command.replay(opened.config, opened.database, since=after, until=before, endpoint=endpoint))


alerts_app = typer.Typer(help="Where events go.", no_args_is_help=True)


@alerts_app.callback()
def alerts() -> None:
    """Where events go."""


@alerts_app.command("test")
def try_out(
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,  # taken like everywhere, though nothing is stored
    endpoint: EndpointOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Send a sample event to each alert of the configuration, whatever its rules, and show what it answers.

    Exit code 1 where one failed. Example: monitor alerts test --json
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    opened = open_config(config, database)
    from monitor.commands import alerts as command  # noqa: PLC0415

    try:
        code = command.send_samples(opened.config, as_json=as_json, only=endpoint)
    except LookupError as error:
        fail(str(error))
    raise typer.Exit(code)
