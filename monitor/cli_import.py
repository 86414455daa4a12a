"""The command line's ways in and out: `monitor import …` and `monitor export …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli_options import (
    DEFAULT_CONFIG,
    ConfigOption,
    DatabaseOption,
    QuietOption,
    VerboseOption,
    database_url,
    fail,
    guarded,
    open_config,
    set_up_logging,
)

import_app = typer.Typer(help="Take in what other programs know.", no_args_is_help=True)
export_app = typer.Typer(help="Hand out what is known.", no_args_is_help=True)


@import_app.callback()
def _import() -> None:
    """Take in what other programs know."""


@import_app.command("crawl")
def import_crawl(
    file: Annotated[Path, typer.Argument(help="A list of URLs, or - for standard input; gzip is unpacked.")],
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    site: Annotated[str | None, typer.Option(help="The site that the URLs belong to, where hosts do not tell.")] = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read the URLs that another crawler found into the `crawl` source: a plain list, CSV, JSON Lines or CDXJ.

    A further import takes the place of the one before. Example: monitor import crawl internal_html.csv --site example
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    context = open_config(config, database)
    from monitor.commands import imports  # noqa: PLC0415

    try:
        guarded(lambda: imports.crawl(context.config, context.database, file, site=site, quiet=quiet))
    except imports.CannotImportError as error:
        fail(str(error), error.code)


@import_app.command("opml")
def import_opml(
    file: Annotated[Path, typer.Argument(help="An OPML file, or - for standard input.")],
    config: Annotated[Path, typer.Option("--config", "-c", help="The file to write, or to add to.")] = DEFAULT_CONFIG,
    site: Annotated[str | None, typer.Option(help="Put all feeds into one new site of this name.")] = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add the subscriptions of a feed reader to sites.yaml: a site for each domain, what is there left out.

    Example: monitor import opml subscriptions.opml
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    from monitor.commands import opml  # noqa: PLC0415
    from monitor.config import ConfigError  # noqa: PLC0415

    try:
        opml.read(file, config, site=site, quiet=quiet)
    except opml.CannotImport as error:
        fail(str(error))
    except ConfigError as error:
        fail(str(error), 2)
    except UnicodeDecodeError:
        fail(f"{config}: is not UTF-8; save the file as UTF-8", 2)
    except OSError as error:
        fail(f"{error.filename or file}: {error.strerror}", 2)


@export_app.command("opml")
def export_opml(
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the feeds that are watched as OPML, for a feed reader."""
    set_up_logging(verbose=verbose, quiet=quiet)
    url = database_url(config, database)
    from monitor.commands import opml  # noqa: PLC0415

    # Like every command that only reads, it needs none of the secrets that sending needs.
    made = opml.without_secrets(config) or open_config(config, database).config
    try:
        guarded(lambda: opml.write(made, url, output))
    except OSError as error:
        fail(f"{output}: {error.strerror}")


@export_app.callback()
def _export() -> None:
    """Hand out what is known."""
