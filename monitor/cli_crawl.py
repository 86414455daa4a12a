"""The command line's `monitor crawl`."""

from __future__ import annotations

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


def crawl(
    site: Annotated[str, typer.Argument(help="The name of a site with `crawl:` in the configuration.")],
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Follow the links below a site's sections, politely and within bounds, into its `crawl` source.

    `monitor run` does the same each `crawl.every`. Example: monitor crawl example
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    context = open_config(config, database)
    from monitor.commands import crawl as command  # noqa: PLC0415

    try:
        code = guarded(lambda: command.crawl(context.config, context.database, site, quiet=quiet))
    except (LookupError, command.UnusableConfigError) as error:
        fail(str(error), 2)
    raise typer.Exit(code)
