"""A site of a few documents that a test writes itself, for what no newsroom does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from monitor.newsroom import Newsroom
from tests.scenarios.watch import START, Watch, shared_pool

Said = tuple[int, dict[str, str], str]


class PlainSite:
    """Says at each path what `docs` has for it: a text, or (status, header fields, text), else 404.

    Queries do not count.
    """

    def __init__(self) -> None:
        self.docs: dict[str, str | Said | Callable[[], str | Said]] = {}
        self.asked: list[str] = []
        self.now: datetime = START
        self.url = ""

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def say(self, path: str) -> Said:
        self.asked.append(path)
        found = self.docs.get(path.partition("?")[0], (404, {}, "nothing here"))
        found = found() if callable(found) else found
        return found if isinstance(found, tuple) else (200, {}, found)

    def pages(self, *paths: str) -> None:
        """Let these paths be pages that live."""
        self.docs.update({path: f"<html><body><p>The story of {path}.</p></body></html>" for path in paths})

    def urlset(self, path: str, pages: Sequence[str], more: str = "") -> None:
        rows = "".join(f"<url><loc>{self.url}{page}</loc></url>" for page in pages)
        self.docs[path] = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}{more}</urlset>'

    def feed(self, path: str, entries: Sequence[tuple[str, str, str]]) -> None:
        """An RSS feed of (guid, path of the page, time of the day) each."""
        items = "".join(
            f"<item><guid isPermaLink='false'>{guid}</guid><title>Title {guid}</title><link>{self.url}{page}</link>"
            f"<pubDate>Mon, 02 Nov 2026 {time}:00 GMT</pubDate></item>"
            for guid, page, time in entries
        )
        head = f"<title>t</title><link>{self.url}</link><description>d</description>"
        self.docs[path] = f'<rss version="2.0"><channel>{head}{items}</channel></rss>'


@contextmanager
def plain_site(path: Path, *, feeds: Sequence[str] = (), sitemaps: Sequence[str] = (), **site: Any) -> Iterator[Watch]:
    """A plain site on a loopback port, and a monitor on those of its paths; its `room` is the PlainSite."""
    room = PlainSite()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Requests are kept, not printed."""

        def do_GET(self) -> None:
            status, fields, text = room.say(self.path)
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    room.url = f"http://127.0.0.1:{server.server_port}"
    options = {
        "feeds": tuple(room.url + one for one in feeds),
        "sitemaps": tuple(room.url + one for one in sitemaps),
        "news_sitemaps": (),
    }
    try:
        yield Watch(cast("Newsroom", room), path / "monitor.db", shared_pool(), **options, **site)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
