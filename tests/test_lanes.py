"""How many polls of a host may be under way, beside those of others."""

from __future__ import annotations

from dataclasses import replace

from monitor.config import Concurrency, Settings, Site, minimal
from monitor.lanes import Lanes, lane_of, width


def site(per_host: int) -> Site:
    [made] = minimal(["https://a.example/"], settings=Settings(concurrency=Concurrency(per_host=per_host))).sites
    return made


def test_a_host_gets_what_it_can_take_on_and_more_only_of_the_first_half_of_the_places() -> None:
    slow, lanes = site(2), Lanes([], 20)
    assert sum(lanes.take(slow, "feed", f"https://slow.example/{n}") for n in range(100)) == 20
    assert sum(lanes.take(slow, "sitemap", f"https://SLOW.example/{n}") for n in range(100)) == 4
    assert sum(lanes.take(slow, "feed", f"https://slow.example:8443/{n}") for n in range(100)) == 4
    full = Lanes([lane_of("feed", "https://slow.example/")] * 20, 20)
    assert not full.take(slow, "feed", "https://slow.example/x")
    assert full.take(slow, "feed", "https://fast.example/x")


def test_the_width_of_a_lane_is_a_matter_of_the_source_and_less_than_all() -> None:
    one = site(3)
    url = "https://a.example/feed"
    assert width(one, url, 100) == 6
    assert width(one, url, 4) == 4
    own = replace(one.settings, concurrency=Concurrency(per_host=1))
    assert width(replace(one, overrides=((url, own),)), url, 100) == 2
