"""How listings are kept: lines and page ids, packed (pure)."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import zstandard


@dataclass(frozen=True, slots=True)
class Line:
    """What a listing says of a page. Empty texts are None."""

    url: str
    lastmod: str | None = None
    title: str | None = None


def pack_lines(lines: Sequence[str]) -> bytes:
    """Lines, compressed; nothing for none."""
    if not lines:
        return b""
    return zstandard.ZstdCompressor(level=1).compress("\n".join(lines).encode("utf-8", "surrogatepass"))


def unpack_lines(packed: bytes | None) -> list[str]:
    """What `pack_lines` was given."""
    if not packed:
        return []
    return zstandard.ZstdDecompressor().decompress(packed).decode("utf-8", "surrogatepass").split("\n")


def parse_line(line: str) -> Line:
    """The fields of a line."""
    url, _, rest = line.partition("\t")
    lastmod, _, title = rest.partition("\t")
    return Line(url, lastmod or None, title or None)


def pack_ids(numbers: Sequence[int]) -> bytes:
    """Page ids, sorted, eight bytes each, the least significant first."""
    packed = array("Q", sorted(numbers))
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack_ids(packed: bytes) -> array[int]:
    """What `pack_ids` made, sorted."""
    ids = array("Q", packed)
    if sys.byteorder == "big":
        ids.byteswap()
    return ids
