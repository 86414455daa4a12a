"""From the alerts of a configuration to endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TextIO

from monitor.config import Alert, FileAlert, NotifyAlert, StdoutAlert, WebhookAlert
from monitor.deliver.file import FileSink
from monitor.deliver.sinks import Sink
from monitor.deliver.stdout import StdoutSink
from monitor.deliver.webhook import WebhookSink
from monitor.fetch import Fetcher, FetchPolicy


def address_hash(alert: Alert) -> str:
    """Tells whether an endpoint's address is still the same; the address itself may hold a secret."""
    text = ""
    if isinstance(alert, WebhookAlert):
        text = alert.url
    elif isinstance(alert, NotifyAlert):
        text = alert.url.get_secret_value()
    elif isinstance(alert, FileAlert):
        text = str(alert.path)
    return sha256(text.encode()).hexdigest()


def build(alerts: Sequence[Alert], fetcher: Fetcher, policy: FetchPolicy, stream: TextIO | None = None) -> list[Sink]:
    """The endpoints of a configuration. Raises ValueError, with a sentence, for one that cannot be used here."""
    return [build_one(alert, fetcher, policy, stream) for alert in alerts]


def build_one(alert: Alert, fetcher: Fetcher, policy: FetchPolicy, stream: TextIO | None = None) -> Sink:
    """The endpoint of one alert. Raises ValueError, with a sentence, where it cannot be used here."""
    if isinstance(alert, StdoutAlert):
        return StdoutSink(alert.name, alert.format, stream)
    if isinstance(alert, WebhookAlert):
        return WebhookSink(alert, fetcher, policy)
    if isinstance(alert, FileAlert):
        return FileSink(alert)
    try:
        from monitor.deliver.notify import NotifySink  # noqa: PLC0415 - Apprise is an extra, and takes a while to load

        return NotifySink(alert)
    except ImportError as error:
        raise ValueError("`notify` alerts need the extra `notify`: pip install apprise") from error
