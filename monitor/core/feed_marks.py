"""Which entries of a feed are, byte for byte, those that were read before: a hash of each, cheap to make and keep."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xxhash import xxh3_64_intdigest

from monitor.core.feed_scan import Item

READING = 1
"""Raise it when an entry of the same bytes is read in another way: each is then read once more."""


def marks_of(data: bytes, items: Sequence[Item], opened: bytes, salt: str) -> tuple[int, ...]:
    """One mark of 64 bits for each of `items`, entries of the document `data`; none where `opened` is empty.

    Two entries have one mark only if their bytes are the same and so is what else decides how they are read: what
    stands around them (`Scan.opened`: name spaces, bases, languages, entities), and what the caller adds in `salt`.
    """
    if not opened:
        return ()
    seed = xxh3_64_intdigest(b"%d\0%s\0%s" % (READING, salt.encode("utf-8", "replace"), opened))
    view = memoryview(data)
    return tuple(xxh3_64_intdigest(view[item.start : item.end], seed=seed) for item in items)


def pack(marks: Sequence[int]) -> bytes | None:
    """Marks as they are stored, eight bytes each; None for none."""
    return struct.pack(f"<{len(marks)}Q", *marks) if marks else None


def unpack(packed: bytes | None) -> frozenset[int]:
    """What `pack` made."""
    return frozenset(struct.unpack(f"<{len(packed) // 8}Q", packed)) if packed else frozenset()
