"""How the simulated newsroom speaks HTTP: exactly (RFC 9110), or wrongly in a named way."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Literal, TypeVar

from aiohttp import web

Trouble = Literal["html", "hang", "reset", "truncate", "drip", "empty"]
Room = TypeVar("Room", bound=AbstractAsyncContextManager[object])

_PAUSE = 0.02  # seconds between two looks at whether a path was mended
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as it came. `path` carries the query; `headers` are those in lower case that tell a client's manners.

    `at_monotonic` is `time.monotonic()` at arrival. `status` is None while no answer was begun, and stays None where
    the connection was reset or the client gave up first.
    """

    at_monotonic: float
    method: str
    path: str
    status: int | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """What a path holds, with its validators: `etag` is the opaque part, without quotes."""

    body: bytes
    content_type: str
    etag: str
    modified: datetime

    @property
    def compressible(self) -> bool:
        """Whether it is sent gzipped to who accepts that: XML and JSON, which are not gzipped files already."""
        return "xml" in self.content_type or "json" in self.content_type


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer ready to be sent: `body` is as it goes over the wire, and empty for a 304."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def plain(status: int, text: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """A short HTML answer without validators: an error page, a redirect."""
    page = f"<!doctype html>\n<title>{status}</title>\n<h1>{text or status}</h1>\n".encode()
    return Answer(status, {"Content-Type": _HTML, **(headers or {})}, page)


def error_page() -> Answer:
    """An HTML apology with status 200, as broken sites give in place of any document."""
    return plain(200, "Something went wrong")


def conditional(document: Document, headers: Mapping[str, str], now: datetime) -> Answer:
    """The answer to a GET of `document`: 200 or 304.

    If-None-Match decides alone where it is given, by weak comparison; otherwise If-Modified-Since, where it is a date
    (RFC 9110, 13.1.2, 13.1.3 and 13.2.2). The gzip coding has an ETag of its own, as its bytes differ (8.8.3.3);
    either is recognised. `headers` is read without regard to case only if it is such a mapping.
    """
    zipped = document.compressible and accepts_gzip(headers.get("Accept-Encoding", ""))
    common = {
        "ETag": f'"{document.etag}-gzip"' if zipped else f'"{document.etag}"',
        "Last-Modified": format_datetime(document.modified, usegmt=True),
        "Date": format_datetime(max(now, document.modified), usegmt=True),
    }
    if document.compressible:
        common["Vary"] = "Accept-Encoding"
    if _unchanged(document, headers):
        return Answer(304, common)
    common["Content-Type"] = document.content_type
    if zipped:
        return Answer(200, common | {"Content-Encoding": "gzip"}, gzip.compress(document.body, mtime=0))
    return Answer(200, common, document.body)


def _unchanged(document: Document, headers: Mapping[str, str]) -> bool:
    if (matches := headers.get("If-None-Match")) is not None:
        known = {tag.strip().removeprefix("W/") for tag in matches.split(",")}
        return bool(known & {"*", f'"{document.etag}"', f'"{document.etag}-gzip"'})
    try:
        since = parsedate_to_datetime(headers.get("If-Modified-Since", ""))
    except ValueError:
        return False
    return document.modified <= (since if since.tzinfo else since.replace(tzinfo=UTC))


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding field allows gzip: by name or by ``*``, and not with a weight of zero (12.5.3)."""
    weights = {}
    for coding in accept_encoding.lower().split(","):
        name, _, weight = coding.partition(";q=")
        weights[name.strip()] = weight.strip().strip("0.") != "" or not weight
    return weights.get("gzip", weights.get("*", False))


async def send(
    request: web.BaseRequest, answer: Answer, trouble: Trouble | None, lasts: Callable[[], bool]
) -> web.StreamResponse:
    """Send `answer` whole, or as `trouble` spoils it for as long as `lasts` says.

    The headers of a cut or dripping body are those of the good one, its validators and length included.
    """
    assert request.transport is not None
    if trouble == "reset":
        # A linger time of zero makes the close a RST.
        request.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        request.transport.abort()
        return web.Response()
    if trouble == "empty":
        return web.Response(status=200, headers={"Content-Type": answer.headers["Content-Type"]})
    if trouble not in ("truncate", "drip") or request.method == "HEAD":
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(request)
    if trouble == "truncate":
        await response.write(answer.body[: len(answer.body) // 2])
        request.transport.close()
        return response
    sent = 0
    while sent < len(answer.body) and lasts():
        await response.write(answer.body[sent : sent + 1])
        sent += 1
        await asyncio.sleep(_PAUSE)
    await response.write(answer.body[sent:])
    return response


async def wait_while(lasts: Callable[[], bool]) -> None:
    """Return as soon as `lasts` is no longer true; looks every 20 ms."""
    while lasts():  # noqa: ASYNC110 - an Event belongs to one loop, `mend` may come from any thread
        await asyncio.sleep(_PAUSE)


@contextmanager
def serve_in_thread(room: Room) -> Iterator[Room]:
    """Serve `room` from an event loop in a thread of its own while the block runs.

    What keeps the site from starting, an OSError of the socket for one, is raised here.
    """
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        stop = asyncio.Event()
        async with room:
            started.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(live())
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="newsroom", daemon=True)
    thread.start()
    loop, stop = started.result()
    try:
        yield room
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
