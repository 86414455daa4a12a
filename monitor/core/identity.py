"""What a page is called inside: the numbers and keys that rows of different sources meet in."""

from __future__ import annotations

from hashlib import blake2b


def page_id(key: str) -> int:
    """A page's number within its site: 63 bits of BLAKE2b over the page key.

    At a million pages a site the chance that any two share a number is 5e-8; the key itself is stored beside it and
    compared on reading, so a clash would be seen.
    """
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1
