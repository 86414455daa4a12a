"""The simulated newsroom speaks HTTP to the letter, fails as told, and stops and starts cleanly."""

import asyncio
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime

import aiohttp
import httpx
import pytest

from monitor.newsroom import Newsroom, serve_in_thread
from monitor.newsroom_http import Trouble, accepts_gzip
from tests.test_newsroom import LISTINGS, START, body_of, feed_links, sitemap_urls, xml


@pytest.fixture
def room() -> Iterator[Newsroom]:
    with serve_in_thread(Newsroom(start=START)) as served:
        yield served


@pytest.fixture
def client(room: Newsroom) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=room.url, timeout=10) as opened:
        yield opened


@pytest.mark.parametrize("path", [*LISTINGS, "/robots.txt", "/sitemaps/pages-1.xml.gz", "article"])
def test_validators_are_honoured(client: httpx.Client, room: Newsroom, path: str) -> None:
    path = room.articles[0].path if path == "article" else path
    fresh = client.get(path)
    tag, modified = fresh.headers["etag"], fresh.headers["last-modified"]
    assert re.fullmatch(r'"[!-~]+"', tag)
    assert parsedate_to_datetime(modified) <= parsedate_to_datetime(fresh.headers["date"])
    earlier = format_datetime(parsedate_to_datetime(modified) - timedelta(seconds=1), usegmt=True)
    for headers, status in [
        ({"If-None-Match": tag}, 304),
        ({"If-None-Match": f'"other", W/{tag}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"other"'}, 200),
        ({"If-Modified-Since": modified}, 304),
        ({"If-Modified-Since": earlier}, 200),
        ({"If-Modified-Since": "soon"}, 200),
        ({"If-None-Match": '"other"', "If-Modified-Since": modified}, 200),
        ({"If-None-Match": tag, "If-Modified-Since": earlier}, 304),
    ]:
        answer = client.get(path, headers=headers)
        assert answer.status_code == status, headers
        assert answer.content == (b"" if status == 304 else fresh.content)
        assert (answer.headers["etag"], answer.headers["last-modified"]) == (tag, modified)


def test_a_change_renews_both_validators_even_within_a_second(client: httpx.Client, room: Newsroom) -> None:
    before = client.get("/feed.xml").headers
    room.publish()
    after = client.get("/feed.xml", headers={"If-Modified-Since": before["last-modified"]})
    assert after.status_code == 200
    assert after.headers["etag"] != before["etag"]
    assert parsedate_to_datetime(after.headers["last-modified"]) > parsedate_to_datetime(before["last-modified"])
    room.advance(3600)
    assert client.get("/feed.xml", headers={"If-None-Match": after.headers["etag"]}).status_code == 304


