"""One poll of a sitemap tree: every file fetched or confirmed, each committed by itself, the whole judged at the end.

A file's rows are committed as it is read: new pages are told at once, rows that are gone are only marked. What makes a
page missing is decided when the tree is through, and only if every file of it was read or confirmed unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from monitor.core.absences import judge_absences
from monitor.core.health import Health, Outcome, after_poll
from monitor.core.listing import is_suspect
from monitor.core.reconcile import PARTIALS_FOR_BASELINE, DocumentMemory, Draft
from monitor.cross_submit import admit_hosts
from monitor.model import SourceKind
from monitor.poll_values import GONE_RECHECK, baseline
from monitor.runtime import Runtime
from monitor.store import events as event_store
from monitor.store import listings as listing_store
from monitor.store import pages as page_store
from monitor.store import sources as source_store
from monitor.store.absences import find_absences, retire_unlisted
from monitor.store.sources import DocumentRow, SourceRow
from monitor.tree_file import read_file
from monitor.tree_walk import Walk, note_honesty
from monitor.wake_siblings import settle_siblings

FILES_AT_ONCE = 4
"""Files of one tree in hand at a time: bounds memory; the host's own limit still holds."""


async def poll_tree(run: Runtime, source: SourceRow, *, everything: bool = False) -> Outcome:
    """Read a sitemap root and all it leads to, and commit what it says; returns how it went.

    `everything` reads cold files, too, whose turn it is not (`walk.is_cold`).
    """
    site = run.sites[source.site]
    confirm = run.rules(site, source.known_as).confirm_missing

    def load(connection: Connection) -> tuple[dict[str, DocumentRow], set[str], bool]:
        documents = source_store.documents(connection, source.id)
        pending = page_store.has_pending(connection, source.id, confirm) or any(
            d.unlisted and d.absent < confirm for d in documents.values()
        )
        return documents, source_store.roots(connection, source.site_id), pending

    documents, roots, pending = await run.db.run(load)
    full = everything or pending
    elsewhere, quiet = roots - {source.url}, source.passes == 0
    walk = Walk(run, source, site, documents, elsewhere, quiet, full, everything, started=run.clock())
    walk.seen.add(source.url)
    await _walk(walk, [(source.url, None)])
    if walk.cold and walk.dropped:
        # A page that one file dropped may have moved to any other: now every file is asked.
        cold, walk.cold, walk.full = walk.cold, [], True
        await _walk(walk, cold, depth=1)
    return await _finish(walk)


async def _walk(walk: Walk, level: list[tuple[str, str | None]], depth: int = 0) -> None:
    """Read the files of a level, and what they lead to."""
    settings = walk.site.source_settings(walk.source.url).sitemap
    while level:
        gate = asyncio.Semaphore(FILES_AT_ONCE)
        # One that fails for a fault of ours takes the others along: none goes on behind the poll's back.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_guarded(gate, walk, url, parent)) for url, parent in level]
        depth += 1
        nexts: list[tuple[str, str | None]] = []
        for (parent, _), task in zip(level, tasks, strict=True):
            for child in task.result():
                if child in walk.seen or child in walk.elsewhere:
                    continue
                walk.seen.add(child)
                if depth > settings.max_depth:
                    walk.fail(child, f"deeper than max_depth {settings.max_depth}, not read")
                elif len(walk.seen) > settings.max_files:
                    walk.fail(child, f"more than max_files {settings.max_files}, not read")
                else:
                    nexts.append((child, parent))
        level = nexts


async def _guarded(gate: asyncio.Semaphore, walk: Walk, url: str, parent: str | None) -> Sequence[str]:
    async with gate:
        return await read_file(walk, url, parent)


def _outcome(walk: Walk, root: Outcome) -> Outcome:
    """What a pass came to whose root could be read."""
    if walk.failed:
        more = f" (and {len(walk.failed) - 1} more)" if len(walk.failed) > 1 else ""
        return Outcome("partial", root.status, walk.failed[0] + more, root.moved_to)
    return Outcome("modified" if walk.modified else "unchanged", root.status, None, root.moved_to)


async def _finish(walk: Walk) -> Outcome:
    """Judge the whole: baseline, absences, health, the next poll."""
    run, source = walk.run, walk.source
    assert walk.root is not None
    assert walk.root_outcome is not None
    now = run.clock()
    root = walk.root_outcome
    readable = root.result in ("modified", "unchanged", "partial")
    outcome = _outcome(walk, root) if readable else root

    def commit(connection: Connection) -> tuple[Outcome, bool]:
        drafts: list[Draft] = []
        result = outcome
        # A tree that has a dead file for ever would otherwise never alert.
        based = not walk.failed or source.passes + 1 >= PARTIALS_FOR_BASELINE
        doubt = None
        if not walk.failed and not walk.cold:
            doubt = _judge_tree(connection, walk, now)
            if doubt:
                result = Outcome("partial", root.status, doubt, root.moved_to)
        if based and readable and not doubt and source.baseline_at is None:
            rows = listing_store.rows_listed(connection, walk.visited)
            drafts += baseline(run, connection, source, rows, walk.files, now - walk.started, now)
        health, more = after_poll(
            source.health(),
            result,
            site=source.site,
            kind=source.kind,
            url=source.url,
            now=now,
        )
        drafts += more
        if readable:
            source_store.set_source(
                connection, source.id, passes=source.passes + 1, most_new=max(source.most_new, walk.new)
            )
        note_honesty(connection, walk)
        _settle_kinds(connection, walk, now)
        event_store.add_events(connection, source.site, drafts, run.routes, now)
        connection.execute(source_store.SOURCE_POLLED, _source_values(walk, result, health, now))
        if readable:
            settle_siblings(run, connection, source, now, found=walk.fresh > 0)
        return result, bool(drafts)

    result, told = await run.db.run(commit)
    if told:
        run.wake()
    await admit_hosts(run, source, walk.off_host)
    return result


