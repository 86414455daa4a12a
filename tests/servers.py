"""Loopback servers that say exactly the bytes a test wants, lies included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Handler = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """A request as it came: its first line's target, and its header fields, names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Server:
    """A running server: where it is, and what was asked of it."""

    port: int
    requests: list[Request] = field(default_factory=list)
    active: int = 0
    most_active: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


def answer(status: str = "200 OK", body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    """An HTTP/1.1 answer; `length` may lie about the body's."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[Server]:
    """Serve while the block runs. The handler writes what it likes; the connection closes behind it."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while (request := await _read(reader)) is not None:
                server.requests.append(request)
                server.active += 1
                server.most_active = max(server.most_active, server.active)
                try:
                    await handler(request, writer)
                    await writer.drain()
                finally:
                    server.active -= 1
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    raw = await asyncio.start_server(connected, host, 0)
    server = Server(raw.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        raw.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


def says(*parts: bytes, close: bool = False) -> Handler:
    """A handler that always says the same."""

    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
        if close:
            await writer.drain()
            writer.close()

    return handler


def routes(**paths: bytes | Handler) -> Handler:
    """A handler by path: ``a`` is ``/a``; anything else is 404."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        found = paths.get(request.target.lstrip("/").split("?")[0])
        if found is None:
            writer.write(answer("404 Not Found"))
        elif isinstance(found, bytes):
            writer.write(found)
        else:
            await found(request, writer)

    return handler
