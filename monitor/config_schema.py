"""The shape of `sites.yaml`: every key, its type, its bounds and what it means. The JSON Schema is made from this.

Defaults are not applied here: None says that a key was left out, so that a level above it can decide.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from monitor.config_schema_alerts import Alert
from monitor.config_types import (
    REGEX_SCHEMA,
    URL_SCHEMA,
    AnyDuration,
    Count,
    Database,
    Duration,
    Flag,
    Glob,
    Host,
    KeyValueError,
    Kind,
    Model,
    Name,
    Section,
    Text,
    Url,
    Whole,
)


class ConcurrencyModel(Model):
    """How much is fetched at the same time."""

    total: Count | None = Field(None, description="Most requests at the same time, over all sites (default 100)")
    per_host: Count | None = Field(None, description="Most requests at the same time to one host (default 2)")
    host_delay: AnyDuration | None = Field(None, description="Least time between two requests to one host (default 0s)")


class PollModel(Model):
    """When feeds are polled. `target_delay` and `requests_per_day` exclude each other."""

    min: Duration | None = Field(None, description="Shortest interval between two polls of a document (default 1m)")
    max: Duration | None = Field(None, description="Longest interval between two polls of a document (default 1d)")
    target_delay: Duration | None = Field(
        None, description="Mean delay over all entries to reach with the fewest polls (default 10m)"
    )
    requests_per_day: Count | None = Field(
        None, description="Polls a day to spend for the least delay, instead of target_delay"
    )

    @model_validator(mode="after")
    def _fits(self) -> PollModel:
        if self.target_delay is not None and self.requests_per_day is not None:
            raise KeyValueError("requests_per_day", "excludes target_delay; give one of the two")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise KeyValueError("min", "{value} is more than max, {other}", "max")
        return self


class SitemapModel(Model):
    """How sitemaps are read."""

    every: Duration | None = Field(None, description="Interval between two reads of a sitemap (default 6h)")
    news_every: Duration | None = Field(None, description="Interval between two reads of a news sitemap (default 10m)")
    max_files: Count | None = Field(None, description="Most files read of one sitemap tree (default 50000)")
    max_depth: Count | None = Field(None, description="Most levels of indexes below a root (default 5)")
    confirm_missing: Count | None = Field(
        None, description="Complete reads in a row that must lack a page before it is missing (default 2)"
    )


class SettingsModel(Model):
    """What may be set for all sites (`defaults`), again on a site, and again on a source."""

    user_agent: Text | None = Field(None, description="The User-Agent header; say who you are and where to reach you")
    allow_private_networks: Flag | None = Field(
        None, description="true lets sites and webhooks be on loopback or private addresses (default false)"
    )
    proxy: Url | None = Field(None, description="An HTTP proxy for all requests; null for none")
    concurrency: ConcurrencyModel | None = Field(None, description="How much is fetched at the same time")
    poll: PollModel | None = Field(None, description="When feeds are polled")
    sitemap: SitemapModel | None = Field(None, description="How sitemaps are read")
    baseline: Literal["quiet", "alert"] | None = Field(
        None, description="Whether the first complete read of a source makes events (default quiet)"
    )


class SourceModel(SettingsModel):
    """A feed or sitemap with settings of its own."""

    url: Url = Field(description="The address of the feed or sitemap")


def _as_source(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


Source = Annotated[SourceModel, BeforeValidator(_as_source)]


class ExpectModel(Model):
    """A coverage promise: a page that matches `pages` is listed by `in` within `within` of its first sighting."""

    pages: Glob = Field(description="Which pages the promise is about")
    in_: Kind = Field(alias="in", description="The kind of source that must list them")
    within: Duration = Field(description="How long after its first sighting a page may be absent there")


class CrawlModel(Model):
    """A bounded link crawl of some sections."""

    sections: list[Section] = Field(min_length=1, description="Where the crawl starts, and what it stays below")
    max_pages: Count | None = Field(None, description="Most pages fetched in one crawl (default 500)")
    every: Duration | None = Field(None, description="Interval between two crawls (default 1d)")


class ChangesModel(Model):
    """How changes are confirmed by fetching pages."""

    verify: Literal["auto", "always", "never"] | None = Field(
        None, description="Whether pages are fetched to confirm a change (default auto: where evidence is weak)"
    )
    sample: Whole | None = Field(None, description="Most pages fetched to test a sitemap's lastmod (default 20)")


class SiteModel(SettingsModel):
    """One publisher: a name, a home URL and its sources."""

    url: Url = Field(description="The home page")
    name: Name | None = Field(None, description="The name in events and reports (default: the host without www.)")
    hosts: list[Host] | None = Field(None, description="Further hosts that count as this site")
    feeds: list[Source] | None = Field(None, description="Feeds; left out: discovered; []: none")
    sitemaps: list[Source] | None = Field(None, description="Sitemaps and indexes; left out: discovered; []: none")
    news_sitemaps: list[Source] | None = Field(
        None, description="News sitemaps; left out: told apart by content; []: none"
    )
    include: list[Glob] | None = Field(None, description="Only pages that match one of these (default: all)")
    exclude: list[Glob] | None = Field(None, description="No page that matches one of these")
    expect: list[ExpectModel] | None = Field(None, description="Coverage promises; a broken one is a url.missing event")
    crawl: CrawlModel | None = Field(None, description="A bounded link crawl, by `monitor crawl` and on schedule")
    changes: ChangesModel | None = Field(None, description="How changes are confirmed")


class FileModel(Model):
    """A monitor configuration, `sites.yaml`."""

    database: Database | None = Field(
        None, description="sqlite:///FILE, relative to this file, or postgresql://… (default sqlite:///monitor.db)"
    )
    defaults: SettingsModel | None = Field(None, description="Settings of all sites")
    alerts: list[Alert] | None = Field(None, description="Where events go; left out: standard output; []: nowhere")
    sites: list[SiteModel] = Field(min_length=1, description="The sites to watch; each needs only a url")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `sites.yaml`, for editors and other programs.

    Wherever a number, a choice or a truth value may stand, a text with ``${NAME}`` may, too. What relates keys to each
    other (`min` not above `max`, names that are unique) only `load` checks.
    """
    made = FileModel.model_json_schema()
    parts = made["$defs"]
    parts["SourceModel"] = {"anyOf": [URL_SCHEMA, parts["SourceModel"]]}
    parts["AlertModel"] = {
        "anyOf": [{"const": "stdout"}, parts["AlertModel"] | {"minProperties": 1, "maxProperties": 1}]
    }
    parts["MatchModel"] = {"anyOf": [REGEX_SCHEMA, parts["MatchModel"]]}
    for model, key in (("WebhookModel", "secret"), ("NotifyModel", "quiet")):
        either = parts[model]["properties"][key]
        either["anyOf"] = [either["anyOf"][0]["items"], *either["anyOf"]]
    tidy: dict[str, Any] = _tidy(made)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "sites.yaml", **tidy}


def _tidy(node: Any) -> Any:
    """`node` without pydantic's titles and null defaults, with `${NAME}` allowed for what is not text."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "default" and value is None:
            continue
        if key == "$ref":
            result[key] = value.replace("Model", "")
        elif key in ("properties", "$defs"):
            result[key] = {name.removesuffix("Model"): _tidy(item) for name, item in value.items()}
        else:
            result[key] = _tidy(value)
    if result.get("type") in ("integer", "boolean") or "enum" in result:
        about = {"description": result.pop("description")} if "description" in result else {}
        return about | {"anyOf": [result, {"type": "string", "pattern": r"\$\{"}]}
    return result
