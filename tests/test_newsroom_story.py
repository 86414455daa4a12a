"""The story that the demo plays: repeatable, complete, and told in readable headlines."""

import re
from random import Random
from typing import get_args

import httpx
import pytest

from monitor.newsroom import Newsroom, serve_in_thread
from monitor.newsroom_story import Action, ActionKind, headline, perform, plan, slug_of
from tests.test_newsroom import START, sitemap_urls


def test_plan_is_a_function_of_its_seed() -> None:
    assert plan(5, 60) == plan(5, 60) != plan(6, 60)
    assert plan(5, 600)[: len(plan(5, 60))] == plan(5, 60)
    assert plan(5, 0) == []
    with pytest.raises(ValueError, match="pace"):
        plan(5, 60, pace=0)


@pytest.mark.parametrize("seed", range(20))
def test_plan_shows_everything_in_order(seed: int) -> None:
    story = plan(seed, 3600, pace=3)
    times = [at for at, _ in story]
    assert times == sorted(times)
    assert times[-1] < 3600
    assert 1000 < len(story) < 1400
    kinds = [action.kind for _, action in story]
    assert kinds[0] == "publish"
    assert set(kinds[:12]) == set(get_args(ActionKind))
    pairs: list[tuple[ActionKind, ActionKind]] = [("withdraw", "restore"), ("fail", "mend")]
    for kind, undo in pairs:
        assert kinds.index(kind) < kinds.index(undo)


def test_story_performs_without_idling_and_repeats() -> None:
    rooms = [Newsroom(start=START), Newsroom(start=START)]
    said: list[list[str]] = [[], []]
    for room, lines in zip(rooms, said, strict=True):
        for _, action in plan(2, 600):
            room.advance(3)
            lines.append(perform(room, action))
    assert said[0] == said[1]
    assert rooms[0].articles == rooms[1].articles
    assert not [line for line in said[0] if line.startswith("nothing")]
    listed = [article.lists for article in rooms[0].articles]
    assert {len(lists) for lists in listed} == {2, 3}
    assert any(article.utm for article in rooms[0].articles)


def test_an_empty_newsroom_has_nothing_to_change() -> None:
    room = Newsroom(old_pages=0, start=START)
    kinds: list[ActionKind] = ["edit", "withdraw", "restore", "mend"]
    for kind in kinds:
        assert perform(room, Action(kind, 0.5)) == f"nothing to {kind}"


def test_a_broken_child_is_mended_by_the_story() -> None:
    room = Newsroom(start=START)
    with serve_in_thread(room), httpx.Client(base_url=room.url) as client:
        whole = sitemap_urls(client)
        assert perform(room, Action("fail", 0.4)) == "broke /sitemaps/pages-2.xml.gz"
        assert client.get("/sitemaps/pages-2.xml.gz").status_code == 500
        assert perform(room, Action("mend", 0.9)) == "mended /sitemaps/pages-2.xml.gz"
        assert sitemap_urls(client) == whole


@pytest.mark.parametrize("section", ["news", "sport", "culture", "weather"])
def test_headlines_are_many_and_clean(section: str) -> None:
    titles = {headline(Random(seed), section) for seed in range(1000)}
    assert len(titles) > 300
    for title in titles:
        assert title == title.strip()
        assert "{" not in title
        assert 15 < len(title) < 110
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug_of(title))
    assert slug_of("!?") == "story"
