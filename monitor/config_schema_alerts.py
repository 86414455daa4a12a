"""The shape of `alerts` in `sites.yaml`: where events go, which, and in what manner."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from monitor.config_types import (
    Count,
    Digest,
    EventPattern,
    Flag,
    Glob,
    Hours,
    Limit,
    Model,
    NotifyUrl,
    Regex,
    Secret,
    Size,
    Template,
    Text,
    Url,
    Whole,
    Zone,
    listed,
)

KINDS = ("stdout", "file", "webhook", "notify")
"""The kinds of alert."""


class MatchModel(Model):
    """Regular expressions for parts of an event; each that is given must be found."""

    text: Regex | None = Field(None, description="In any of the others")
    title: Regex | None = Field(None, description="In the title")
    url: Regex | None = Field(None, description="In the URL")
    section: Regex | None = Field(None, description="In the folders of the URL, such as /news/politics/, or in a tag")
    author: Regex | None = Field(None, description="In the name of an author")


def _as_match(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


Matching = Annotated[MatchModel, BeforeValidator(_as_match)]


class FilterModel(Model):
    """Which events an alert takes."""

    events: list[EventPattern] | None = Field(None, description='Types of events, with * as a wildcard (default ["*"])')
    sites: list[Text] | None = Field(None, description='Names of sites, with * as a wildcard (default ["*"])')
    pages: list[Glob] | None = Field(None, description="Only events about pages that match one of these")
    match: Matching | None = Field(
        None, description="A regular expression that the title, URL, section or an author must hold; or one for each"
    )
    exclude: Matching | None = Field(None, description="Likewise: an event that holds any of these is not taken")
    stop: Flag | None = Field(None, description="true: what this alert takes goes to no later one (default false)")


class StdoutModel(FilterModel):
    """Events on standard output."""

    format: Literal["jsonl", "text"] | None = Field(
        None, description="jsonl or text (default: text on a terminal, jsonl elsewhere)"
    )


class WebhookModel(FilterModel):
    """Events as signed POST requests (Standard Webhooks)."""

    url: Url = Field(description="Where events are posted")
    secret: Annotated[list[Secret], BeforeValidator(listed)] | None = Field(
        None, description="The signing secret, whsec_ and base64; a list while one replaces another"
    )
    batch: Count | None = Field(
        None, description="Most events in one request, as a CloudEvents batch where it is above 1 (default 1)"
    )


class FileSinkModel(FilterModel):
    """Events as JSON Lines in a file."""

    path: Text = Field(description="The file, relative to this one")
    max_size: Size | None = Field(None, description="The size at which a new file is begun: 10MB, 1GB (default never)")
    keep: Whole | None = Field(None, description="Full files that are kept, as PATH.1 and so on (default 5)")


class NotifyModel(FilterModel):
    """Events as messages to a chat, a phone or a mailbox, by Apprise."""

    url: NotifyUrl = Field(description="An Apprise URL")
    template: Template | None = Field(None, description="The text of a message; {title}, {url} and others are replaced")
    quiet: Annotated[list[Hours], BeforeValidator(listed)] | None = Field(
        None, description="Hours in which nothing is sent, such as 22:00-07:00; it is sent afterwards"
    )
    time_zone: Zone | None = Field(None, description="The zone of those hours (default: that of the machine)")
    digest: Digest | None = Field(
        None,
        description="15m: one message for what came in 15 minutes; surge: one where more than 10 events wait; never "
        "(default surge)",
    )
    limit: Limit | None = Field(
        None, description="Most messages in a time, such as 20/1h; what is above waits, and is summed up (default none)"
    )


class AlertModel(Model):
    """Where events go: exactly one of the keys."""

    stdout: StdoutModel | None = Field(None, description="Standard output")
    file: FileSinkModel | None = Field(None, description="A file")
    webhook: WebhookModel | None = Field(None, description="A webhook")
    notify: NotifyModel | None = Field(None, description="Any service that Apprise knows")

    @model_validator(mode="after")
    def _one(self) -> AlertModel:
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"must have one of stdout, file, webhook and notify, but has {found}")
        return self


def _as_alert(value: Any) -> Any:
    if value == "stdout":
        return {"stdout": {}}
    return (
        {key: {} if key == "stdout" and item is None else item for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


Alert = Annotated[AlertModel, BeforeValidator(_as_alert)]
