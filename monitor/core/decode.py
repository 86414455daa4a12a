"""Bytes as they came to bytes that can be parsed: gzip and zlib peeled off under one cap (pure).

Decided by magic bytes, never by URL or content type: a `.xml.gz` is often plain, a plain `.xml` often compressed, and
some are compressed twice. Formats: RFC 1952 (gzip), RFC 1950 (zlib), RFC 1951 (deflate).
"""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass

from monitor.model import Problem

CAP = 52_428_800
"""50 MiB, the protocol's own limit of an uncompressed sitemap (sitemaps.org)."""

LAYERS = 3
"""Times over that a body may be compressed."""

BOMB_RATIO = 200
"""Deflate reaches 1,032 at most; real sitemaps and feeds stay under 100."""

BOMB_BYTES = 16 * 1024 * 1024
"""What an expansion beyond `BOMB_RATIO` may yield before it is refused."""

GZIP = b"\x1f\x8b"
ZLIB = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
"""How zlib data begins with a window of 32 KiB, the only one in use (RFC 1950, section 2.2)."""

_STEP = 262_144
_SLICE = 16_384
_MEMBERS = 10_000  # a member of twenty bytes costs as much to open as one of 64 KiB
_RAW, _ZLIB, _GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS, 16 + zlib.MAX_WBITS
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\f\r"))
_BOMS = (b"\xfe\xff", b"\xff\xfe")


@dataclass(frozen=True, slots=True)
class Decoded:
    """`data` after peeling. `complete` is False where a layer was cut, damaged or larger than the cap.

    `layers` counts what was peeled. `data` is what could be read of an incomplete body; empty for a bomb.
    """

    data: bytes
    complete: bool = True
    layers: int = 0
    problems: tuple[Problem, ...] = ()


class CappedInflate:
    """An incremental decoder of gzip (any number of members), zlib or raw deflate; never makes more than `cap` bytes.

    Feed chunks in order, then call `finish`. Data that is not compressed at all passes through: servers label wrongly.
    """

    def __init__(self, cap: int) -> None:
        self.capped = False
        """More than `cap` bytes came; what follows is dropped."""
        self.damaged = False
        """The compressed data is wrong: what came before the damage was given, what follows is dropped."""
        self.trailing = False
        """Bytes that are not compressed data follow the last member; they are dropped."""
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
            chunk = self._head = self._head + chunk
            if len(chunk) < 2:
                return b""
            self._begin(chunk)
            self._head = b""
        if self._plain:
            return self._take(chunk)
        view = memoryview(chunk)
        # In slices: zlib hands back a copy of all that it left unread.
        parts = (self._inflate(bytes(view[at : at + _SLICE])) for at in range(0, len(chunk), _SLICE))
        return b"".join(parts)

    def finish(self) -> bool:
        """Whether the data was whole: every member's trailer read and right."""
        if self.capped or self.damaged:
            return False
        if self._plain or not self._started:
            return not self._head
        return self._decoder is None or self._decoder.eof

    def _begin(self, data: bytes) -> None:
        self._started = True
        head = data[:64]
        if data.startswith(GZIP):
            self._decoder = zlib.decompressobj(_GZIP)
        elif data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0:
            self._decoder = zlib.decompressobj(_ZLIB)
        elif data.startswith(_BOMS) or head == head.translate(None, _CONTROLS):
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
        while data and not (self.capped or self.damaged or self.trailing):
            decoder = self._decoder or self._next_member(data)
            if decoder is None:
                data = data.lstrip(b"\0")
                if data:
                    continue
                break
            before = decoder.copy()
            try:
                out.append(self._take(decoder.decompress(data, min(_STEP, self._room + 1))))
            except zlib.error:
                self.damaged = True
                out.append(self._take(_salvage(before, data, self._room)))
                break
            if decoder.eof:
                data, self._decoder = decoder.unused_data, None
                self._members += 1
            else:
                data = decoder.unconsumed_tail
        return b"".join(out)

    def _next_member(self, data: bytes) -> zlib._Decompress | None:
        """A decoder of the member that begins here; None where padding or rubbish does."""
        if data.startswith(b"\0"):
            return None
        if not data.startswith(GZIP[: len(data)]):
            self.trailing = True
        elif self._members >= _MEMBERS:
            self.damaged = True
        else:
            self._decoder = zlib.decompressobj(_GZIP)
        return self._decoder


def _salvage(decoder: zlib._Decompress, data: bytes, room: int) -> bytes:
    """What comes out of `data` before the byte that `decoder` stumbles over: a wrong trailer costs no content."""
    out = bytearray()
    try:
        for at in range(len(data)):
            out += decoder.decompress(data[at : at + 1], room + 1 - len(out))
            while decoder.unconsumed_tail and len(out) <= room:
                out += decoder.decompress(decoder.unconsumed_tail, room + 1 - len(out))
            if len(out) > room:
                break
    except zlib.error:
        pass
    return bytes(out)


def decode(data: bytes, cap: int = CAP) -> Decoded:
    """Peel gzip and zlib off `data` by magic bytes: at most three layers, at most `cap` bytes in any. Never raises.

    A cut or damaged layer gives what could be inflated, `complete` False and a problem (``gzip.damaged``,
    ``gzip.cap``). A bomb (`BOMB_RATIO`, `BOMB_BYTES`) gives nothing, ``gzip.bomb``; so does a fourth layer,
    ``gzip.layers``. Bytes behind the last member are dropped with a problem that costs nothing (``gzip.trailing``).
    """
    wire = len(data)
    problems: list[Problem] = []
    layers = 0
    while data.startswith(GZIP) or _is_zlib(data):
        if layers == LAYERS:
            problems.append(Problem("gzip.layers", "start", f"compressed more than {LAYERS} times over"))
            return Decoded(b"", False, layers, tuple(problems))
        inflate = CappedInflate(cap)
        layers += 1
        made = _expand(inflate, data, max(BOMB_BYTES, wire * BOMB_RATIO))
        if made is None:
            problems.append(Problem("gzip.bomb", "gzip", f"expands more than {BOMB_RATIO} times over: a bomb"))
            return Decoded(b"", False, layers, tuple(problems))
        data = made
        if not inflate.finish():
            problems.append(_unfinished(inflate, cap))
            return Decoded(data, False, layers, tuple(problems))
        if inflate.trailing:
            problems.append(Problem("gzip.trailing", "end", "there are further bytes behind the compressed data"))
    return Decoded(data, True, layers, tuple(problems))


def _is_zlib(data: bytes) -> bool:
    """Whether zlib data begins here. Its two bytes could be text (``x^``), but what follows is not ASCII for long."""
    if not data.startswith(ZLIB) or data[:64].isascii():
        return False
    try:
        zlib.decompressobj(_ZLIB).decompress(data[:_SLICE], 1)
    except zlib.error:
        return False
    return True


def _expand(inflate: CappedInflate, data: bytes, bomb: int) -> bytes | None:
    """All that `data` expands to, None once that is more than `bomb` bytes."""
    out = io.BytesIO()  # gives its buffer away without a copy
    for at in range(0, len(data), _SLICE):
        out.write(inflate.feed(data[at : at + _SLICE]))
        if out.tell() > bomb:
            return None
    return out.getvalue()


def _unfinished(inflate: CappedInflate, cap: int) -> Problem:
    if inflate.capped:
        return Problem("gzip.cap", f"byte {cap}", f"expands to more than {cap} bytes; read up to there")
    return Problem("gzip.damaged", "gzip", "the compressed data is cut or damaged")