def _judge_tree(connection: Connection, walk: Walk, now: float) -> str | None:
    """Count a complete read of the whole tree; returns why it is doubted, if it is."""
    source = walk.source
    stored: dict[str, Any] = json.loads(source.counts) if source.counts else {"counts": [], "suspect": None}
    rows = listing_store.rows_listed(connection, walk.visited)
    memory = DocumentMemory(source.url, "tree", counts=tuple(stored["counts"]), suspect=stored["suspect"])
    # A lone file was doubted by itself.
    if len(walk.visited) > 1 and is_suspect(rows, memory):
        source_store.set_source(connection, source.id, counts=json.dumps(stored | {"suspect": rows}))
        return f"lists {rows} pages where it had {max(memory.counts)}; waiting for a further read"
    counts = [*memory.counts, rows][-5:]
    source_store.set_source(connection, source.id, counts=json.dumps({"counts": counts, "suspect": None}))
    rules = walk.run.rules(walk.site, source.known_as)
    retire_unlisted(connection, source, walk.documents.values(), set(walk.visited), rules.confirm_missing, now)
    if source.kind == "news_sitemap":
        return None  # what leaves it has aged out
    page_store.count_absences(connection, source.id, rules.confirm_missing)
    changes = judge_absences(find_absences(connection, source, rules.confirm_missing), rules)
    by_url = {d.url: d.id for d in source_store.documents(connection, source.id).values()}
    for check in changes.checks:
        page_store.add_checks(connection, source.site_id, by_url[check.detail["found_in"]["url"]], [check], now)
    return None


def _settle_kinds(connection: Connection, walk: Walk, now: float) -> None:
    """News sitemaps are told apart by content and read more often: a root becomes one, a child gets its own poll."""
    source = walk.source
    if source.kind == "sitemap" and walk.root_kind == "news_sitemap":
        source_store.set_source(connection, source.id, kind="news_sitemap")
        return
    if source.kind != "sitemap":
        return
    files = source_store.documents(connection, source.id).values()
    leaving = [d for d in files if d.kind == "news_sitemap" and d.parent is not None and not d.unlisted]
    if not leaving:
        return
    named: list[tuple[SourceKind, str, str]] = [("news_sitemap", child.url, f"index {source.url}") for child in leaving]
    source_store.sync_sources(connection, source.site_id, named, now, origins="index")
    found = {s.url: s for s in source_store.all_sources(connection) if s.site_id == source.site_id}
    for child in leaving:
        own = found[child.url]
        if child.url in source_store.documents(connection, own.id):
            source_store.set_document(connection, child.id, unlisted=True)  # a source of its own, awake again
            continue
        # The file moves with all that is known of it: its first read as a source of its own is no second baseline.
        source_store.set_document(connection, child.id, source_id=own.id, parent=None)
        source_store.set_source(connection, own.id, passes=1, baseline_at=child.baseline_at, state="ok")
    # What stays is fewer rows by those that left, which is no shrink.
    source_store.set_source(connection, source.id, counts=None)


def _source_values(walk: Walk, outcome: Outcome, health: Health, now: float) -> dict[str, Any]:
    source = walk.source
    assert walk.root is not None
    settings = walk.site.source_settings(source.url).sitemap
    news = source.kind == "news_sitemap" or walk.root_kind == "news_sitemap"
    every, name = (settings.news_every, "news_every") if news else (settings.every, "every")
    wait, reason = every, f"read every {every:.0f} s ({name})"
    if health.state == "gone":
        wait, reason = GONE_RECHECK, "answered 410 Gone; looked at again once a week"
    elif health.failures:
        wait = min(every, 300.0 * 2.0 ** min(health.failures - 1, 16))
        reason = f"failed {health.failures} times in a row; tried again sooner than {name}"
    next_at = now + wait
    if walk.retry_at is not None and walk.retry_at > next_at:
        next_at, reason = walk.retry_at, "the server asked to wait (Retry-After)"
    return {
        "source_id": source.id,
        "state": health.state,
        "failures": health.failures,
        "failing_since_at": health.failing_since_at,
        "moves": health.moves,
        "moved_to": health.moved_to,
        "next_at": next_at,
        "reason": reason,
        "retry_at": walk.retry_at,
        "last_at": now,
        "last_result": outcome.result,
        "last_error": outcome.error if outcome.result not in ("modified", "unchanged") else None,
        "last_status": outcome.status,
        "schedule": source.schedule,
    }
