"""Where events go: standard output, webhooks, and any service that Apprise knows."""

from __future__ import annotations

import asyncio
import io
import json
import os
import select
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal, Protocol, TextIO

from standardwebhooks.webhooks import Webhook

from monitor.config import Alert, NotifyAlert, StdoutAlert, WebhookAlert
from monitor.core.http import describe, freshness
from monitor.deliver.text import readable
from monitor.fetch import Fetcher, FetchPolicy
from monitor.store.events import Pending


@dataclass(frozen=True, slots=True)
class Receipt:
    """How a delivery went. `retry_at` (epoch seconds) is the earliest time the receiver wants another try."""

    outcome: Literal["delivered", "failed", "gone", "closed"]
    error: str | None = None
    retry_at: float | None = None


class Sink(Protocol):
    """An endpoint. `at_once` is how many sites' events may be on their way to it at the same time."""

    name: str
    at_once: int

    async def send(self, item: Pending, now: float) -> Receipt:
        """Deliver one event; failures are receipts, never exceptions."""
        ...


class StdoutSink:
    """Events on a stream: a JSON object a line, or a readable line on a terminal."""

    at_once = 1

    def __init__(self, name: str, form: Literal["jsonl", "text"] | None, stream: TextIO | None = None) -> None:
        self.name = name
        self._stream = stream or sys.stdout
        self._text = form == "text" or (form is None and self._stream.isatty())

    async def send(self, item: Pending, now: float) -> Receipt:
        """Write and flush one whole line; a reader that went away closes the endpoint, and the event waits."""
        line = readable(json.loads(item.body)) if self._text else item.body
        try:
            await _write(self._stream, line + "\n")
        except (BrokenPipeError, ValueError):
            # Nobody reads any more. Python would flush again at exit, and complain.
            self._stream = open(os.devnull, "w")  # noqa: SIM115, PTH123, ASYNC230
            sys.stdout = self._stream
            return Receipt("closed", "standard output was closed by its reader")
        except OSError as error:
            return Receipt("failed", f"standard output: {error.strerror}")
        return Receipt("delivered")


async def _write(stream: TextIO, text: str) -> None:
    """Write `text` and flush. A reader that pauses, say a pager, stops the writer but not the loop."""
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:
        number = None  # a stream in memory
    if number is None:
        stream.write(text)
        stream.flush()
        return
    stream.flush()
    data = text.encode(stream.encoding or "utf-8", "backslashreplace")
    while data:
        await _writable(number)
        data = data[os.write(number, data[: select.PIPE_BUF]) :]


async def _writable(number: int) -> None:
    """Return once PIPE_BUF bytes can be written without blocking; at once for files, and where the reader is gone."""
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    if poll.poll(0):
        return
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(number, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(number)


class WebhookSink:
    """Events as POST requests, signed as Standard Webhooks prescribe."""

    at_once = 8

    def __init__(self, alert: WebhookAlert, fetcher: Fetcher, policy: FetchPolicy) -> None:
        self.name = alert.name
        self._url = alert.url
        self._signers = [Webhook(secret.get_secret_value()) for secret in alert.secrets]
        self._fetcher = fetcher
        self._policy = policy

    async def send(self, item: Pending, now: float) -> Receipt:
        """POST one event. 2xx is delivered, 410 gone, all else failed."""
        moment = datetime.fromtimestamp(int(now), UTC)
        headers = {
            "content-type": "application/cloudevents+json",
            "webhook-id": item.id,
            "webhook-timestamp": str(int(now)),
        }
        if self._signers:
            headers["webhook-signature"] = " ".join(s.sign(item.id, moment, item.body) for s in self._signers)
        reply = await self._fetcher.post(self._url, content=item.body.encode(), headers=headers, policy=self._policy)
        if reply.status is not None and 200 <= reply.status < 300:
            return Receipt("delivered")
        if reply.status == 410:
            return Receipt("gone", "answered 410 Gone: the endpoint wants no more events")
        retry_at = freshness(reply, datetime.fromtimestamp(now, UTC)).retry_at
        return Receipt("failed", describe(reply), retry_at.timestamp() if retry_at else None)


class NotifySink:
    """Events as short messages through Apprise."""

    at_once = 1

    def __init__(self, alert: NotifyAlert) -> None:
        import apprise  # noqa: PLC0415 - an extra

        self.name = alert.name
        self._apprise = apprise.Apprise()
        self._apprise.add(alert.url.get_secret_value())

    async def send(self, item: Pending, now: float) -> Receipt:
        """Send one message; the service's own answer decides."""
        line = readable(json.loads(item.body))
        sent = await asyncio.to_thread(self._apprise.notify, body=line)
        return Receipt("delivered") if sent else Receipt("failed", "the service did not take the message")


def address_hash(alert: Alert) -> str:
    """Tells whether an endpoint's address is still the same; the address itself may hold a secret."""
    url = "" if isinstance(alert, StdoutAlert) else alert.url
    text = url if isinstance(url, str) else url.get_secret_value()
    return sha256(text.encode()).hexdigest()


def build(alerts: Sequence[Alert], fetcher: Fetcher, policy: FetchPolicy, stream: TextIO | None = None) -> list[Sink]:
    """The endpoints of a configuration. Raises ValueError, with a sentence, where an extra is not installed."""
    sinks: list[Sink] = []
    for alert in alerts:
        if isinstance(alert, StdoutAlert):
            sinks.append(StdoutSink(alert.name, alert.format, stream))
        elif isinstance(alert, WebhookAlert):
            sinks.append(WebhookSink(alert, fetcher, policy))
        else:
            try:
                sinks.append(NotifySink(alert))
            except ImportError as error:
                raise ValueError("`notify` alerts need the extra `notify`: pip install apprise") from error
    return sinks
