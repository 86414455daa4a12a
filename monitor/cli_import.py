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
