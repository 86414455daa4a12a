"""Where events go, as the engine reads it."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from monitor.core.alert_rules import Match, facts
from monitor.core.hold import Manner
from monitor.core.url import matches
from monitor.model import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which events an alert takes.

    `pages` are globs, as under a site's `include`: with them, only events about pages are taken. `stop`: what this
    alert takes goes to no later one.
    """

    events: tuple[str, ...] = ("*",)
    sites: tuple[str, ...] = ("*",)
    pages: tuple[str, ...] = ()
    match: Match | None = field(default=None, repr=False)
    exclude: Match | None = field(default=None, repr=False)
    stop: bool = False

    def takes(self, event_type: str, site: str) -> bool:
        """Whether events of this type and site may be for this alert; `takes_event` looks at the event itself."""
        return any(fnmatch.fnmatchcase(event_type, pattern) for pattern in self.events) and any(
            fnmatch.fnmatchcase(site, pattern) for pattern in self.sites
        )

    def takes_event(self, event: Event) -> bool:
        """Whether an event is for this alert."""
        if not self.takes(event.type, event.site):
            return False
        if self.pages:
            about_page = event.type.startswith("url.")
            if not about_page or not any(matches(pattern, event.subject) for pattern in self.pages):
                return False
        if self.match is None and self.exclude is None:
            return True
        found = facts(event.subject, event.data)
        wanted = self.match is None or self.match.every(found)
        return wanted and not (self.exclude is not None and self.exclude.some(found))


@dataclass(frozen=True, slots=True)
class StdoutAlert(Rules):
    """Events on standard output; `format` None means text on a terminal and JSON Lines elsewhere."""

    name: str = "stdout"
    format: Literal["jsonl", "text"] | None = None


@dataclass(frozen=True, slots=True)
class FileAlert(Rules):
    """Events as JSON Lines in a file. Above `max_size` bytes it becomes ``path.1``, and so on up to ``path.<keep>``."""

    name: str
    path: Path = field(repr=False)
    max_size: int | None = None
    keep: int = 5


@dataclass(frozen=True, slots=True)
class WebhookAlert(Rules):
    """Events as signed POST requests. `secrets` sign each request, the first first; empty: unsigned.

    `batch` above 1: up to so many events in one request.
    """

    name: str
    url: str = field(repr=False)
    secrets: tuple[SecretStr, ...] = ()
    batch: int = 1


@dataclass(frozen=True, slots=True)
class NotifyAlert(Rules):
    """Events as messages by Apprise. The URL is a secret: it holds the service's token.

    `template` is the text of a message about one event, with ``{title}`` and other fields; None is ours.
    """

    name: str
    url: SecretStr
    template: str | None = None
    manner: Manner = field(default_factory=Manner)


Alert = StdoutAlert | FileAlert | WebhookAlert | NotifyAlert
