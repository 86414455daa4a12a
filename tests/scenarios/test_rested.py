"""Sources that are not read any more: they say nothing of what is listed now, and what they said stays known."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.scenarios.plain_site import PlainSite, plain_site
from tests.scenarios.watch import pages

PATHS = [f"/p{n}" for n in range(20)]


@pytest.mark.parametrize("end", ["left the configuration", "gone"])
def test_a_source_that_is_not_read_any_more_holds_no_page_listed(tmp_path: Path, end: str) -> None:
    with plain_site(tmp_path, sitemaps=("/s1.xml", "/s2.xml")) as watch:
        room = cast("PlainSite", watch.room)
        room.urlset("/s1.xml", [*PATHS, "/only"])
        room.urlset("/s2.xml", PATHS)
        room.pages(*PATHS)
        watch.once()
        if end == "gone":
            room.docs["/s1.xml"] = (410, {}, "")
        else:
            watch.site_options["sitemaps"] = (room.url + "/s2.xml",)
        watch.once()
        room.urlset("/s2.xml", [*PATHS[1:], "/only"])
        events = [event for _ in range(3) for event in pages(watch.once())]
        # What the rested one listed is known all the same: not new.
        assert [(e["type"], e["subject"], e["data"]["reason"]) for e in events] == [
            ("url.missing", room.url + "/p0", "removed")
        ]
