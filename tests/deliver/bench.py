"""A database, an outbox and real endpoints on loopback, at a time that only the test moves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import SecretStr
from sqlalchemy import select

from monitor.config import WebhookAlert
from monitor.core.reconcile import Draft
from monitor.deliver.outbox import Deliverer
from monitor.deliver.sinks import Sink
from monitor.deliver.webhook import WebhookSink
from monitor.fetch import Fetcher, FetchPolicy
from monitor.store import events as event_store
from monitor.store.database import Database
from monitor.store.events import Route
from monitor.store.schema import delivery

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1_790_000_000.0
POLICY = FetchPolicy("test/1", allow_private_networks=True)


@dataclass
class Hook:
    """Endpoints on one loopback port: the path names them, `answers` decides. `got` is what came, in order."""

    answers: dict[str, Callable[[], web.StreamResponse | Awaitable[web.StreamResponse]]] = field(default_factory=dict)
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    def subjects(self, path: str) -> list[str]:
        return [json.loads(body)["subject"] for at, _headers, body in self.got if at == path]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.got.append((request.path, headers, await request.read()))
        answer = self.answers.get(request.path, lambda: web.Response(status=204))()
        return answer if isinstance(answer, web.StreamResponse) else await answer


@dataclass
class Bench:
    """A database, an outbox and endpoints, at a time that only the test moves."""

    db: Database
    fetcher: Fetcher
    hook: Hook
    deliverer: Deliverer
    routes: list[Route] = field(default_factory=list)
    now: float = NOW

    def use(self, *names: str, policy: FetchPolicy = POLICY, more: tuple[Sink, ...] = ()) -> None:
        sinks: list[Sink] = [
            WebhookSink(
                WebhookAlert(name=name, url=f"{self.hook.url}/{name}", secrets=(SecretStr(SECRET),)),
                self.fetcher,
                policy,
            )
            for name in names
        ]
        sinks += more
        self.routes = [Route(sink.name, lambda _event: True) for sink in sinks]
        self.deliverer.use(sinks)

    async def happen(self, *subjects: str, site: str = "paper") -> None:
        found = {"kind": "feed", "url": "https://a.example/feed"}
        drafts = [Draft("url.new", each, {"site": site, "url": each, "found_in": found}) for each in subjects]
        await self.db.run(lambda c: event_store.add_events(c, site, drafts, self.routes, self.now) and None)

    async def rows(self) -> list[Any]:
        return await self.db.run(lambda c: list(c.execute(select(delivery).order_by(delivery.c.event_seq))))


def trial(folder: Path, scene: Callable[[Bench], Awaitable[None]]) -> None:
    """Play a scene on a fresh bench."""

    async def play() -> None:
        hook = Hook()
        runner = web.ServerRunner(web.Server(hook.handle, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            with Database(f"sqlite:///{folder}/outbox.db") as db:
                async with Fetcher(POLICY) as fetcher:
                    bench = Bench(db, fetcher, hook, Deliverer(db, lambda: bench.now))
                    await scene(bench)
        finally:
            await runner.cleanup()

    asyncio.run(play())
