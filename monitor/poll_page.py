"""Asking the page itself: the witness before a verdict of changed or missing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Connection

from monitor.config import Site
from monitor.core.address import address_of
from monitor.core.http import Reply, Validators, describe, freshness, renew
from monitor.core.page_checks import (
    FIRST_WAIT,
    NOT_ASKED,
    THROTTLED_WAIT,
    PageMemory,
    PageReading,
    Witness,
    ask_again,
    judge_changed,
    judge_missing,
    leads_elsewhere,
    matters,
    walls,
)
from monitor.core.reconcile import Check, KnownPage
from monitor.core.robots import Robots, parse_robots
from monitor.fetch import FetchPolicy
from monitor.parse_pool import ParseCrash
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.database import StoreError
from monitor.store.pages import OpenCheck

log = logging.getLogger("monitor")

MISSING_ASKED = 100
"""Most pages asked of one site in a pass before they are told missing; the rest is told on the listings' word."""

SILENT = 3
"""Pages in a row without an answer after which a host is left alone: each may cost a minute of waiting."""

LONGEST_CRAWL_DELAY = 30.0
"""Seconds between two pages of a host, at most, that its robots.txt can ask for."""

PASS_SECONDS = 300.0
"""Delays that one pass spends on a host; what is not asked by then waits for the next pass."""

ROBOTS_TTL = 86400.0
"""RFC 9309, 2.4: a robots.txt is not used for longer than a day."""

ROBOTS_RETRY = 300.0
"""One that failed forbids its host only as long as it fails (RFC 9309, 2.3.1.4): it is looked at again so soon."""

ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.5"


@dataclass(slots=True)
class RobotsCache:
    """The robots.txt of hosts whose pages are asked for, each read once a day, one that fails after a few minutes."""

    run: Runtime
    kept: dict[str, tuple[float, Robots]] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    resting: dict[str, float] = field(default_factory=dict)  # hosts that ask to be left alone, until when

    async def rules(self, site: Site, url: str) -> Robots:
        """What the host of `url` allows (RFC 9309). ValueError: that is no address of the web."""
        to = address_of(url)
        host = f"[{to.host}]" if ":" in to.host else to.host
        origin = f"{to.scheme}://{host}" + (f":{to.port}" if to.port is not None else "")
        async with self.locks.setdefault(origin, asyncio.Lock()):
            found = self.kept.get(origin)
            if found is None or self.run.clock() - found[0] > (ROBOTS_RETRY if failed(found[1]) else ROBOTS_TTL):
                found = self.kept[origin] = (self.run.clock(), await self._read(site, f"{origin}/robots.txt"))
        return found[1]

    async def _read(self, site: Site, address: str) -> Robots:
        reply = await self.run.fetcher.get(address, accept="text/plain, */*;q=0.5", policy=self.run.policy(site))
        # RFC 9309, 2.3.1.4: a robots.txt that cannot be reached forbids everything.
        status = reply.status if reply.status is not None else 503
        return parse_robots(reply.body, status=status, url=address)


def failed(robots: Robots) -> bool:
    """Whether a robots.txt could not be reached (RFC 9309, 2.3.1.4); a server that asks for patience gave none."""
    return robots.status >= 500 or robots.status == 429


def polite(policy: FetchPolicy, robots: Robots) -> FetchPolicy:
    """`policy` with the delay between two requests that robots.txt asks for, if it is longer."""
    asked = min(robots.crawl_delay(policy.user_agent) or 0.0, LONGEST_CRAWL_DELAY)
    return replace(policy, host_delay=max(policy.host_delay, asked))


