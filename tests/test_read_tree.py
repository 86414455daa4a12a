"""`monitor.read_sitemaps` as a library: file after file, in a script of any kind."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from monitor.core.rows import Rows
from monitor.core.sitemap import parse_sitemap
from monitor.fetch import FetchPolicy
from monitor.read_tree import SitemapFile, read_sitemaps
from tests.scenarios.trees import Site, index, site, urlset
from tests.servers import answer, says, serving

POLICY = FetchPolicy("test/1.0", allow_private_networks=True)
LARGE = [(f"/{n}", f"2024-05-{1 + n % 28:02}") for n in range(2_000)]


def read(tree: Site, since: datetime | None = None) -> dict[str, SitemapFile]:
    async def go() -> dict[str, SitemapFile]:
        found = read_sitemaps(f"{tree.url}/index.xml", since, policy=POLICY)
        return {file.url.removeprefix(tree.url): file async for file in found}

    return asyncio.run(go())


def test_a_tree_is_read_file_by_file_and_rows_are_the_parsers(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        tree.show("/index.xml", index("/large.xml", "/small.xml", "/dead.xml", "/index.xml"))
        tree.show("/large.xml", urlset(*LARGE))
        tree.show("/small.xml", urlset("/a", "/b&amp;c"))
        files = read(tree)
        assert next(iter(files)) == "/index.xml"
        assert set(files) == {"/index.xml", "/large.xml", "/small.xml", "/dead.xml"}
        body = urlset(*LARGE).replace("{site}", tree.url).encode()
        parsed = parse_sitemap(body, f"{tree.url}/large.xml")
        rows = files["/large.xml"].rows
        assert isinstance(rows, Rows)
        assert rows == parsed.rows
        assert (rows[0], rows[-1], rows[5:7], len(rows)) == (
            parsed.rows[0],
            parsed.rows[-1],
            parsed.rows[5:7],
            len(parsed.rows),
        )
        assert [row.url.removeprefix(tree.url) for row in files["/small.xml"].rows] == ["/a", "/b&c"]
        dead = files["/dead.xml"]
        assert (dead.status, dead.complete, len(dead.rows)) == (404, False, 0)
        assert all(file.parent == f"{tree.url}/index.xml" for path, file in files.items() if path != "/index.xml")


def test_since_leaves_out_what_is_dated_earlier(tmp_path: Path) -> None:
    with site(tmp_path) as tree:
        tree.show("/index.xml", index(("/old.xml", "2020-01-01"), ("/large.xml", "2024-06-01")))
        tree.show("/large.xml", urlset(*LARGE, "/undated"))
        files = read(tree, datetime(2024, 5, 28, tzinfo=UTC))
        assert set(files) == {"/index.xml", "/large.xml"}
        assert len(files["/large.xml"].rows) == 1 + sum(date == "2024-05-28" for _path, date in LARGE)


def test_a_cut_list_gives_no_half_address() -> None:
    lines = "\n".join(f"https://h.example/{n}" for n in range(5_000)).encode()
    cut = gzip.compress(lines)[:-2_000]

    async def go() -> list[SitemapFile]:
        async with serving(says(answer("200 OK", cut))) as server:
            return [file async for file in read_sitemaps(server.url("/list.txt.gz"), policy=POLICY)]

    (file,) = asyncio.run(go())
    assert not file.complete
    assert 0 < len(file.rows) < 5_000
    assert [row.url for row in file.rows] == lines.decode().split("\n")[: len(file.rows)]


SCRIPT = """
import asyncio, monitor
from monitor.fetch import FetchPolicy

print("started")
async def go():
    policy = FetchPolicy("test/1.0", allow_private_networks=True)
    print(sum([len(file.rows) async for file in monitor.read_sitemaps({url!r}, policy=policy)]))
asyncio.run(go())
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """Worker processes must not import the program that started them."""
    with site(tmp_path) as tree:
        tree.show("/index.xml", urlset(*LARGE))
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.format(url=f"{tree.url}/index.xml"))
        run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
        done = run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
        assert (done.stdout, done.stderr) == ("started\n2000\n", "")
