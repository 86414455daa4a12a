"""Bytes as they came to bytes that can be parsed: gzip and zlib peeled off under one cap (pure).

Decided by magic bytes, never by URL or content type: a `.xml.gz` is often plain, a plain `.xml` often compressed, and
some are compressed twice.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from monitor.model import Problem

CAP = 52_428_800
"""50 MiB, the protocol's own limit of an uncompressed sitemap (sitemaps.org)."""

LAYERS = 3
STEP = 262_144
GZIP = b"\x1f\x8b"
_RAW, _ZLIB, _GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS, 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Decoded:
    """`data` after peeling. `complete` is False where a layer was cut, damaged or larger than the cap."""

    data: bytes
    complete: bool = True
    layers: int = 0
    problems: tuple[Problem, ...] = ()


class CappedInflate:
    """An incremental decoder of gzip (any number of members), zlib or raw deflate that never makes more than `cap` bytes.

    Feed chunks in order, then call `finish`. Data that is not compressed at all passes through: servers label wrongly.
    """

    def __init__(self, cap: int) -> None:
        self.capped = False
        """More than `cap` bytes came; what follows is dropped."""
        self.damaged = False
        self.trailing = False
        self._room = cap
        self._decoder: zlib._Decompress | None = None
        self._plain = False
        self._started = False
        self._members = 0
        self._head = b""

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that `chunk` expands to; empty once capped or damaged."""
        if self.capped or self.damaged or self.trailing:
            return b""
        if not self._started:
            self._head += chunk
            if len(self._head) < 2:
                return b""
            chunk, self._head = self._head, b""
            self._begin(chunk)
        return self._take(chunk) if self._plain else self._inflate(chunk)

    def finish(self) -> bool:
        """Whether the data was whole: every member's trailer read and right."""
        if self.capped or self.damaged:
            return False
        if self._plain or not self._started:
            return not self._head or self._plain
        return self._decoder is None or self._decoder.eof

    def _begin(self, data: bytes) -> None:
        self._started = True
        if data.startswith(GZIP):
            self._decoder = zlib.decompressobj(_GZIP)
        elif data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0:
            self._decoder = zlib.decompressobj(_ZLIB)
        elif data[:1].strip() in (b"<", b"{", b"[", b"") or data.startswith(
            (b"\xef\xbb\xbf", b"http", b"\xfe\xff", b"\xff\xfe")
        ):
            self._plain = True
        else:
            self._decoder = zlib.decompressobj(_RAW)

    def _take(self, data: bytes) -> bytes:
        if len(data) > self._room:
            self.capped = True
            data = data[: self._room]
        self._room -= len(data)
        return data

    def _inflate(self, data: bytes) -> bytes:
        out = []
        while data:
            if self._decoder is None:
                # Behind a member's end comes another, padding, or rubbish.
                data = data.lstrip(b"\0") if self._members else data
                if not data:
                    break
                if not data.startswith(GZIP[: len(data)]):
                    self.trailing = True
                    break
                self._decoder = zlib.decompressobj(_GZIP)
            try:
                made = self._decoder.decompress(data, min(STEP, self._room + 1))
            except zlib.error:
                self.damaged = True
                break
            out.append(self._take(made))
            if self.capped:
                break
            if self._decoder.eof:
                data, self._decoder = self._decoder.unused_data, None
                self._members += 1
            else:
                data = self._decoder.unconsumed_tail
        return b"".join(out)


def decode(data: bytes, cap: int = CAP) -> Decoded:
    """Peel gzip off `data` by its magic bytes: at most three layers, at most `cap` bytes in any of them. Never raises.

    A cut or damaged layer gives what could be inflated, `complete` False and a problem; bytes behind the last member
    are dropped with a problem that costs nothing.
    """
    problems: list[Problem] = []
    complete = True
    layers = 0
    while data.startswith(GZIP):
        if layers == LAYERS:
            problems.append(Problem("gzip.layers", "start", f"compressed more than {LAYERS} times over"))
            return Decoded(b"", False, layers, tuple(problems))
        inflate = CappedInflate(cap)
        parts = [inflate.feed(data)]
        layers += 1
        if not inflate.finish():
            complete = False
            if inflate.capped:
                problems.append(
                    Problem("gzip.cap", f"byte {cap}", f"expands to more than {cap} bytes; read up to there")
                )
            else:
                problems.append(Problem("gzip.damaged", "gzip", "the compressed data is cut or damaged"))
        elif inflate.trailing:
            problems.append(Problem("gzip.trailing", "end", "there are further bytes behind the compressed data"))
        data = parts[0]
        if not complete:
            break
    return Decoded(data, complete, layers, tuple(problems))
