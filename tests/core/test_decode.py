"""Compressed bodies: whole, cut, damaged, layered, hostile."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.decode import BOMB_BYTES, CappedInflate, Decoded, decode
from tests.corpus import members

TEXT = b"".join(b"<url><loc>https://example.com/%d</loc></url>" % i for i in range(20_000))


def rules(data: bytes, cap: int = 10_000_000) -> list[str]:
    return [problem.rule for problem in decode(data, cap=cap).problems]


def test_plain_data_passes_as_it_is() -> None:
    decoded = decode(TEXT)
    assert (decoded.data, decoded.complete, decoded.layers, decoded.problems) == (TEXT, True, 0, ())


@pytest.mark.parametrize("level", [1, 5, 6, 9])
def test_zlib_is_known_by_its_bytes(level: int) -> None:
    packed = zlib.compress(TEXT, level)
    decoded = decode(packed)
    assert (decoded.data, decoded.complete, decoded.layers) == (TEXT, True, 1)
    assert not decode(packed[:-4]).complete
    assert decode(gzip.compress(packed)).data == TEXT


@pytest.mark.parametrize("text", [b"x^2 + y^2", b"x^", b"x\x01", b"x\x9c\xff\xff not compressed"])
def test_text_that_begins_as_zlib_does_is_left_alone(text: bytes) -> None:
    assert decode(text) == Decoded(text)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_up_to_three_layers_are_peeled(layers: int) -> None:
    data = TEXT
    for _ in range(layers):
        data = gzip.compress(data)
    decoded = decode(data)
    assert (decoded.data, decoded.complete, decoded.layers) == (TEXT, True, layers)


def test_a_fourth_layer_is_refused() -> None:
    data = TEXT
    for _ in range(4):
        data = gzip.compress(data)
    decoded = decode(data)
    assert (decoded.data, decoded.complete) == (b"", False)
    assert [problem.rule for problem in decoded.problems] == ["gzip.layers"]


def test_several_members_are_one_document() -> None:
    decoded = decode(gzip.compress(TEXT[:100]) + gzip.compress(b"") + gzip.compress(TEXT[100:]) + b"\0" * 512)
    assert (decoded.data, decoded.complete, decoded.problems) == (TEXT, True, ())


def test_rubbish_behind_the_last_member_costs_nothing() -> None:
    decoded = decode(gzip.compress(TEXT) + b"<!-- cached -->")
    assert (decoded.data, decoded.complete) == (TEXT, True)
    assert [problem.rule for problem in decoded.problems] == ["gzip.trailing"]


def test_a_wrong_trailer_costs_completeness_but_no_content() -> None:
    packed = gzip.compress(TEXT)
    decoded = decode(packed[:-8] + b"\0" * 8)
    assert (decoded.data, decoded.complete) == (TEXT, False)
    assert [problem.rule for problem in decoded.problems] == ["gzip.damaged"]


@pytest.mark.parametrize("cut", [3, 12, 100, 5_000, -9, -8, -1])
def test_a_cut_body_gives_what_was_there(cut: int) -> None:
    decoded = decode(gzip.compress(TEXT)[:cut])
    assert TEXT.startswith(decoded.data)
    assert not decoded.complete


def test_a_layer_cut_within_a_whole_one_is_not_complete() -> None:
    decoded = decode(gzip.compress(gzip.compress(TEXT)[:-20]))
    assert TEXT.startswith(decoded.data)
    assert decoded.data
    assert not decoded.complete


def test_the_cap_holds_and_is_told() -> None:
    decoded = decode(gzip.compress(TEXT), cap=1_000)
    assert (decoded.data, decoded.complete) == (TEXT[:1_000], False)
    assert [problem.rule for problem in decoded.problems] == ["gzip.cap"]
    assert decode(gzip.compress(TEXT), cap=len(TEXT)).complete


def test_a_bomb_is_refused_within_little_memory() -> None:
    bomb = gzip.compress(b"\0" * 200_000_000)
    tracemalloc.start()
    decoded = decode(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (decoded.data, decoded.complete) == (b"", False)
    assert [problem.rule for problem in decoded.problems] == ["gzip.bomb"]
    assert peak < 6 * BOMB_BYTES


def test_a_small_document_that_packs_well_is_no_bomb() -> None:
    assert decode(gzip.compress(b"a" * 1_000_000)).complete


def test_members_without_content_end_somewhere() -> None:
    assert rules(gzip.compress(b"") * 20_000) == ["gzip.damaged"]


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(TEXT), zlib.compress(TEXT), zlib.compress(TEXT)[2:-4], TEXT],
    ids=["gzip", "zlib", "raw", "plain"],
)
@pytest.mark.parametrize("size", [100, 1_000, 10_000_000])
def test_chunks_of_every_coding_and_size(packed: bytes, size: int) -> None:
    inflate = CappedInflate(10_000_000)
    made = b"".join(inflate.feed(packed[at : at + size]) for at in range(0, len(packed), size))
    assert made == TEXT
    assert inflate.finish()


@pytest.mark.parametrize(
    "text", [b"User-agent: *\nDisallow:", b"\xef\xbb\xbf<rss/>", "Été".encode(), "<a/>".encode("utf-16")]
)
def test_text_that_is_called_compressed_passes(text: bytes) -> None:
    inflate = CappedInflate(1_000)
    assert inflate.feed(text) == text
    assert inflate.finish()


def test_more_than_the_cap_is_dropped_and_told() -> None:
    inflate = CappedInflate(1_000)
    made = inflate.feed(gzip.compress(TEXT)) + inflate.feed(b"more")
    assert (made, inflate.capped, inflate.finish()) == (TEXT[:1_000], True, False)


@given(st.binary(max_size=300), st.booleans(), st.integers(0, 400))
def test_arbitrary_bytes_never_raise_nor_pass_the_cap(data: bytes, packed: bool, cap: int) -> None:
    decoded = decode(gzip.compress(data)[:cap] if packed else b"\x1f\x8b\x08\0" + data, cap=cap)
    assert len(decoded.data) <= max(cap, len(data) + 4 if not packed else cap)
    inflate = CappedInflate(cap)
    assert len(inflate.feed(data)) <= cap


@given(st.binary(max_size=2_000), st.integers(1, 50))
def test_what_was_packed_comes_back(data: bytes, size: int) -> None:
    packed = gzip.compress(data)
    inflate = CappedInflate(2_000)
    assert b"".join(inflate.feed(packed[at : at + size]) for at in range(0, len(packed), size)) == data
    assert inflate.finish()


def test_damaged_bodies_of_the_corpus() -> None:
    found = {name: decode(data) for name, data in members("sitemaps/scrapy-compressed.tar.gz") if name.endswith(".gz")}
    assert len(found) >= 3
    assert found["feed-sample1.xml.gz"].complete
    assert b"</products>" in found["feed-sample1.xml.gz"].data
    for name in ("truncated-crc-error.gz", "unexpected-eof.gz"):
        assert not found[name].complete
        assert len(found[name].data) > 5_000


def test_layers_and_bombs_of_the_corpus() -> None:
    found = dict(members("sitemaps/scrapy-compressed.tar.gz"))
    pages = {name: decode(found[name]) for name in ("html-gzip-deflate.bin", "html-gzip-deflate-gzip.bin")}
    assert [page.layers for page in pages.values()] == [2, 3]
    assert all(page.complete and page.data.startswith(b"<!DOCTYPE HTML>") for page in pages.values())
    bomb = decode(found["bomb-deflate.bin"], cap=1_000_000)
    assert (len(bomb.data), [problem.rule for problem in bomb.problems]) == (1_000_000, ["gzip.cap"])
