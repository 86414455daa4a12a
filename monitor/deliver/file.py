"""Events as JSON Lines in a file, which is begun anew when it is full."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from monitor.config import FileAlert
from monitor.deliver.sinks import PlainSink, Receipt
from monitor.deliver.stdout import write_whole
from monitor.store.events import Pending

_BLOCK = 65_536
_OURS = b'{"specversion"'
"""How a line of ours begins."""


class FileSink(PlainSink):
    """One file. What was noted as delivered is on the disk; a line is whole, whatever dies when.

    Another program may move the file away at any time, as logrotate does: the next line begins a new one.
    """

    mixed = True

    def __init__(self, alert: FileAlert) -> None:
        self.name = alert.name
        self._path, self._most, self._keep = alert.path, alert.max_size, alert.keep

    def takes(self, waiting: int, now: float) -> int:
        """All: the disk is waited for once."""
        return waiting

    async def send(self, items: Sequence[Pending], now: float) -> Receipt:
        """Append lines, and wait until the disk has them."""
        lines = [item.body.encode() + b"\n" for item in items]
        try:
            await asyncio.to_thread(self._append, lines)
        except OSError as error:
            return Receipt("failed", f"{self._path}: {error.strerror or error}")
        return Receipt("delivered", answer=f"written to {self._path}")

    def _append(self, lines: list[bytes]) -> None:
        number = self._open()
        try:
            size = os.fstat(number).st_size
            group: list[bytes] = []
            for line in lines:
                if self._most is not None and size and size + len(line) > self._most:
                    self._flush(number, group)
                    group = []
                    os.close(number)
                    number = -1
                    self._rotate()
                    number, size = self._open(), 0
                group.append(line)
                size += len(line)
            self._flush(number, group)
        finally:
            if number >= 0:
                os.close(number)

    @staticmethod
    def _flush(number: int, group: list[bytes]) -> None:
        if group:
            write_whole(number, b"".join(group))
            os.fsync(number)

    def _open(self) -> int:
        """The file, behind its last whole line: a power failure may have left part of one, which was never noted."""
        fresh = not self._path.exists()
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            end = os.fstat(number).st_size
            whole = _last_line_end(number, end)
            if whole != end and os.pread(number, len(_OURS), whole) in (_OURS, _OURS[: end - whole]):
                os.ftruncate(number, whole)
            elif whole != end:
                write_whole(number, b"\n")  # not ours to take away
            if fresh:
                self._sync_folder()
        except BaseException:
            os.close(number)
            raise
        return number

    def _rotate(self) -> None:
        """``path`` becomes ``path.1``, that ``path.2``, and so on; what is above `keep` is gone."""
        if self._keep == 0:
            self._path.unlink()
            return
        for place in range(self._keep, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{place}")
            newer = self._path if place == 1 else self._path.with_name(f"{self._path.name}.{place - 1}")
            if newer.exists():
                newer.replace(older)
        self._sync_folder()

    def _sync_folder(self) -> None:
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _last_line_end(number: int, end: int) -> int:
    """Where the last whole line of a file of `end` bytes ends."""
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(number, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
