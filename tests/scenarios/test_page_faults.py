"""Pages that cannot be asked: what one of them costs, and whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monitor.poll_page import RobotsCache, check_pages
from monitor.runtime import Runtime
from tests.scenarios.plain_site import PlainSite, plain_site
from tests.scenarios.watch import Watch, pages

PATHS = [f"/p{n}" for n in range(30)]


@contextmanager
def listed(path: Path, **site: Any) -> Iterator[tuple[Watch, PlainSite]]:
    """A site whose sitemap lists `PATHS`, all alive, and whose feed lists nothing yet."""
    with plain_site(path, sitemaps=("/s.xml",), **site) as watch:
        room = cast("PlainSite", watch.room)
        room.urlset("/s.xml", PATHS)
        room.pages(*PATHS)
        yield watch, room


def test_a_url_that_no_parser_agrees_on_stops_nobody(tmp_path: Path) -> None:
    with listed(tmp_path) as (watch, room):
        odd = room.url.replace("http://", "http://a[b@") + "/odd"
        room.urlset("/s.xml", PATHS, more=f"<url><loc>{odd}</loc></url>")
        watch.once()
        room.urlset("/s.xml", PATHS[1:])
        events = pages(watch.once()) + pages(watch.once())
        assert sorted(watch.urls(events, "url.missing")) == sorted([room.url + "/p0", odd])
        assert pages(watch.once()) == []


@pytest.mark.parametrize("where", ["_ask", "judge_missing"])
def test_a_fault_of_ours_costs_one_check(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import monitor.poll_page

    real, calls = getattr(monitor.poll_page, where), []

    def faulty(*args: Any, **more: Any) -> Any:
        calls.append(where)
        if len(calls) == 1:
            raise RuntimeError("a fault")
        return real(*args, **more)

    monkeypatch.setattr(monitor.poll_page, where, faulty)
    with listed(tmp_path) as (watch, room):
        watch.once()
        room.urlset("/s.xml", PATHS[2:])
        events = [event for _ in range(4) for event in pages(watch.once())]
        assert sorted(watch.urls(events, "url.missing")) == [room.url + "/p0", room.url + "/p1"]


def test_a_site_that_leaves_the_configuration_takes_its_checks_along() -> None:
    run = cast("Runtime", SimpleNamespace(sites={}, rows={}))
    assert asyncio.run(check_pages(run, RobotsCache(run), "left")) == 0
