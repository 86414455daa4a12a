"""When a date lies in the future, as far as its text can tell (pure)."""

from __future__ import annotations

from datetime import datetime, timedelta

SKEW = timedelta(hours=1)
"""By how much a clock may be fast before its dates count as of the future."""

ZONE = timedelta(hours=14)
"""The farthest zone in use, UTC+14: by so much a date without a zone may be ahead of UTC."""


def in_future(instant: datetime, now: datetime, *, zone: bool) -> bool:
    """Whether an instant lies after `now` for certain; `zone` says that its text gave a zone and a time of day."""
    return instant - now > (SKEW if zone else ZONE)
