"""The command line's first step: `monitor init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli_options import DEFAULT_CONFIG, JsonOption, QuietOption, VerboseOption, fail, set_up_logging


def init(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="The home page of each site.")],
    config: Annotated[Path, typer.Option("--config", "-c", help="The file to write, or to add to.")] = DEFAULT_CONFIG,
    allow_private_networks: Annotated[
        bool, typer.Option("--allow-private-networks", help="Let the sites be on loopback or private addresses.")
    ] = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the feeds and sitemaps of each site and write them to sites.yaml; what is in the file stays as it is.

    Example: monitor init https://www.theguardian.com/ bbc.co.uk
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    from monitor.commands import init as command  # noqa: PLC0415
    from monitor.commands.look import NoAddress  # noqa: PLC0415
    from monitor.config import ConfigError  # noqa: PLC0415

    try:
        code = command.init(urls, config, allow_private_networks=allow_private_networks, as_json=as_json)
    except (NoAddress, ConfigError) as error:
        fail(str(error), 2)
    except UnicodeDecodeError:
        fail(f"{config}: is not UTF-8; save the file as UTF-8", 2)
    except OSError as error:
        fail(f"{config}: {error.strerror}")
    raise typer.Exit(code)