def test_gzip_only_to_who_accepts_it(client: httpx.Client) -> None:
    plain = client.get("/feed.xml", headers={"Accept-Encoding": "identity"})
    zipped = client.get("/feed.xml", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.content == plain.content
    assert zipped.headers["etag"] != plain.headers["etag"]
    assert plain.headers["vary"] == zipped.headers["vary"] == "Accept-Encoding"
    child = client.get("/sitemaps/pages-1.xml.gz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in child.headers
    assert child.content.startswith(b"\x1f\x8b")


@pytest.mark.parametrize(
    ("field", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("br, GZIP ;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity", False),
        ("x-gzip", False),
    ],
)
def test_accept_encoding(field: str, accepted: bool) -> None:
    assert accepts_gzip(field) is accepted


def test_head_and_other_methods(client: httpx.Client) -> None:
    got, head = client.get("/feed.xml"), client.head("/feed.xml")
    assert head.status_code == 200
    assert head.content == b""
    assert {**head.headers, "date": ""} == {**got.headers, "date": ""}
    assert client.head("/feed.xml", headers={"If-None-Match": got.headers["etag"]}).status_code == 304
    assert client.post("/feed.xml").status_code == 405
    assert client.get("/feeds/weather.xml").status_code == 404
    assert client.get("/sitemaps/pages-4.xml.gz").status_code == 404


def test_requests_are_recorded(client: httpx.Client, room: Newsroom) -> None:
    tag = client.get("/feed.xml").headers["etag"]
    count = len(room.requests)
    client.get("/feed.xml?a=1", headers={"If-None-Match": tag, "User-Agent": "probe"})
    client.head("/none")
    first, second = room.requests_since(count)
    assert (first.method, first.path, first.status) == ("GET", "/feed.xml?a=1", 304)
    assert first.headers["if-none-match"] == tag
    assert first.headers["user-agent"] == "probe"
    assert (second.method, second.path, second.status) == ("HEAD", "/none", 404)
    assert "if-none-match" not in second.headers
    assert first.at_monotonic <= second.at_monotonic


def test_concurrency_is_counted() -> None:
    async def visit() -> tuple[int, int]:
        async with Newsroom(start=START) as room, aiohttp.ClientSession(room.url) as session:
            for _ in range(3):
                await (await session.get("feed.xml")).read()
            alone = room.max_concurrency
            room.fail("/feed.xml", "hang")
            waiting = [asyncio.create_task(session.get("feed.xml")) for _ in range(7)]
            while len(room.requests) < 10:
                await asyncio.sleep(0)
            room.mend("/feed.xml")
            for answer in await asyncio.gather(*waiting):
                assert answer.status == 200
                answer.release()
            return alone, room.max_concurrency

    assert asyncio.run(visit()) == (1, 7)


# Failures


def test_statuses_and_false_successes(client: httpx.Client, room: Newsroom) -> None:
    room.fail("/feed.xml", 503, retry_after=120)
    answer = client.get("/feed.xml")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "120")
    room.fail(f"{room.url}feed.xml")
    answer = client.get("/feed.xml")
    assert answer.status_code == 500
    assert "retry-after" not in answer.headers
    room.fail("/feed.xml", "html")
    answer = client.get("/feed.xml")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.text.startswith("<!doctype html>")
    room.fail("/feed.xml", "empty")
    answer = client.get("/feed.xml")
    assert (answer.status_code, answer.content) == (200, b"")
    room.mend("/feed.xml")
    assert len(feed_links(client)) == room.window
    room.mend("/feed.xml")


def test_a_failing_path_answers_no_304(client: httpx.Client, room: Newsroom) -> None:
    tag = client.get("/robots.txt").headers["etag"]
    room.fail("/robots.txt", "empty")
    assert client.get("/robots.txt", headers={"If-None-Match": tag}).status_code == 200
    room.fail("/robots.txt", 500)
    assert client.get("/robots.txt", headers={"If-None-Match": tag}).status_code == 500


def test_broken_transfers(client: httpx.Client, room: Newsroom) -> None:
    whole = client.get("/sitemaps/pages-1.xml.gz")
    room.fail("/sitemaps/pages-1.xml.gz", "truncate")
    received: list[bytes] = []
    with client.stream("GET", "/sitemaps/pages-1.xml.gz") as answer:
        assert answer.headers["content-length"] == whole.headers["content-length"]
        assert answer.headers["etag"] == whole.headers["etag"]
        with pytest.raises(httpx.RemoteProtocolError):
            received.extend(chunk for chunk in answer.iter_raw())
    assert b"".join(received) == whole.content[: len(whole.content) // 2]
    room.fail("/feed.xml", "reset")
    with pytest.raises(httpx.ReadError):
        client.get("/feed.xml")
    assert room.requests[-1].path == "/feed.xml"
    assert room.requests[-1].status is None
    assert client.get("/feed.json").status_code == 200


def test_hang_ends_with_mend(client: httpx.Client, room: Newsroom) -> None:
    room.fail("/feed.xml", "hang")
    with pytest.raises(httpx.ReadTimeout):
        client.get("/feed.xml", timeout=0.2)
    found: list[int] = []
    count = len(room.requests)
    waiting = threading.Thread(target=lambda: found.append(httpx.get(f"{room.url}feed.xml", timeout=10).status_code))
    waiting.start()
    while len(room.requests) == count:
        assert client.get("/robots.txt").status_code == 200
        count += 1
    room.mend("/feed.xml")
    waiting.join()
    assert found == [200]


def test_drip_gives_bytes_one_by_one_until_mended(client: httpx.Client, room: Newsroom) -> None:
    whole = client.get("/robots.txt").content
    room.fail("/robots.txt", "drip")
    received = []
    with client.stream("GET", "/robots.txt") as answer:
        for chunk in answer.iter_raw():
            received.append(chunk)
            room.mend("/robots.txt")
    assert received[0] == whole[:1]
    assert b"".join(received) == whole


@pytest.mark.parametrize("trouble", ["hang", "drip"])
def test_stopping_does_not_wait_for_a_stuck_answer(trouble: Trouble) -> None:
    async def visit() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:
            async with Newsroom(start=START, old_pages=300, window=300) as room:
                room.fail("/feed.xml", trouble)
                request = asyncio.create_task(session.get(f"{room.url}feed.xml", headers={"Accept-Encoding": ""}))
                while not room.requests:
                    await asyncio.sleep(0)
            # Stopping ended the trouble: what was asked is answered, or the connection is closed.
            try:
                answer = await request
                await answer.read()
            except aiohttp.ClientError:
                pass

    asyncio.run(visit())


# Life


def test_site_comes_back_on_its_port(room: Newsroom) -> None:
    async def visit() -> tuple[str, str]:
        again = Newsroom(start=START)
        async with again:
            first = again.articles[0].url
        with pytest.raises(httpx.ConnectError):
            await asyncio.to_thread(httpx.get, first)
        async with again, aiohttp.ClientSession() as session, session.get(first) as answer:
            assert answer.status == 200
            return first, again.articles[0].url

    first, second = asyncio.run(visit())
    assert first == second
    assert first.startswith("http://127.0.0.1:")


def test_a_start_that_fails_is_raised_in_the_calling_thread(room: Newsroom) -> None:
    blocked = Newsroom(start=START)
    blocked._port = int(room.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), serve_in_thread(blocked):
        pass


def test_changes_from_many_threads_lose_nothing(client: httpx.Client, room: Newsroom) -> None:
    def work() -> None:
        for _ in range(25):
            room.edit(room.publish(), title="Edited")
            room.advance(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        xml(body_of(client, "/feed.xml"))
    for thread in threads:
        thread.join()
    assert len(room.articles) == 135
    assert room.now == START + timedelta(seconds=100)
    assert sitemap_urls(client) == {article.url for article in room.articles}
    assert sum(article.title == "Edited" for article in room.articles) == 100
