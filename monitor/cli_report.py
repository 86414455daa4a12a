"""The command line's reports: `monitor report …` and `monitor simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

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

report_app = typer.Typer(help="Reports on what is known.", no_args_is_help=True)


@report_app.command("sitemaps")
def report_sitemaps(
    site: Annotated[str | None, typer.Argument(help="One site; all, where none is named.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    at: Annotated[
        str | None, typer.Option("--at", help="What the site listed then: a time (RFC 3339), or how long ago (6h).")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
    as_json: JsonOption = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Each sitemap file: its URLs, share with lastmod, share modified in the last 24 h, size, read time, problems.

    Example: monitor report sitemaps example --at 2d --format csv
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    form = "json" if as_json else form
    if form not in ("table", "json", "csv"):
        fail(f"--format {form}: use table, json or csv", 2)
    url = database_url(config, database)
    from monitor.commands import reports, tables  # noqa: PLC0415

    try:
        moment = tables.parse_since(at, name="--at") if at else None
    except ValueError as error:
        fail(str(error), 2)
    try:
        guarded(lambda: reports.sitemaps(url, site=site, at=moment, form=form, output=output))
    except LookupError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{output}: {error.strerror}")


_SiteArgument = Annotated[str | None, typer.Argument(help="One site; all, where none is named.")]
_SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only pages first known from then on: a time (RFC 3339), or a span (7d).")
]
_FormatOption = Annotated[str, typer.Option("--format", help="table, json, csv or html.")]
_OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")]


@report_app.command("coverage")
def report_coverage(
    site: _SiteArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    since: _SinceOption = None,
    form: _FormatOption = "table",
    as_json: JsonOption = False,
    output: _OutputOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Which pages feed, news sitemap, sitemap and crawl have in common, and what each lacks.

    JSON is one object for one site, a list for several. Example: monitor report coverage example --format html -o
    coverage.html
    """
    from monitor.commands import coverage as command  # noqa: PLC0415

    set_up_logging(verbose=verbose, quiet=quiet)
    _report(command.coverage, site, config, database, since, "json" if as_json else form, output)


@report_app.command("lag")
def report_lag(
    site: _SiteArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    since: _SinceOption = None,
    form: _FormatOption = "table",
    as_json: JsonOption = False,
    output: _OutputOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """How long after publication each kind of source first showed a page.

    Example: monitor report lag example --since 7d
    """
    from monitor.commands import coverage as command  # noqa: PLC0415

    set_up_logging(verbose=verbose, quiet=quiet)
    _report(command.lag, site, config, database, since, "json" if as_json else form, output)


@report_app.command("trust")
def report_trust(
    site: _SiteArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    form: _FormatOption = "table",
    as_json: JsonOption = False,
    output: _OutputOption = None,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """How far the lastmods of each sitemap file are worth believing, with the evidence, worst first.

    Example: monitor report trust example --format csv
    """
    from monitor.commands import trust as command  # noqa: PLC0415

    set_up_logging(verbose=verbose, quiet=quiet)
    form = "json" if as_json else form
    _check_form(form)
    url = database_url(config, database)
    _told(lambda: command.trust(url, site=site, form=form, output=output), output)


def _check_form(form: str) -> None:
    if form not in ("table", "json", "csv", "html"):
        fail(f"--format {form}: use table, json, csv or html", 2)


def _told(work: Callable[[], None], output: Path | None) -> None:
    """Make a report; an unknown site, or a file that cannot be written, ends with a sentence."""
    try:
        guarded(work)
    except LookupError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(f"{output}: {error.strerror}")


def _report(
    work: Callable[..., None],
    site: str | None,
    config: Path,
    database: str | None,
    since: str | None,
    form: str,
    output: Path | None,
) -> None:
    """Make a report of sites; mistakes end with a sentence."""
    _check_form(form)
    from monitor.commands import tables  # noqa: PLC0415

    try:
        begin = tables.parse_since(since) if since else None
    except ValueError as error:
        fail(str(error), 2)
    # What is stored tells the hosts of a site, too, but for those that only the configuration names.
    context = open_config(config, database) if database is None or config.exists() else None
    url = context.database if context else database_url(config, database)
    hosts = {one.name: one.own_hosts for one in context.config.sites} if context else {}
    _told(lambda: work(url, hosts=hosts, site=site, since=begin, form=form, output=output), output)


def simulate(
    site: Annotated[str | None, typer.Argument(help="One site's feeds; all, where none is named.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    database: DatabaseOption = None,
    target_delay: Annotated[
        list[str] | None, typer.Option("--target-delay", help="A mean delay to try (5m, 1h); may be repeated.")
    ] = None,
    requests_per_day: Annotated[
        list[int] | None, typer.Option("--requests-per-day", min=1, help="A budget to try; may be repeated.")
    ] = None,
    since: Annotated[str, typer.Option(help="How far to look back: a span (14d), or a time (RFC 3339).")] = "35d",
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Replay the stored history of polls under other settings: polls, delay and risk, side by side.

    Example: monitor simulate --target-delay 5m --target-delay 1h --requests-per-day 5000
    """
    set_up_logging(verbose=verbose, quiet=quiet)
    context = open_config(config, database)
    from monitor.commands import simulate as command  # noqa: PLC0415
    from monitor.commands import tables  # noqa: PLC0415

    try:
        after = tables.parse_since(since)
    except ValueError as error:
        fail(str(error), 2)
    settings = [command.Setting(f"target_delay {text}", (_target(text), None)) for text in target_delay or ()]
    settings += [command.Setting(f"requests_per_day {number}", (None, number)) for number in requests_per_day or ()]
    try:
        guarded(
            lambda: command.simulate_settings(
                context.config,
                context.database,
                site=site,
                since=after,
                settings=settings,
                as_json=as_json,
                quiet=quiet,
            )
        )
    except LookupError as error:
        fail(str(error))


def _target(text: str) -> float:
    from monitor.config_types import parse_duration  # noqa: PLC0415

    try:
        return parse_duration(text)
    except ValueError as error:
        fail(f"--target-delay: {str(error).format(value=text, raw=text)}", 2)
