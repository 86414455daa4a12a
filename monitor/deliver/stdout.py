"""Events on standard output: a JSON object a line, or lines for people."""

from __future__ import annotations

import asyncio
import io
import json
import os
import select
import stat
import sys
from collections.abc import Sequence
from typing import Literal, TextIO

from monitor.deliver.sinks import PlainSink, Receipt
from monitor.deliver.text import readable
from monitor.store.events import Pending


class StdoutSink(PlainSink):
    """Events on a stream: a JSON object a line, or a readable line on a terminal."""

    def __init__(self, name: str, form: Literal["jsonl", "text"] | None, stream: TextIO | None = None) -> None:
        self.name = name
        self._stream = stream or sys.stdout
        self._text = form == "text" or (form is None and self._stream.isatty())

    async def send(self, items: Sequence[Pending], now: float) -> Receipt:
        """Write and flush whole lines; a reader that went away closes the endpoint, and the event waits."""
        lines = [readable(json.loads(item.body)) if self._text else item.body for item in items]
        try:
            await _write(self._stream, "".join(f"{line}\n" for line in lines))
        except (BrokenPipeError, ValueError):
            # Nobody reads any more. Python would flush again at exit, and complain.
            self._stream = open(os.devnull, "w")  # noqa: SIM115, PTH123, ASYNC230
            sys.stdout = self._stream
            return Receipt("closed", "standard output was closed by its reader")
        except OSError as error:
            return Receipt("failed", f"standard output: {error.strerror}")
        return Receipt("delivered")


async def _write(stream: TextIO, text: str) -> None:
    """Write `text` and flush. A reader that pauses, say a pager, stops the writer but not the loop."""
    try:
        number = stream.fileno()
    except io.UnsupportedOperation:
        number = None  # a stream in memory
    if number is None:
        stream.write(text)
        stream.flush()
        return
    stream.flush()
    data = text.encode(stream.encoding or "utf-8", "backslashreplace")
    if stat.S_ISREG(os.fstat(number).st_mode):
        write_whole(number, data)
        return
    while data:
        await _writable(number)
        data = data[os.write(number, data[: select.PIPE_BUF]) :]


def write_whole(number: int, data: bytes) -> None:
    """Write `data` at the end of a regular file or not at all: what a full disk cut off is taken back.

    Raises OSError.
    """
    start = os.lseek(number, 0, os.SEEK_END)
    rest = data
    try:
        while rest:
            rest = rest[os.write(number, rest) :]
    except OSError:
        os.ftruncate(number, start)
        os.lseek(number, start, os.SEEK_SET)
        raise


async def _writable(number: int) -> None:
    """Return once PIPE_BUF bytes can be written without blocking; at once for files, and where the reader is gone."""
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    if poll.poll(0):
        return
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(number, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(number)
