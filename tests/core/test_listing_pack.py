"""How listings and page ids are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitor.core.listing_pack import pack_bucket, pack_ids, pack_lines, unpack_bucket, unpack_ids, unpack_lines

IDS = st.sets(st.integers(0, 2**63 - 1), max_size=50)


@given(IDS, st.integers(0, 16))
def test_a_bucket_gives_back_its_ids(ids: set[int], bits: int) -> None:
    buckets: dict[int, list[int]] = {}
    for number in ids:
        buckets.setdefault((1 << bits) | (number >> (63 - bits)), []).append(number)
    for bucket, numbers in buckets.items():
        packed = pack_bucket(pack_ids(numbers), bucket)
        assert list(unpack_bucket(packed, bucket)) == sorted(numbers)
        assert len(packed) == len(numbers) * (7 if bits >= 7 else 8)


@given(IDS)
def test_ids_come_back_sorted(ids: set[int]) -> None:
    assert list(unpack_ids(pack_ids(list(ids)))) == sorted(ids)


@given(st.lists(st.text(st.characters(exclude_characters="\n"), min_size=1)))
def test_lines_come_back(lines: list[str]) -> None:
    assert unpack_lines(pack_lines(lines)) == lines
