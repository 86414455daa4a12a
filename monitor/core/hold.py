"""When people are told, and how much at a time: quiet hours, digests, rate limits. Nothing is dropped: it waits.

All of it follows from what waits and from when messages were sent, so that a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

SURGE = 10
"""Events that may wait at once before one message sums them up."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How messages are held back. Times in seconds.

    quiet   spans of local time, (from, to) in minutes after midnight, in which nothing is sent; one may cross midnight
    zone    the zone of those times; None is that of the machine
    every   digests: what came in a span of so many seconds (of the clock: a day starts at midnight UTC) is one message
    surge   more events than this that wait at once are one message; None: never
    limit   at most so many messages in any span of so many seconds; what is above that waits, and is summed up
    """

    quiet: tuple[tuple[int, int], ...] = ()
    zone: tzinfo | None = None
    every: float | None = None
    surge: int | None = SURGE
    limit: tuple[int, float] | None = None


def opens_at(manner: Manner, oldest: float, sent: Sequence[float], now: float) -> float:
    """The earliest time, `now` or later, at which a message may be sent.

    `oldest` is when the oldest event that waits happened; `sent` are the times of messages, ascending.
    """
    at = now
    if manner.every is not None:
        at = max(at, (oldest // manner.every + 1.0) * manner.every)
    if manner.limit is not None:
        most, span = manner.limit
        if len(sent) >= most:
            at = max(at, sent[-most] + span)
    return _awake(manner, at)


def at_once(manner: Manner, waiting: int, sent: Sequence[float], now: float) -> int:
    """How many of the events that wait go into the next message, now that one may be sent: one, or all."""
    if manner.every is not None or (manner.surge is not None and waiting > manner.surge):
        return waiting
    if manner.limit is not None:
        most, span = manner.limit
        left = most - sum(1 for at in sent if at > now - span)
        if waiting > left:
            return waiting
    return 1


def remembered(manner: Manner, sent: Sequence[float], now: float) -> list[float]:
    """The times of messages that still count, with `now` as the latest."""
    if manner.limit is None:
        return []
    most, span = manner.limit
    return [*(at for at in sent if now - span < at <= now), now][-most:]


def _awake(manner: Manner, at: float) -> float:
    """`at`, or the end of the quiet hours that it falls into; of adjoining ones the last end."""
    for _ in range(len(manner.quiet) + 1):
        local = datetime.fromtimestamp(at, manner.zone) if manner.zone else datetime.fromtimestamp(at).astimezone()
        minute = local.hour * 60 + local.minute
        for start, end in manner.quiet:
            if start <= minute < end or (end <= start and (minute >= start or minute < end)):
                day = local.date() + timedelta(days=1 if end <= start and minute >= start else 0)
                wall = datetime.combine(day, time(end // 60 % 24, end % 60))
                if end == 24 * 60:
                    wall += timedelta(days=1)
                at = max(at, wall.replace(tzinfo=manner.zone).timestamp())
                break
        else:
            break
    return at
