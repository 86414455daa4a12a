"""Real feeds and sitemaps, version by version as they were captured: what is new is told once, and nothing else."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.corpus import corpus_path, members
from tests.scenarios.account import Account, Steps, account_feed, account_sitemaps, hosts_of, read_locs
from tests.scenarios.replay import Replay, Told, moments, sampled, staged, versions
from tests.scenarios.watch import shared_pool

pytestmark = pytest.mark.slow

MOST = 12
"""Versions of each series; `benchmarks/replay.py` replays them all."""

LARGE = {"sitemap-wavespeed": 5, "sitemap-fotor": 8, "cemantix-sitemap": 4, "feed-economist": 8}
"""Fewer where each version has thousands of rows."""

FEEDS = """anac-atom anac-json anac-rss anthropic-news bbc-education bbc-england bbc-magazines bbc-northern-ireland
    bbc-scotland bbc-technology bbc-wales bbc-world-africa bbc-world-europe bbc-world-middle-east bd24 bonikbarta
    daily-star economist lab-allenai-news lab-cohere-blog lab-mistral-news lab-turing-news lemonde ollama
    openai-research paper-bbc paper-fox paper-gmanews paper-latimes paper-nytimes paper-nzherald paper-philstar
    piasnews theory-report video-cnntv video-foxnewstv video-nationalgeographic video-onenewsnz willison
    windsurf-changelog xainews"""

REKEYED = {
    "feed-anac-atom": "put urn:uuid: before the address that was the id of every entry",
    "feed-piasnews": "gives an article a new id when it finds it again",
    "feed-paper-philstar": "has the headline in id and link, and edits it",
    "zhaoqi-atom": "moved to another host, and later to other paths",
    "feed-lab-cohere-blog": "wrote /blog/blog/ for a while",
    "feed-lab-mistral-news": "ends every link with a slash, one day to the next",
}
"""Feeds whose entries come back under another id on the same link, or with the same headline and date, which makes no
article new."""

SITEMAPS = """sitemap-1games-io sitemap-easemate sitemap-fotor sitemap-heygen sitemap-imagine sitemap-invideo
    sitemap-wavespeed cemantix-sitemap cemantix-news-sitemap zhaoqi-baidusitemap zhaoqi-post-sitemap zhaoqi-sitemap
    zhaoqi-tag-sitemap"""


def play(path: Path, steps: Steps, paths: dict[str, str], feeds: list[str], sitemaps: list[str]) -> list[Told]:
    """Replay a site of these documents; nothing but the stage was asked."""
    hosts = hosts_of(
        url for _at, bodies in steps for name in set(bodies) - set(feeds) for url in read_locs(bodies[name])
    )
    database = path / "monitor.db"
    with staged() as stage:
        told = Replay(stage, database, shared_pool(), paths, feeds, sitemaps, hosts).play(steps)
        with sqlite3.connect(database) as connection:
            asked = [url for (url,) in connection.execute("select url from document")]
        connection.close()
    assert asked
    assert all(url.startswith(stage.url + "/") for url in asked)
    return told


def replay_feed(name: str, path: Path, most: int | None) -> Account:
    """Replay a feed series and account for what was told."""
    steps = sampled(moments(versions(name)), most)
    ending = "json" if name.endswith("json") else "xml"
    return account_feed(name, steps, play(path, steps, {name: f"/feed.{ending}"}, [name], []))


def replay_sitemap(name: str, path: Path, most: int | None) -> Account:
    """Replay the series of one sitemap and account for what was told."""
    steps = sampled(moments(versions(name)), most)
    return account_sitemaps(steps, play(path, steps, {name: f"/{name}.xml"}, [], [name]))


def replay_zhaoqi(path: Path, most: int | None) -> Account:
    """Replay the feeds and the sitemap of one site side by side. Of the index's other children none was captured."""
    feeds = ["zhaoqi-rss2", "zhaoqi-atom"]
    names = [*feeds, "zhaoqi-sitemap", "zhaoqi-post-sitemap", "zhaoqi-tag-sitemap"]
    paths = {name: f"/{name.removeprefix('zhaoqi-')}.xml" for name in names}
    steps = sampled(moments(version for name in names for version in versions(name)), most)
    return account_sitemaps(steps, play(path, steps, paths, feeds, ["zhaoqi-sitemap"]), feeds)


def replay_alaska(path: Path, most: int | None) -> Account:
    """Replay an index and its 175 children side by side; children that were not captured are left out of the index."""
    meta = json.loads(next(body for name, body in members("series/alaska-tree.tar.xz") if name.endswith("meta.json")))
    kept = {url.encode() for url in meta["documents"].values()}

    def captured(block: re.Match[bytes]) -> bytes:
        return block[0] if block[1] in kept else b""

    index = re.compile(rb"\s*<sitemap>\s*<loc>\s*([^<\s]*)\s*</loc>.*?</sitemap>", re.S)
    found = [
        replace(version, body=index.sub(captured, version.body)) if version.document == "index" else version
        for version in versions("alaska-tree")
    ]
    paths = {name: urlsplit(url).path for name, url in meta["documents"].items()}
    steps = sampled(moments(found), most)
    return account_sitemaps(steps, play(path, steps, paths, [], ["index"]))


def test_every_series_of_the_corpus_is_replayed() -> None:
    replayed = (
        {f"feed-{name}" for name in FEEDS.split()}
        | set(SITEMAPS.split())
        | {"alaska-tree", "zhaoqi-rss2", "zhaoqi-atom"}
    )
    assert replayed == {path.name.removesuffix(".tar.xz") for path in (corpus_path() / "series").glob("*.tar.xz")}


@pytest.mark.parametrize("name", [*(f"feed-{name}" for name in FEEDS.split()), "zhaoqi-rss2", "zhaoqi-atom"])
def test_each_guid_of_a_feed_is_told_once_and_no_moved_build_date(tmp_path: Path, name: str) -> None:
    account = replay_feed(name, tmp_path, LARGE.get(name, MOST))
    assert account.faults == [], account
    assert account.new == account.expected
    assert account.changed <= account.edited
    assert bool(account.rekeyed) <= (name in REKEYED), account


@pytest.mark.parametrize("name", SITEMAPS.split())
def test_each_new_url_of_a_sitemap_is_told_once(tmp_path: Path, name: str) -> None:
    account = replay_sitemap(name, tmp_path, LARGE.get(name, MOST))
    assert account.faults == [], account
    assert account.new + account.summed == account.expected


def test_feeds_and_sitemap_of_one_site_tell_each_page_once(tmp_path: Path) -> None:
    account = replay_zhaoqi(tmp_path, 2 * MOST)
    assert account.faults == [], account
    assert account.new == account.expected > 0


def test_a_tree_of_175_files_tells_each_new_url_once(tmp_path: Path) -> None:
    account = replay_alaska(tmp_path, 4)
    assert account.faults == [], account
    assert account.new + account.summed == account.expected > 0
