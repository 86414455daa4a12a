"""`monitor events`: the event log, printed; with a cursor, for a consumer that goes on where it stopped."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from functools import partial

from monitor.deliver.text import readable
from monitor.store import cursors
from monitor.store import events as event_store
from monitor.store.database import Database

PAGE = 1000
FOLLOW_SECONDS = 0.5


class CursorTakenError(Exception):
    """Another reader moved the cursor meanwhile. The message is a sentence for the user."""


def events(
    url: str,
    *,
    since: float | None,
    types: Sequence[str],
    site: str | None,
    follow: bool,
    form: str,
    cursor: str | None = None,
) -> None:
    """Print the event log, and go on with `follow` until interrupted or until nobody reads.

    With `cursor`, begin behind the last event that was printed under this name; it moves on once lines are written, so
    that none is ever left out, and after a crash at most the last `PAGE` are printed again. `since` counts only where
    the cursor is new. Raises CursorTakenError.
    """
    with Database(url, exclusive=False, must_exist=True, writing=cursor is not None) as db:
        place = db.call(partial(cursors.position, name=cursor)) if cursor is not None else None
        known, after = place, place or 0
        since = since if place is None else None
        try:
            while True:
                # Looked at before the page: what is above it may yet be written, what is below is on the page.
                last = db.call(event_store.last_seq)
                found = db.call(
                    partial(event_store.read_events, after=after, since=since, types=types, site=site, limit=PAGE)
                )
                for _seq, envelope in found:
                    line = readable(envelope) if form == "table" else json.dumps(envelope, ensure_ascii=False)
                    sys.stdout.write(line + "\n")
                sys.stdout.flush()
                after = found[-1][0] if len(found) == PAGE else max([last, after, *(seq for seq, _ in found)])
                if cursor is not None and after != known:
                    if not db.call(partial(cursors.move, name=cursor, known=known, seq=after, now=time.time())):
                        raise CursorTakenError(f"another reader moves the cursor {cursor!r}; give each its own")
                    known = after
                if len(found) == PAGE:
                    continue
                if not follow:
                    return
                time.sleep(FOLLOW_SECONDS)
        except BrokenPipeError:
            # The reader has what it wanted. Python would flush again at exit, and complain.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123
        except KeyboardInterrupt:
            return