@dataclass(frozen=True, slots=True)
class _Open:
    """An open check of a site."""

    site: Site
    site_id: int
    asked: OpenCheck

    @property
    def check(self) -> Check:
        """The question."""
        return self.asked.check


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of asking a page: `kept` are the validators to remember, `reply` the answer if it was asked itself.

    `tried` is False where it was not even tried, because its host rests.
    """

    reading: PageReading
    kept: Validators | None = None
    reply: Reply | None = None
    tried: bool = True


@dataclass(slots=True)
class _Pass:
    """One pass over the checks of a site. `resting` are the hosts to be left alone, until when; `silent` counts the
    pages in a row that a host gave no answer for."""

    run: Runtime
    robots: RobotsCache
    site: Site
    gate: asyncio.Semaphore
    resting: dict[str, float]
    redirected: list[tuple[_Open, str, _Answer]] = field(
        default_factory=list
    )  # judged last, by what they have in common
    silent: Counter[str] = field(default_factory=Counter)
    delays: Counter[str] = field(default_factory=Counter)  # milliseconds spent between the pages of each host

    def note(self, host: str, reply: Reply) -> None:
        """What an answer says of its host: one that asks for patience, or is silent again and again, is left alone."""
        now = self.run.clock()
        self.silent[host] = self.silent[host] + 1 if reply.status is None else 0
        until = 0.0
        if reply.status in (429, 503):
            asked = freshness(reply, datetime.fromtimestamp(now, UTC)).retry_at
            until = asked.timestamp() if asked is not None else now + THROTTLED_WAIT
        elif self.silent[host] >= SILENT:
            until = now + FIRST_WAIT
        if until > self.resting.get(host, 0.0):
            self.resting[host] = until

    def patience(self, url: str, now: float) -> float:
        """Seconds for which the host of a page is to be left alone."""
        try:
            return max(0.0, self.resting.get(address_of(url).host, 0.0) - now)
        except ValueError:
            return 0.0


async def check_pages(run: Runtime, robots: RobotsCache, site_name: str) -> int:
    """Settle the open checks of one site; returns how many.

    Up to `changes.sample` suspected changes and `MISSING_ASKED` absences are asked about; the rest is settled on the
    listings' word.
    """
    site, row = run.sites.get(site_name), run.rows.get(site_name)
    if site is None or row is None:
        return 0  # it left the configuration since its checks were found; they wait for it
    site_id = row.id
    started_at = run.clock()
    checks = await run.db.run(lambda c: page_store.open_checks(c, site_id, started_at))
    budget = {"changed": site.changes.sample, "missing": MISSING_ASKED}
    if site.changes.verify == "always":
        budget["changed"] = len(checks)
    if site.changes.verify == "never":
        budget = {"changed": 0, "missing": 0}
    asked: list[_Open] = []
    unasked: list[_Open] = []
    for check in checks:
        (asked if budget[check.check.why] > 0 else unasked).append(_Open(site, site_id, check))
        budget[check.check.why] -= 1
    for batch in page_store.chunks(unasked, 200):
        try:
            await run.db.run(partial(_settle_unasked, run=run, batch=batch))
        except StoreError:
            raise
        except Exception:  # one of them is at fault: let it cost the others nothing
            for one in batch:
                await _close(run, one, NOT_ASKED, None)
    gate = asyncio.Semaphore(max(2, site.concurrency.per_host))
    visit = _Pass(run, robots, site, gate, robots.resting)
    await asyncio.gather(*(_settle(visit, one) for one in asked))
    nowhere = walls(((url, answer.reading) for _one, url, answer in visit.redirected), site.url)
    for one, _url, answer in visit.redirected:
        await _close(run, one, answer.reading, answer.kept, nowhere)
    if checks:
        run.wake()
    return len(checks)


def _settle_unasked(connection: Connection, run: Runtime, batch: Sequence[_Open]) -> None:
    for one in batch:
        _judge(connection, run, one, NOT_ASKED, None, ())


async def _settle(visit: _Pass, one: _Open) -> None:
    run, url = visit.run, ""
    answer: _Answer | None = _Answer(NOT_ASKED)
    async with visit.gate:

        def load(connection: Connection) -> tuple[KnownPage, PageMemory] | None:
            page = page_store.known_pages(connection, one.site_id, [one.check.page_id]).get(one.check.page_id)
            return (page, page_store.page_memory(connection, one.site_id, one.check.page_id)) if page else None

        try:
            known = await run.db.run(load)
            if known is not None:
                url = known[0].url
                answer = await _ask_in_turn(visit, known[0], one.check, known[1])
        except StoreError:
            raise
        except Exception:
            log.exception("a page of %s could not be asked by a fault of the monitor's own", one.site.name)
    if answer is None:
        return
    now, asked = run.clock(), one.asked
    if answer.reading.again and matters(one.check, run.rules(one.site)):
        tries = asked.tries + answer.tried
        again_at = ask_again(tries, asked.put_off_at, now, patience=visit.patience(url, now))
        if again_at is not None:
            await run.db.run(lambda c: page_store.put_off_check(c, one.site_id, asked, again_at, tries, now))
            return
    if leads_elsewhere(answer.reading, url):
        visit.redirected.append((one, url, answer))
    else:
        await _close(run, one, answer.reading, answer.kept)


async def _ask_in_turn(visit: _Pass, page: KnownPage, check: Check, memory: PageMemory) -> _Answer | None:
    """Ask a page, if robots.txt lets us and its host does not want to be left alone; note what that says of the host.

    None: not in this pass.
    """
    try:
        host = address_of(page.url).host
    except ValueError as error:
        return _Answer(PageReading(None, error=str(error)))
    now = visit.run.clock()
    if visit.resting.get(host, 0.0) > now:
        return _Answer(PageReading(None, error=f"{host} is left alone for now", again=True), tried=False)
    rules = await visit.robots.rules(visit.site, page.url)
    if failed(rules):
        return _Answer(PageReading(None, error="robots.txt cannot be read, which forbids its pages", again=True))
    if not rules.allows(page.url, visit.site.user_agent):
        return _Answer(PageReading(None, error="robots.txt does not allow the page to be read"))
    policy = polite(visit.run.policy(visit.site), rules)
    if visit.delays[host] >= 1000 * PASS_SECONDS:
        return None
    visit.delays[host] += round(1000 * policy.host_delay)
    answer = await _ask(visit.run, policy, page, check, memory)
    if answer.reply is not None:
        visit.note(host, answer.reply)
    return answer


async def _close(
    run: Runtime, one: _Open, reading: PageReading, kept: Validators | None, nowhere: Collection[str] = ()
) -> None:
    """Judge a check and close it; a fault of ours closes it, too, or it would stop all that come after it for ever."""
    try:
        await run.db.run(lambda c: _judge(c, run, one, reading, kept, nowhere))
    except StoreError:
        raise
    except Exception:
        log.exception("a page of %s could not be judged by a fault of the monitor's own", one.site.name)
        await run.db.run(lambda c: page_store.close_check(c, one.site_id, one.check))


def _judge(
    connection: Connection,
    run: Runtime,
    one: _Open,
    reading: PageReading,
    kept: Validators | None,
    nowhere: Collection[str],
) -> None:
    """Pass the verdict on a page and write it, with the events and what the page taught."""
    check, site_id, now = one.check, one.site_id, run.clock()
    page_store.close_check(connection, site_id, check)
    page = page_store.known_pages(connection, site_id, [check.page_id]).get(check.page_id)
    if page is None:
        return
    moment, rules = datetime.fromtimestamp(now, UTC), run.rules(one.site)
    if check.why == "missing":
        listed = page_store.listed_by(connection, site_id, page.id)
        listed |= set(listing_store.kinds_listing(connection, site_id, page.id))
        changes = judge_missing(check, page, reading, listed, rules, moment, nowhere)
    else:
        memory = page_store.page_memory(connection, site_id, page.id)
        changes, witness = judge_changed(check, page, memory, reading, rules, moment)
        _note_witness(connection, one.asked.document_id, check, witness)
    page_store.apply(connection, site_id, one.asked.document_id, changes, now)
    event_store.add_events(connection, one.site.name, changes.events, run.routes, now)
    if reading.facts is not None and reading.status == 200:
        mine = kept if kept is not None and kept.url == page.url else None  # validators belong to who gave them
        page_store.set_page(
            connection,
            site_id,
            page.id,
            etag=mine.etag if mine else None,
            last_modified=mine.last_modified if mine else None,
            fingerprint=reading.facts.fingerprint or None,
            checked_at=now,
        )


def _note_witness(connection: Connection, document_id: int, check: Check, witness: Witness) -> None:
    """The page has spoken for or against a file's lastmods: that is what their trust is made of."""
    if witness == "silent" or check.detail.get("fields") != ["lastmod"]:
        return
    document = source_store.document_by_id(connection, document_id)
    state = json.loads(document.state) if document.state else {}
    trust = state.setdefault("trust", {})
    trust[witness] = int(trust.get(witness, 0)) + 1
    source_store.set_document(connection, document_id, state=json.dumps(state))


async def _ask(run: Runtime, policy: FetchPolicy, page: KnownPage, check: Check, memory: PageMemory) -> _Answer:
    """Fetch a page and read it."""
    sent = None
    if check.why == "changed" and memory.fingerprint is not None and (memory.etag or memory.last_modified):
        sent = Validators(page.url, memory.etag, memory.last_modified)
    reply: Reply = await run.fetcher.get(page.url, validators=sent, accept=ACCEPT, policy=policy, max_bytes=5 << 20)
    status, final_url = reply.status, reply.final_url or None
    if status is None or status == 429 or status >= 500:
        return _Answer(PageReading(status, final_url, error=describe(reply), again=True), None, reply)
    facts = None
    if status == 200 and reply.complete and reply.failure is None:  # of a part nothing follows
        try:
            facts = await run.pool.page(reply.body, reply.final_url or page.url, reply.headers.get("content-type"))
        except ParseCrash as error:
            return _Answer(PageReading(status, final_url, None, str(error)), None, reply)
    permanent = bool(reply.redirects) and all(step.status in (301, 308) for step in reply.redirects)
    return _Answer(PageReading(status, final_url, facts, permanent=permanent), renew(sent, reply), reply)
