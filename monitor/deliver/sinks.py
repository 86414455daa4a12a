"""What an endpoint is to the outbox: how much it takes at a time, and how a delivery went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from monitor.store.events import Pending


@dataclass(frozen=True, slots=True)
class Receipt:
    """How a delivery went. `retry_at` (epoch seconds) is the earliest time the receiver wants another try.

    `answer` is what the endpoint said to what it took, where it said something.
    """

    outcome: Literal["delivered", "failed", "gone", "closed"]
    error: str | None = None
    retry_at: float | None = None
    answer: str | None = None


class Sink(Protocol):
    """An endpoint.

    at_once   how many sends may be under way at the same time, each for sites of its own
    mixed     one send may hold events of several sites; then one at a time
    reads     how many of the events that wait it looks at to decide how many go into a send
    memory    what it must remember over a restart, None for nothing; set before the first send, stored after each
    """

    name: str
    at_once: int
    mixed: bool
    reads: int
    memory: str | None

    def opens_at(self, oldest: float, now: float) -> float:
        """The earliest time at which it may be sent something; `oldest` is the time of the oldest event that waits."""
        ...

    def takes(self, waiting: int, now: float) -> int:
        """How many of so many events that wait go into one send."""
        ...

    async def send(self, items: Sequence[Pending], now: float) -> Receipt:
        """Deliver events, all or none; failures are receipts, never exceptions."""
        ...


class PlainSink:
    """What most endpoints have in common: one event a send, one site after the other, at any time."""

    name: str
    at_once: int = 1
    mixed: bool = False
    reads: int = 500
    memory: str | None = None

    def opens_at(self, oldest: float, now: float) -> float:
        """At any time."""
        return now

    def takes(self, waiting: int, now: float) -> int:
        """One."""
        return 1
