"""Events as messages to people, through Apprise: chats, phones, mailboxes."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import apprise

from monitor.config import NotifyAlert
from monitor.core import hold
from monitor.deliver.sinks import PlainSink, Receipt
from monitor.deliver.text import digest, message
from monitor.store.events import Pending

for _name in ("apprise", "urllib3"):
    # What they log holds tokens. What a service says is asked for below, and cleaned.
    logging.getLogger(_name).propagate = False
    logging.getLogger(_name).addHandler(logging.NullHandler())


class NotifySink(PlainSink):
    """One service. Raises ValueError, with a sentence, where Apprise does not know the URL."""

    mixed = True
    reads = 5000

    def __init__(self, alert: NotifyAlert) -> None:
        self.name = alert.name
        self._url = alert.url.get_secret_value()
        self._template = alert.template
        self._manner = alert.manner
        self._sent: list[float] = []
        self._apprise = apprise.Apprise()
        if not self._apprise.add(self._url):
            raise ValueError(f"{alert.name}: Apprise knows no such service, or its URL lacks a part")

    @property
    def memory(self) -> str | None:
        """The times of the messages that count towards the rate limit, as JSON."""
        return json.dumps(self._sent) if self._manner.limit is not None else None

    @memory.setter
    def memory(self, text: str | None) -> None:
        self._sent = [float(at) for at in json.loads(text)] if text else []

    def opens_at(self, oldest: float, now: float) -> float:
        """Not in quiet hours, not before a digest is due, not above the limit."""
        return hold.opens_at(self._manner, oldest, self._sent, now)

    def takes(self, waiting: int, now: float) -> int:
        """One, or all for a digest."""
        return hold.at_once(self._manner, waiting, self._sent, now)

    async def send(self, items: Sequence[Pending], now: float) -> Receipt:
        """Send one message; the service's own answer decides."""
        envelopes = [json.loads(item.body) for item in items]
        text = message(envelopes[0], self._template) if len(envelopes) == 1 else digest(envelopes)
        error = await asyncio.to_thread(self._notify, text)
        if error is not None:
            return Receipt("failed", error)
        self._sent = hold.remembered(self._manner, self._sent, now)
        return Receipt("delivered", answer="the service took the message")

    def _notify(self, text: str) -> str | None:
        """Send; what the service said where it did not take the message."""
        said: list[str] = []

        def hear(entry: Any, _service: object) -> None:
            said.append(" ".join(str(entry.message).split()))

        form = apprise.NotifyFormat.TEXT
        try:
            if self._apprise.notify(body=text, body_format=form, log_callback=hear, log_level=logging.WARNING):
                return None
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
        why = f": {_without(self._url, said[-1])[:200]}" if said else ""
        return f"the service did not take the message{why}"


def _without(url: str, text: str) -> str:
    """`text` with every part of `url` behind its scheme blotted out: any of them may be a token."""
    rest = url.partition("://")[2]
    parts = {part for form in (rest, unquote(rest)) for part in re.split(r"[/:@?&=,+#]+", form) if len(part) > 2}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "***")
    return "".join(c if c.isprintable() else " " for c in text)
