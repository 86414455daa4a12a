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


IMPLIED = 7
"""From so many bits of a bucket on, the eighth byte of its ids is known from the bucket, and left out."""


def pack_bucket(packed: bytes, bucket: int) -> bytes:
    """The ids of one bucket, from `pack_ids`, seven bytes each where the bucket tells the rest.

    A bucket's number is a one, followed by as many of the leading bits of its 63-bit ids as it stands for.
    """
    if bucket.bit_length() <= IMPLIED:
        return packed
    short = bytearray(packed)
    del short[7::8]
    return bytes(short)


def unpack_bucket(packed: bytes, bucket: int) -> array[int]:
    """What `pack_bucket` was given, as sorted ids."""
    bits = bucket.bit_length() - 1
    if bits < IMPLIED:
        return unpack_ids(packed)
    count = len(packed) // 7
    whole = bytearray(8 * count)
    for place in range(7):
        whole[place::8] = packed[place::7]
    whole[7::8] = bytes([(bucket - (1 << bits)) >> (bits - IMPLIED)]) * count
    return unpack_ids(bytes(whole))
