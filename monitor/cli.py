"""The command line: parse options, call one function, print. What each command does lives elsewhere."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from monitor import cli_alerts, cli_crawl, cli_import, cli_init, cli_report
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

app = typer.Typer(
    name="monitor",
    help="Watch news sites through what they publish on purpose: new, changed, missing and returned pages.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_report.report_app, name="report")
app.add_typer(cli_alerts.deliveries_app, name="deliveries")
app.add_typer(cli_alerts.alerts_app, name="alerts")
app.add_typer(cli_import.import_app, name="import")
app.add_typer(cli_import.export_app, name="export")
app.command()(cli_init.init)
app.command()(cli_report.simulate)
app.command()(cli_crawl.crawl)


def main() -> NoReturn:
    """The entry of the `monitor` command. Exit codes: 0 done, 1 something failed, 2 usage or configuration error."""
    try:
        app(standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


@app.command()
def run(
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    once: Annotated[bool, typer.Option("--once", help="One pass over what is due, then exit.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --once: ignore the schedule (but not Retry-After).")
    ] = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Poll what is due, reconcile, alert. The first complete read of a source is a quiet baseline.

    Example: monitor run --once --all
    """
    if everything and not once:
        fail("--all needs --once", 2)
    set_up_logging(verbose=verbose, quiet=quiet)
    context = open_config(config, database)
    from monitor.commands import daemon  # noqa: PLC0415 - half a second that no mistake has to wait for

    code = guarded(lambda: daemon.run(context.config, context.database, once=once, everything=everything, quiet=quiet))
    raise typer.Exit(code)


@app.command()
def check(
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,  # taken like everywhere, though nothing is stored
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Validate the configuration and read each source once, changing nothing."""
    set_up_logging(verbose=verbose, quiet=quiet)
    context = open_config(config, database)
    from monitor.commands import look  # noqa: PLC0415

    raise typer.Exit(look.check(context.config, as_json=as_json))


@app.command()
def discover(
    url: Annotated[str, typer.Argument(help="The home page of a site.")],
    allow_private_networks: Annotated[
        bool, typer.Option("--allow-private-networks", help="Let the site be on loopback or a private address.")
    ] = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the feeds and sitemaps of a site, how each was found, and whether it works.

    Example: monitor discover https://www.theguardian.com/
    """
    from monitor.commands import look  # noqa: PLC0415

    set_up_logging(verbose=verbose, quiet=quiet)
    try:
        code = look.discover_site(url, allow_private_networks=allow_private_networks, as_json=as_json)
    except look.NoAddress as error:
        fail(str(error), 2)
    raise typer.Exit(code)


@app.command()
def lint(
    subject: Annotated[str, typer.Argument(metavar="URL_OR_FILE", help="An address, a file, or - for standard input.")],
    allow_private_networks: Annotated[
        bool, typer.Option("--allow-private-networks", help="Let the address be on loopback or a private network.")
    ] = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a feed, sitemap or news sitemap against its specification and the search engines' rules.

    Exit code 1 where a finding is an error. Example: monitor lint https://www.example.com/news-sitemap.xml
    """
    from monitor.commands import lint as command  # noqa: PLC0415

    set_up_logging(verbose=verbose, quiet=quiet)
    try:
        code = command.lint(subject, allow_private_networks=allow_private_networks, as_json=as_json)
    except command.CannotRead as error:
        fail(str(error), 2)
    raise typer.Exit(code)


@app.command()
def status(
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """A table of the sources: state, last poll and its result, rate, interval, next poll, last error."""
    set_up_logging(verbose=verbose, quiet=quiet)
    url = database_url(config, database)
    from monitor.commands import tables  # noqa: PLC0415

    guarded(lambda: tables.status(url, as_json=as_json))


@app.command()
def explain(
    subject: Annotated[str, typer.Argument(metavar="SOURCE_OR_URL", help="A source's address, or a page's.")],
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Why a source is polled when it is, or everything known of one page."""
    set_up_logging(verbose=verbose, quiet=quiet)
    url = database_url(config, database)
    from monitor.commands import tables  # noqa: PLC0415

    if not guarded(lambda: tables.explain(url, subject, as_json=as_json)):
        fail(f"nothing is known of {subject}: no source and no page has this address")


@app.command()
def events(
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    since: Annotated[
        str | None, typer.Option(help="From when on: a time (RFC 3339), or how long ago (90s, 6h, 2d).")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="Types, with * as a wildcard; may be repeated.")
    ] = None,
    site: Annotated[str | None, typer.Option(help="One site's events.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events as they come.")] = False,
    cursor: Annotated[
        str | None, typer.Option(help="Go on behind what was printed under this name; it is kept in the database.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or table.")] = "",
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the event log. With --cursor a consumer gets every event at least once, whatever dies when.

    Example: monitor events --follow --cursor indexer --type 'url.*' --format jsonl
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    if form not in ("", "jsonl", "table"):
        fail(f"--format {form}: use jsonl or table", 2)
    url = database_url(config, database)
    from monitor.commands import events as command  # noqa: PLC0415
    from monitor.commands import tables  # noqa: PLC0415

    if cursor is not None and not cursor.strip():
        fail("--cursor needs a name", 2)
    try:
        after = tables.parse_since(since) if since else None
    except ValueError as error:
        fail(str(error), 2)
    form = form or ("table" if sys.stdout.isatty() else "jsonl")
    try:
        guarded(
            lambda: command.events(
                url, since=after, types=kind or [], site=site, follow=follow, form=form, cursor=cursor
            )
        )
    except command.CursorTakenError as error:
        fail(str(error))


@app.command()
def schema(
    what: Annotated[str, typer.Argument(help="sites (the configuration) or events.")] = "",
) -> None:
    """Print the JSON Schema of sites.yaml and of the events."""
    from monitor.commands import look  # noqa: PLC0415

    if what not in ("", "sites", "events"):
        fail(f"there is no schema of {what!r}; use sites or events", 2)
    look.print_schema(what)


@app.command()
def demo(
    seconds: Annotated[float | None, typer.Option(help="End after so many seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another newsroom.")] = 1,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Watch a simulated newsroom: the whole product with no network and no configuration.

    Example: monitor demo --seconds 30
    """
    from monitor.commands import demo as command  # noqa: PLC0415

    set_up_logging(verbose=verbose, quiet=quiet)
    raise typer.Exit(command.demo(seconds=seconds, seed=seed))
