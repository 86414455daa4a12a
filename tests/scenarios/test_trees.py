"""Sitemap trees as sites really change them: files that move, split, fail, wait, and pages that move among them."""

from __future__ import annotations

from pathlib import Path

from monitor.core.identity import page_id
from monitor.core.url import page_key
from monitor.report import lookup
from monitor.store import listings as listing_store
from monitor.store import sources as source_store
from tests.scenarios.trees import Site, index, pages, site, urlset

MANY = [f"/p{n}" for n in range(300)]


def two_files(tree: Site) -> None:
    tree.show("/index.xml", index("/a.xml", "/b.xml"))
    tree.show("/a.xml", urlset("/1", "/2", "/3"))
    tree.show("/b.xml", urlset("/4", "/5", "/6"))


def test_a_page_has_a_row_only_if_it_has_a_story(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        assert pages(tree.once()) == []
        assert (tree.count("page"), tree.count("sighting"), tree.count("listing")) == (0, 0, 3)
        tree.show("/a.xml", urlset("/1", "/2", "/3", "/7"))
        assert pages(tree.once()) == [("url.new", "/7")]
        assert (tree.count("page"), tree.count("sighting")) == (1, 1)
        key = page_key(f"{tree.url}/4")
        (found,) = tree.look(lambda c: lookup.page(c, page_id(key), key))
        assert (found["url"], found["announced"], found["first_seen"]) == (key, False, "2026-12-01T15:00:00Z")
        assert [(item["url"], item["last"]) for item in found["listed"]] == [(f"{tree.url}/b.xml", None)]


def test_pages_that_move_between_files_are_no_event_and_missing_when_no_file_has_them(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        tree.once()
        tree.show("/a.xml", urlset("/1", "/2"))
        tree.show("/b.xml", urlset("/3", "/4", "/5", "/6"))
        for _ in range(4):
            assert pages(tree.once()) == []
        assert (tree.count("page"), tree.count("sighting")) == (0, 0)  # moved, and forgotten
        tree.show("/b.xml", urlset("/4", "/5", "/6"))
        assert pages(tree.once()) == []
        assert pages(tree.once()) == [("url.missing", "/3")]
        tree.show("/a.xml", urlset("/1", "/2", "/3"))
        assert pages(tree.once()) == [("url.returned", "/3")]
        assert pages(tree.once()) == []


def test_a_file_that_leaves_the_index_retires_and_its_pages_are_missing_if_no_other_has_them(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        tree.once()
        tree.show("/index.xml", index("/a.xml"))
        tree.show("/a.xml", urlset("/1", "/2", "/3", "/4"))
        assert pages(tree.once()) == []
        assert pages(tree.once()) == [("url.missing", "/5"), ("url.missing", "/6")]
        assert tree.count("listing") == 2
        tree.show("/index.xml", index("/a.xml", "/b.xml"))
        assert pages(tree.once()) == [("url.returned", "/5"), ("url.returned", "/6")]
        for _ in range(3):
            assert pages(tree.once()) == []


def test_a_file_that_is_renamed_makes_no_event(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        tree.once()
        tree.show("/index.xml", index("/a.xml", "/b-2.xml"))
        tree.show("/b-2.xml", urlset("/4", "/5", "/6", "/7"))
        assert pages(tree.once()) == [("url.new", "/7")]
        for _ in range(3):
            assert pages(tree.once()) == []


def test_an_index_that_was_cut_or_absent_at_first_makes_no_archive_news(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        whole = index("/a.xml", "/deep.xml")
        tree.show("/index.xml", whole[: whole.index("</sitemap>") + 10], missing=100)
        tree.show("/a.xml", urlset("/1", "/2"))
        tree.show("/b.xml", urlset(*MANY))
        assert pages(tree.once()) == []
        tree.show("/index.xml", whole)
        assert pages(tree.once()) == []  # deep.xml is a 404
        tree.show("/deep.xml", index("/b.xml"))
        told = tree.once()
        assert pages(told) == []
        assert ("source.baseline", "/index.xml") in told
        tree.show("/b.xml", urlset(*MANY, "/new"))
        assert pages(tree.once()) == [("url.new", "/new")]


def test_a_tree_with_a_dead_file_has_its_baseline_at_the_third_pass(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        del tree.answers["/b.xml"]
        told = [tree.once() for _ in range(4)]
        assert [("source.baseline", "/index.xml") in events for events in told] == [False, False, True, False]
        tree.show("/a.xml", urlset("/1", "/2", "/3", "/7"))
        assert pages(tree.once()) == [("url.new", "/7")]
        tree.show("/a.xml", urlset("/7"))
        for _ in range(4):
            assert pages(tree.once()) == []  # nothing is missing while a file cannot be read


def test_retry_after_of_one_file_holds_for_its_host_and_the_next_pass(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        files = [f"/s{n}.xml" for n in range(30)]
        tree.show("/index.xml", index(*files))
        for path in files:
            tree.show(path, "later", status=429, headers={"retry-after": "7200"})
        tree.once()
        assert sum(tree.asked[path] for path in files) <= 4  # those under way when the first answered
        tree.once(advance=3600.0)
        assert tree.asked == {}
        for path in files:
            tree.show(path, urlset(f"/of{path}"))
        tree.once(advance=3700.0)
        assert sum(tree.asked[path] for path in files) == 30


def test_what_the_configuration_takes_out_or_lets_in_is_no_news(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        tree.show("/index.xml", urlset("/live/1", "/live/2", "/news/1", "/news/2"))
        tree.options["exclude"] = ("/old/**",)
        tree.once()
        tree.options["exclude"] = ("/live/**",)
        for number in range(4):
            more = [f"/x{n}" for n in range(number + 1)]
            tree.show("/index.xml", urlset("/live/1", "/live/2", "/news/1", "/news/2", *more))
            assert pages(tree.once()) == [("url.new", f"/x{number}")]
        tree.options["exclude"] = ()
        tree.show("/index.xml", urlset("/live/1", "/live/2", "/news/1", "/news/2", *more, "/news/3"))
        assert pages(tree.once()) == [("url.new", "/news/3")]
        tree.show("/index.xml", urlset("/live/1", "/live/2", "/news/1", "/news/2", *more, "/news/3", "/live/3"))
        assert pages(tree.once()) == [("url.new", "/live/3")]


def test_a_surge_is_counted_over_the_files_of_a_pass(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        tree.once()
        files = [f"/s{n}.xml" for n in range(4)]
        tree.show("/index.xml", index("/a.xml", "/b.xml", *files))
        for path in files:
            tree.show(path, urlset(*(f"{path}/{n}" for n in range(400))))
        told = tree.once()
        news = [path for kind, path in told if kind == "url.new"]
        assert len(news) == 800
        assert [kind for kind, _path in told if kind.startswith("source.")] == ["source.surge"] * 2
        assert pages(tree.once()) == []


def test_a_feed_tells_nothing_of_pages_that_a_sitemap_had(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        tree.once()
        tree.options["feeds"] = ["/feed.xml"]
        feed = (
            "<rss version='2.0'><channel><title>t</title>{}</channel></rss>",
            "<item><guid>{}</guid><link>{{site}}/{}</link></item>",
        )
        tree.show("/feed.xml", feed[0].format(feed[1].format(1, 1)))
        assert pages(tree.once()) == []
        tree.show("/feed.xml", feed[0].format("".join(feed[1].format(n, n) for n in (9, 4, 1))))
        assert pages(tree.once()) == [("url.new", "/9")]


def test_a_host_that_names_the_sitemap_in_its_robots_txt_is_the_sites(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        tree.proxy, tree.url = tree.url, "http://www.h.example"
        rows = ["/1", "http://news.h.example/2", "http://shop.h.example/3", "http://other.example/4"]

        def listing(*more: str) -> str:
            return urlset(*rows, *more).replace("{site}http", "http")

        tree.show("/index.xml", listing())
        tree.show("http://news.h.example/robots.txt", "Sitemap: http://www.h.example/index.xml")
        tree.show("http://shop.h.example/robots.txt", "Sitemap: http://shop.h.example/sitemap.xml")
        assert pages(tree.once()) == []
        asked = {path for path in tree.asked if path.endswith("robots.txt")}
        assert asked == {"http://news.h.example/robots.txt", "http://shop.h.example/robots.txt"}
        tree.show("/index.xml", listing("http://news.h.example/5", "http://shop.h.example/6"))
        assert pages(tree.once()) == []  # let in just now: what it lists is known from here on
        assert set(tree.asked) == {"/index.xml"}
        tree.show(
            "/index.xml", listing("http://news.h.example/5", "http://news.h.example/7", "http://shop.h.example/6")
        )
        assert pages(tree.once()) == [("url.new", "http://news.h.example/7")]


def test_cold_files_are_asked_in_every_fourth_pass_and_whenever_a_page_may_have_moved(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        two_files(tree)
        for number in range(12):
            tree.show("/a.xml", urlset("/1", "/2", "/3", *(f"/n{n}" for n in range(number))))
            tree.once(everything=False)
        asked = []
        for number in range(12, 20):
            tree.show("/a.xml", urlset("/1", "/2", "/3", *(f"/n{n}" for n in range(number))))
            tree.once(everything=False)
            asked.append(tree.asked["/b.xml"])
        assert asked == [1, 0, 0, 0, 1, 0, 0, 0]
        assert tree.asked["/a.xml"] == 1
        tree.once(everything=True)
        assert tree.asked["/b.xml"] == 1
        tree.show("/a.xml", urlset("/1", "/2", *(f"/n{n}" for n in range(20))))
        tree.show("/b.xml", urlset("/3", "/4", "/5", "/6"))
        for _ in range(4):
            assert {path for kind, path in pages(tree.once(everything=False)) if kind == "url.missing"} == set()
            assert tree.asked["/b.xml"] <= 1


def test_an_index_that_is_honest_spares_its_files_and_one_lie_ends_it(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        files = [f"/s{n}.xml" for n in range(12)]

        def change(number: int, lastmod: str) -> None:
            days[0] = lastmod
            tree.show(files[0], urlset("/of/s0.xml", *(f"/n{n}" for n in range(number))))
            tree.show("/index.xml", index(*zip(files, days, strict=True)))

        def once(**more: float) -> list[tuple[str, str]]:
            return pages(tree.once(everything=False, **more))

        days = ["2026-11-01"] * 12
        for path in files:
            tree.show(path, urlset(f"/of{path}"))
        change(0, "2026-11-01")
        for _ in range(4):
            once()
            assert sum(tree.asked[path] for path in files) == 12  # nothing was announced so far
        for number in range(1, 4):
            change(number, f"2026-11-0{1 + number}")
            assert once() == [("url.new", f"/n{number - 1}")]
        once()
        assert tree.asked == {"/index.xml": 1}
        change(4, "2026-11-09")
        assert once() == [("url.new", "/n3")]
        assert tree.asked == {"/index.xml": 1, "/s0.xml": 1}
        tree.show("/s1.xml", urlset("/of/s1.xml", "/unsaid"))
        assert once() == []
        assert once(advance=86_400.0) == [("url.new", "/unsaid")]  # each is asked once a day
        once()
        assert sum(tree.asked[path] for path in files) == 12
        tree.once(everything=True)
        assert sum(tree.asked[path] for path in files) == 12


def test_what_was_listed_at_a_time(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        tree.show("/index.xml", urlset("/1", "/2", "/3"))
        tree.once()
        first = tree.now
        tree.show("/index.xml", urlset("/2", ("/3", "2026-12-01"), "/4"))
        tree.once()
        second = tree.now
        tree.show("/index.xml", urlset("/4"))
        tree.once()

        def at(moment: float) -> set[str] | None:
            (document,) = tree.look(lambda c: source_store.documents(c, 1)).values()
            lines = tree.look(lambda c: listing_store.lines_at(c, document.id, moment))
            return None if lines is None else {line.removeprefix(tree.url) for line in lines}

        assert at(first - 1) is None
        assert at(first) == at(second - 1) == {"/1\t", "/2\t", "/3\t"}
        assert at(second) == {"/2\t", "/3\t2026-12-01", "/4\t"}
        assert at(tree.now) == {"/4\t"}


def test_a_cold_file_is_asked_at_once_where_its_index_announces_it_and_was_seldom_wrong(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        files = ["/a.xml", "/b.xml"]

        def show(lastmod: str, *urls: str) -> None:
            tree.show("/index.xml", index(("/a.xml", "2026-11-01"), ("/b.xml", lastmod)))
            tree.show("/b.xml", urlset("/1", *urls))

        tree.show("/a.xml", urlset("/2"))
        show("2026-11-01")
        for _ in range(14):
            tree.once(everything=False)
        assert not any(tree.asked[path] for path in files)
        show("2026-11-05", "/3")
        assert pages(tree.once(everything=False)) == [("url.new", "/3")]
        for day in range(6, 9):  # it cries wolf
            show(f"2026-11-0{day}", "/3")
            tree.once(everything=False)
        tree.once(everything=True)
        asked = []
        for day in range(10, 14):
            show(f"2026-11-{day}", "/3")
            tree.once(everything=False)
            asked.append(tree.asked["/b.xml"])
        assert sum(asked) <= 2  # it is not believed any more: only in its own turn
