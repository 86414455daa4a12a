"""How far each named reader of the event log has come."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from monitor.store.schema import cursor


def position(connection: Connection, name: str) -> int | None:
    """The sequence number of the last event that the reader has had; None for a new one."""
    found: int | None = connection.scalar(select(cursor.c.seq).where(cursor.c.name == name))
    return found


def move(connection: Connection, name: str, known: int | None, seq: int, now: float) -> bool:
    """Move a reader on from where it knows itself to be (None: nowhere yet) to `seq`; False where it is elsewhere."""
    if position(connection, name) != known:
        return False
    if known is None:
        connection.execute(insert(cursor).values(name=name, seq=seq, moved_at=now))
    else:
        connection.execute(update(cursor).where(cursor.c.name == name).values(seq=seq, moved_at=now))
    return True
