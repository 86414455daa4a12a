"""The one way through: due -> fetch -> parse -> identify -> reconcile -> commit -> deliver.

The engine decides when and how many at a time; `poll_feed`, `poll_tree` and `poll_page` are the line for one source.
A crash anywhere repeats work and loses nothing: a source stays due until the transaction that holds its new state, its
events and their deliveries is committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from sqlalchemy import Connection

from monitor import faults
from monitor.config import Config, Site
from monitor.core.health import Outcome
from monitor.core.reconcile import when
from monitor.crawl import Visit, crawl_site, start_of
from monitor.deliver import endpoints as endpoint_kinds
from monitor.deliver.outbox import Deliverer, Tally
from monitor.fetch import Fetcher, FetchPolicy
from monitor.find_sources import configured, find_sources, hasten_listings, wants_discovery
from monitor.keep_promises import check_promises
from monitor.lanes import Lane, Lanes, lane_of, width
from monitor.network import AGAIN, PROBES, OfflineError
from monitor.parse_pool import ParsePool
from monitor.poll_feed import poll_feed
from monitor.poll_page import RobotsCache, check_pages
from monitor.poll_tree import poll_tree
from monitor.pricing import FIRST_RENEW, RENEW, renew_prices
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import Database, StoreError
from monitor.store.due import due_sources, next_due
from monitor.store.sources import DocumentRow, SiteRow, SourceRow

log = logging.getLogger("monitor")

ROUND = 0.02
"""Seconds between two looks at what is due, at least."""

PASSED = 500
"""Due sources that a look passes over, for their hosts have enough to do, before it counts as two: the looks at what
thousands of feeds of one host leave waiting must not be what the store spends its time on."""

STOP_SECONDS = 8.0
"""How long polls under way may go on after a stop was asked for; what is cut off then is simply polled again."""


@dataclass(slots=True)
class Pass:
    """What one pass over the due sources did. `problems` names what failed, a sentence each."""

    polled: int = 0
    unchanged: int = 0
    modified: int = 0
    problems: list[str] = field(default_factory=list)
    delivered: int = 0
    pending: int = 0


class UnusableConfigError(ValueError):
    """A configuration that is right as it stands cannot be used here. The message is a sentence for the user."""


class Engine:
    """Runs a configuration on a database. `clock` gives seconds since the epoch; `stream` is where stdout alerts go."""

    def __init__(
        self,
        config: Config,
        db: Database,
        fetcher: Fetcher,
        pool: ParsePool,
        *,
        clock: Callable[[], float],
        stream: TextIO | None = None,
        progress: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._run = self.runtime = Runtime(config, db, fetcher, pool, clock)
        self._deliverer = Deliverer(db, clock)
        self._run.wake = self._deliverer.wake
        self._robots = RobotsCache(self._run)
        self._stream = stream
        self._progress = progress
        self._checking: set[str] = set()
        self._lanes: dict[int, Lane] = {}
        self._pause = ROUND

    async def use(self, config: Config, *, retry: bool = False) -> None:
        """Take a configuration into force, at the start and on a reload. Raises UnusableConfigError if it cannot be.

        `retry` looks at once for the sources of sites where that failed: whoever reloads has mended it.
        """
        run = self._run
        policy = FetchPolicy(
            user_agent=config.defaults.user_agent,
            allow_private_networks=config.defaults.allow_private_networks,
            proxy=config.defaults.proxy,
        )
        try:
            endpoints = endpoint_kinds.build(config.alerts, run.fetcher, policy, self._stream)
        except ValueError as error:
            raise UnusableConfigError(str(error)) from error
        now = run.clock()

        def sync(connection: Connection) -> dict[str, SiteRow]:
            event_store.sync_endpoints(connection, [(a.name, endpoint_kinds.address_hash(a)) for a in config.alerts])
            source_store.sync_sites(connection, [(s.name, s.url) for s in config.sites], now)
            rows = source_store.sites(connection)
            for site in config.sites:
                row = rows[site.name]
                named = [(kind, url, "config") for kind, urls in configured(site) for url in urls or ()]
                if (start := start_of(site)) is not None:
                    named.append(("crawl", start, "config"))
                rested = source_store.sync_sources(connection, row.id, named, now, origins="config")
                listed = [kind for kind, urls in configured(site) if urls is not None]
                source_store.rest_discovered(connection, row.id, listed)
                source_store.settle_indexed(connection, row.id)
                if (rested or (retry and row.discovery_error)) and wants_discovery(site):
                    # What the configuration names no more may be what it now leaves to be found.
                    source_store.set_site(connection, row.id, discovery_next_at=now)
            hasten_listings(connection, {site.name: site for site in config.sites})
            return source_store.sites(connection)

        run.rows = await run.db.run(sync)
        # Only now: whoever looks at a site of the configuration in force finds its row, also while this was under way.
        run.use(config)
        self._deliverer.use(endpoints)

    # ---------------------------------------------------------------- one pass

    async def once(self, *, everything: bool = False) -> Pass:
        """One pass over what is due, the pages it raises questions about, one delivery attempt.

        `everything` ignores the schedule, but not Retry-After, and not a source that is gone.
        """
        result, run = Pass(), self._run
        await self._safely(result, "discovery", self._discover_all(result, everything=everything))
        await self._safely(result, "the price of polls", renew_prices(run))
        await self._poll_all(result, everything=everything)
        if result.modified:  # what was read first has a rate by now
            await self._safely(result, "the price of polls", renew_prices(run))
        await self._safely(result, "promises", check_promises(run))
        names = {row.id: name for name, row in run.rows.items()}
        for site_id in await run.db.run(lambda c: page_store.sites_with_checks(c, run.clock())):
            name = names.get(site_id)
            if name in run.sites:
                await self._safely(result, f"the pages of {name}", check_pages(run, self._robots, name))
        tally = await self._deliverer.attempt()
        result.delivered, result.pending = tally.delivered, tally.failed
        off = await run.db.run(event_store.disabled_endpoints)
        errors = {name: f"is disabled, nothing is sent to it: {reason}" for name, reason in off} | tally.errors
        result.problems += [f"{name}: {error}" for name, error in errors.items()]
        return result

    async def _safely(self, result: Pass, what: str, work: Awaitable[object]) -> None:
        """Do one part of a pass. A fault of ours in it is named, and keeps no other part from being done."""
        try:
            await work
        except Exception as fault:
            if isinstance(faults.cause(fault), StoreError):
                raise faults.cause(fault) from fault
            log.exception("%s: a fault of the monitor's own", what)
            result.problems.append(f"{what}: {faults.sentence(fault)}")

    async def _poll_all(self, result: Pass, *, everything: bool) -> None:
        now = self._run.clock()

        def choose(connection: Connection) -> list[SourceRow]:
            every = source_store.all_sources(connection)
            ready = [s for s in every if (everything and s.next_at < source_store.NEVER) or s.next_at <= now]
            return [s for s in ready if (s.retry_at or 0.0) <= now and not (everything and s.state == "gone")]

        todo = await self._run.db.run(choose)
        roots = await self._roots(todo)
        total = self._run.config.defaults.concurrency.total
        gate = asyncio.Semaphore(total)
        lanes: dict[Lane, asyncio.Semaphore] = {}

        async def one(source: SourceRow) -> None:
            lane = lane_of(source.kind, source.url)
            if lane not in lanes:
                lanes[lane] = asyncio.Semaphore(width(self._run.sites[source.site], source.url, total))
            async with lanes[lane], gate:
                if self._run.fetcher.network.down:
                    return  # said once, by those that found it out
                outcome = await self._poll(source, roots.get(source.id), everything=everything)
            self._note(result, source, outcome)
            self._progress(f"{result.polled} of {len(todo)} sources read")

        async def site(sources: Sequence[SourceRow]) -> None:
            # Feeds first: of what both list a feed says more, and the event is told by who comes first.
            await asyncio.gather(*(one(source) for source in sources if source.kind == "feed"))
            await asyncio.gather(*(one(source) for source in sources if source.kind != "feed"))

        sites: dict[str, list[SourceRow]] = {}
        for source in todo:
            if source.site in self._run.sites:
                sites.setdefault(source.site, []).append(source)
        await asyncio.gather(*map(site, sites.values()))

    # ---------------------------------------------------------------- the daemon

    async def forever(self, stop: asyncio.Event) -> None:
        """Poll what is due, deliver what is pending, until `stop` is set; then end within ten seconds."""
        polls: dict[int, asyncio.Task[None]] = {}
        others: set[asyncio.Task[None]] = set()
        wake = asyncio.Event()
        keepers = [
            asyncio.create_task(work)
            for work in (
                self._deliverer.run(),
                self._keep(renew_prices, FIRST_RENEW, RENEW),
                self._keep(check_promises, 1.0, 1.0),
                stop.wait(),
            )
        ]
        for keeper in keepers:
            keeper.add_done_callback(lambda _task: wake.set())
        try:
            while not any(keeper.done() for keeper in keepers):
                wake.clear()
                self._start_discovery(others, wake)
                wait = await self._start_due(polls, others, wake)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), wait)
                # Polls end many at a time, as their group is committed: the rest of them need no round of their own.
                await asyncio.sleep(self._pause)
                for task in [task for task in others if task.done()]:
                    others.discard(task)
                    task.result()
        finally:
            under_way = {*polls.values(), *others}
            if under_way:
                _done, late = await asyncio.wait(under_way, timeout=STOP_SECONDS)
                for task in late:
                    task.cancel()
                await asyncio.gather(*under_way, return_exceptions=True)
            for keeper in keepers:
                keeper.cancel()
            ends = await asyncio.gather(*keepers, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _keep(self, work: Callable[[Runtime], Awaitable[object]], first: float, later: float) -> None:
        """Do `work` now, after `first` seconds, and then every `later`; a fault of ours in it ends nothing else."""
        pause = first
        while True:
            try:
                await work(self._run)
            except StoreError:
                raise
            except Exception:
                log.exception("a fault of the monitor's own")
                pause = max(pause, 60.0)
            await asyncio.sleep(pause)
            pause = later

    async def _start_due(
        self, polls: dict[int, asyncio.Task[None]], others: set[asyncio.Task[None]], wake: asyncio.Event
    ) -> float:
        """Start due polls and checks of pages while there is room; returns how long nothing more can be due."""
        for number in [n for n, task in polls.items() if task.done()]:
            self._lanes.pop(number, None)
            polls.pop(number).result()
        total = self._run.config.defaults.concurrency.total
        room = 2 * total - len(polls)
        if self._run.fetcher.network.down:
            room = PROBES - len(polls)
        if room <= 0:
            return 60.0
        now = self._run.clock()
        busy = set(polls)
        lanes = Lanes([self._lanes[number] for number in polls], total)

        def take(number: int, name: str, kind: str, url: str) -> bool:
            site = self._run.sites.get(name)
            return number not in busy and site is not None and lanes.take(site, kind, url)

        def choose(
            connection: Connection,
        ) -> tuple[list[SourceRow], int, dict[int, DocumentRow], float | None, list[int]]:
            due, passed = due_sources(connection, now, room, take)
            roots = source_store.root_documents(connection, [s.id for s in due])
            later = next_due(connection, now)
            return due, passed, roots, later, page_store.sites_with_checks(connection, now)

        due, passed, roots, later, questions = await self._run.db.run(choose)
        self._pause = ROUND * (1.0 + passed / PASSED)
        for source in due:
            task = asyncio.create_task(self._poll_quietly(source, roots.get(source.id)))
            task.add_done_callback(lambda _task: wake.set())
            polls[source.id] = task
            self._lanes[source.id] = lane_of(source.kind, source.url)
        if questions:
            self._start_checks(questions, others, wake)
        if len(due) == room:
            return 60.0  # full; the next to finish wakes the loop
        return 1.0 if later is None else min(1.0, max(0.0, later - now))

    def _start_discovery(self, others: set[asyncio.Task[None]], wake: asyncio.Event) -> None:
        now = self._run.clock()
        for site in self._run.config.sites:
            row = self._run.rows[site.name]
            name = f"discover {site.name}"
            if (row.discovery_next_at or 0.0) > now or name in self._checking or not wants_discovery(site):
                continue
            self._checking.add(name)
            self._spawn(others, wake, name, self._discover_quietly(site))

    def _start_checks(self, waiting: list[int], others: set[asyncio.Task[None]], wake: asyncio.Event) -> None:
        names = {row.id: name for name, row in self._run.rows.items()}
        for site_id in waiting:
            name = names.get(site_id)
            if name is None or name not in self._run.sites or name in self._checking:
                continue
            self._checking.add(name)
            self._spawn(others, wake, name, check_pages(self._run, self._robots, name))

    def _spawn(self, others: set[asyncio.Task[None]], wake: asyncio.Event, name: str, work: object) -> None:
        async def guarded() -> None:
            try:
                await work  # type: ignore[misc]
            except StoreError:
                raise
            except Exception:
                log.exception("%s failed", name)
                await asyncio.sleep(5)
            finally:
                self._checking.discard(name)

        task = asyncio.create_task(guarded())
        others.add(task)
        task.add_done_callback(lambda _task: wake.set())

    async def _poll_quietly(self, source: SourceRow, document: DocumentRow | None) -> None:
        outcome = await self._poll(source, document)
        level = logging.DEBUG if outcome.result in ("unchanged", "modified") else logging.INFO
        log.log(level, "%s %s: %s", source.url, outcome.result, outcome.error or "")

    # ---------------------------------------------------------------- shared

    async def _poll(self, source: SourceRow, document: DocumentRow | None, *, everything: bool = False) -> Outcome:
        """Poll one source. A fault of ours costs that source this poll, and nobody else anything."""
        if source.site not in self._run.sites:
            return Outcome("unchanged")  # it left the configuration since it was found due
        try:
            if source.kind == "feed":
                return await poll_feed(self._run, source, document)
            if source.kind == "crawl":
                outcome, _visit = await crawl_site(self._run, self._robots, source)
                return outcome
            return await poll_tree(self._run, source, everything=everything)
        except Exception as fault:
            if isinstance(faults.cause(fault), StoreError):
                raise faults.cause(fault) from fault  # what cannot be remembered must not be asked again and again
            if isinstance(faults.cause(fault), OfflineError):
                return await self._put_off(source)
            return await faults.note_poll(self._run, source, fault)

    async def _put_off(self, source: SourceRow) -> Outcome:
        """Nothing is known of a source that could not be asked for want of a network: it stays due, and as it was."""
        again = self._run.clock() + AGAIN
        why = "the monitor's own network is down"
        await self._run.db.run(lambda c: source_store.set_source(c, source.id, next_at=again, reason=why))
        return Outcome("offline", None, f"{why}: no host gives an answer")

    @staticmethod
    def _note(result: Pass, source: SourceRow, outcome: Outcome) -> None:
        if outcome.result == "offline":
            error = outcome.error or "offline"
            result.problems += [error] if error not in result.problems else []
            return
        result.polled += 1
        if outcome.result == "unchanged":
            result.unchanged += 1
        elif outcome.result == "modified":
            result.modified += 1
        else:
            result.problems.append(_at(source.url, outcome.error or outcome.result))

    async def _roots(self, todo: Sequence[SourceRow]) -> dict[int, DocumentRow]:
        return await self._run.db.run(lambda c: source_store.root_documents(c, [s.id for s in todo]))

    async def _discover_all(self, result: Pass, *, everything: bool) -> None:
        now = self._run.clock()
        sites = []
        for site in filter(wants_discovery, self._run.config.sites):
            row = self._run.rows[site.name]
            if (row.discovery_next_at or 0.0) <= now or (everything and row.discovery_error):
                sites.append(site)
            elif row.discovery_error:
                since = f"(as of {when(row.discovered_at)}; --all retries)"
                result.problems.append(f"{_at(site.url, row.discovery_error)} {since}")
        for site, problem in zip(sites, await asyncio.gather(*map(self._discover, sites)), strict=True):
            if problem is not None:
                result.problems.append(_at(site.url, problem))

    async def _discover_quietly(self, site: Site) -> None:
        problem = await self._discover(site)
        if problem is not None:
            log.warning("%s", _at(site.url, problem))

    async def _discover(self, site: Site) -> str | None:
        self._progress(f"looking for feeds and sitemaps of {site.url}")
        return await find_sources(self._run, site)

    async def crawl(self, site: str) -> tuple[Outcome, Visit | None]:
        """Crawl a site now. LookupError: the configuration names no section of it to crawl."""
        rows = await self._run.db.run(source_store.all_sources)
        own = [row for row in rows if row.site == site and row.kind == "crawl" and row.next_at < source_store.NEVER]
        if not own:
            raise LookupError(f"{site} has no `crawl:` in the configuration; name its sections there")
        return await crawl_site(self._run, self._robots, own[0], say=self._progress)

    async def deliver(self) -> Tally:
        """One delivery attempt of what is pending."""
        return await self._deliverer.attempt()


def _at(url: str, problem: str) -> str:
    """A problem with its address, which it may name already."""
    return problem if problem.startswith(url) else f"{url}: {problem}"
