"""What a page is called inside: the numbers and keys that rows of different sources meet in."""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh3_64_intdigest


def page_id(key: str) -> int:
    """A page's number within its site: 63 bits of XXH3 over the page key.

    At a million pages a site the chance that any two share a number is 5e-8. Where a page has a row of its own the key
    stands beside the number and is compared on reading.
    """
    return xxh3_64_intdigest(key.encode("utf-8", "surrogatepass")) >> 1


def page_ids(keys: Sequence[str]) -> list[int]:
    """`page_id` of each key; no key holds a line feed."""
    texts = "\n".join(keys).encode("utf-8", "surrogatepass").split(b"\n") if keys else []
    return [number >> 1 for number in map(xxh3_64_intdigest, texts)]
