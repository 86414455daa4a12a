"""What ought to be told of captured versions, by readers that share no code with the monitor; and what was."""

from __future__ import annotations

import html
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import SequenceMatcher
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import feedparser
from lxml import etree

from tests.scenarios.replay import Told

_LOC = re.compile(rb"<loc>\s*(.*?)\s*</loc>", re.S)
_ROW = re.compile(rb"<url>(.*?)</url>", re.S)
_TAG = re.compile(r"<[^>]*>")
_MEDIA = "{http://search.yahoo.com/mrss/}"


@dataclass(frozen=True, slots=True)
class Item:
    """An entry as an independent reader sees it. `text` is what a reader reads, captions too, white space folded."""

    id: str
    link: str
    title: str
    text: str
    date: datetime | None = None


def folded(text: str) -> str:
    """`text` without markup and references, each run of white space one space."""
    return " ".join(html.unescape(_TAG.sub(" ", html.unescape(text))).split())


def read_items(body: bytes) -> list[Item]:
    """The entries of a feed, read as plain XML or JSON; by feedparser alone where the XML is not well formed."""
    if body.lstrip()[:1] in (b"{", b"["):
        feed = json.loads(body)
        return [_json_item(item) for item in feed.get("items", ())] if isinstance(feed, dict) else []
    try:
        root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except etree.XMLSyntaxError:
        found = feedparser.parse(io.BytesIO(body), sanitize_html=False, resolve_relative_uris=False)
        return [_feedparser_item(entry) for entry in found.entries] if found.get("version") else []
    return [_xml_item(element) for element in root.iter("{*}item", "{*}entry")]


def read_date(text: str) -> datetime | None:
    """A date as RFC 822 or RFC 3339 write it; None for any other text."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text.strip())
        except ValueError:
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def _item(guid: str, link: str, title: str, bodies: Iterable[str], date: str = "") -> Item:
    guid, link = html.unescape(guid.strip()), html.unescape(link.strip())  # some escape them twice
    return Item(guid or link or folded(title), link, folded(title), folded(" ".join(bodies)), read_date(date))


def _json_item(item: dict[str, Any]) -> Item:
    body = item.get("content_html") or item.get("content_text") or ""
    return _item(str(item.get("id") or ""), item.get("url") or "", item.get("title") or "", [body])


def _feedparser_item(entry: Any) -> Item:
    bodies = [entry.get("summary") or "", *(part.get("value") or "" for part in entry.get("content") or ())]
    return _item(entry.get("id") or "", entry.get("link") or "", entry.get("title") or "", bodies)


def _xml_item(element: Any) -> Item:
    texts: dict[str, str] = {}
    for child in element.iterchildren("{*}*"):
        name = child.tag.rpartition("}")[2]
        if name in texts or child.tag.startswith(_MEDIA):
            continue
        if name == "link" and child.get("href") and child.get("rel", "alternate") != "alternate":
            continue
        texts[name] = (child.get("href") or "") if child.get("href") else "".join(child.itertext())
    bodies = [texts.get(name, "") for name in ("description", "summary", "encoded", "content")]
    date = next((texts[name] for name in ("pubDate", "published", "date", "updated") if name in texts), "")
    bodies += ["".join(caption.itertext()) for caption in element.iter(_MEDIA + "description")]
    return _item(
        texts.get("guid") or texts.get("id") or "", texts.get("link", ""), texts.get("title", ""), bodies, date
    )


def read_locs(body: bytes) -> list[str]:
    """The URLs that a urlset lists, in its order, by regular expressions alone; a bare host is its root."""
    urls = [html.unescape(m[1].decode()) for row in _ROW.findall(body) if (m := _LOC.search(row))]
    return [rooted(url) for url in urls]


def rooted(url: str) -> str:
    """`url`, with its root where it is a bare host."""
    return url + "/" if url.count("/") == 2 else url


def hosts_of(urls: Iterable[str]) -> frozenset[str]:
    """The hosts of URLs."""
    return frozenset(host for url in urls if (host := urlsplit(url).hostname))


@dataclass(slots=True)
class Account:
    """Figures of one replay, and every fault found: a sentence each.

    `rekeyed` counts entries that came under another id, on a link already known or as `former` tells, and so were
    rightly not told new;
    `summed` URLs that were told of in one `source.surge`; `edited` what the independent reader holds for changed.
    """

    versions: int = 0
    expected: int = 0
    new: int = 0
    summed: int = 0
    rekeyed: int = 0
    edited: int = 0
    changed: int = 0
    missing: int = 0
    returned: int = 0
    failed_reads: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        names = ("versions", "failed_reads", "expected", "new", "summed", "rekeyed", "edited", "changed", "missing")
        return ", ".join(f"{getattr(self, name)} {name}" for name in (*names, "returned"))


Steps = Sequence[tuple[datetime, Mapping[str, bytes]]]


def account_feed(name: str, steps: Steps, told: Sequence[Told]) -> Account:
    """Hold what was told of a feed's versions against the versions themselves."""
    account = Account(versions=len(steps))
    known: dict[str, Item] = {}
    by_link: dict[str, Item] = {}
    reads: list[list[Item]] = []
    watching = False
    for (at, bodies), now in zip(steps, told, strict=True):
        items = read_items(bodies[name])
        account.failed_reads += bool(now.problems)
        if items and now.problems and "read in part" not in now.problems[0]:
            account.faults.append(f"{at}: {len(items)} entries, but {now.problems[0]}")
        new = Counter(html.unescape(event["data"]["entry"]["id"]) for event in now.of("url.new"))
        account.new += new.total()
        if watching:
            for item in {item.id: item for item in items if item.id not in known}.values():
                renamed = former(item, reads[-1] if reads else (), items)
                _fresh(account, at, item, new.pop(item.id, 0), item.link in by_link or renamed is not None)
                if renamed is not None:
                    by_link.setdefault(item.link, renamed)
        account.faults += [f"{at}: {count} url.new of {key}, which is not new" for key, count in new.items()]
        _edits(account, at, items, known, by_link, now)
        if items:
            reads.append(items)
        for event in now.of("url.missing"):
            account.missing += 1
            if not _withdrawn(event["data"]["url"], reads):
                account.faults.append(f"{at}: url.missing of {event['subject']}, which left by age or is listed")
        account.returned += len(now.of("url.returned"))
        watching = watching or bool(now.of("source.baseline"))
        for item in items:
            known[item.id] = by_link[item.link] = item
    return account


def former(item: Item, before: Sequence[Item], items: Sequence[Item]) -> Item | None:
    """The entry of the read before that `item` of this one is, under another id and link: the one of its date that is
    shown no more, and of its title; else the only one of its date, if the title is much the same."""
    here = {other.id for other in items}
    left = [other for other in before if other.id not in here and item.date and other.date == item.date]
    same = [other for other in left if other.title == item.title]
    if not same and len(left) == 1 and SequenceMatcher(None, left[0].title, item.title).ratio() > 0.6:
        same = left
    return same[0] if len(same) == 1 else None


def _fresh(account: Account, at: datetime, item: Item, count: int, known_before: bool) -> None:
    if count == 0 and known_before:
        account.rekeyed += 1
        return
    account.expected += 1
    if count != 1:
        account.faults.append(f"{at}: {count} url.new of {item.id}, which is new")


def _edits(
    account: Account,
    at: datetime,
    items: Sequence[Item],
    known: Mapping[str, Item],
    by_link: Mapping[str, Item],
    now: Told,
) -> None:
    """A change told is one that a reader sees."""
    edited = {}
    for item in items:
        before = known.get(item.id) or by_link.get(item.link)
        if before is not None and (before.title, before.text) != (item.title, item.text):
            edited[item.id] = item
    account.edited += len(edited)
    changed = Counter(html.unescape(event["data"]["entry"]["id"]) for event in now.of("url.changed"))
    account.changed += changed.total()
    for key, count in changed.items():
        if count != 1 or key not in edited:
            account.faults.append(f"{at}: {count} url.changed of {key}, which {'is edited once' * (key in edited)}")


def _withdrawn(url: str, reads: Sequence[Sequence[Item]]) -> bool:
    """Whether the last two reads lack `url` while two older entries of its host stay (confirm_missing is two)."""
    last = next((item for items in reversed(reads) for item in items if item.link == url), None)
    if last is None or last.date is None or any(item.link == url for items in reads[-2:] for item in items):
        return False
    before = {item.id for items in reads[:-2] for item in items}
    return all(
        sum(
            1
            for item in items
            if item.id in before and hosts_of([item.link]) == hosts_of([url]) and item.date and item.date < last.date
        )
        >= 2
        for items in reads[-2:]
    )


def account_sitemaps(steps: Steps, told: Sequence[Told], feeds: Sequence[str] = ()) -> Account:
    """Hold what was told of a site's sitemaps (and feeds) against all URLs that they list together.

    An index lists no pages. A page listed by several documents is one page.
    """
    account = Account(versions=len(steps))
    listed: dict[str, list[str]] = {}
    entries: dict[str, list[Item]] = {}
    seen: set[str] = set()
    before: set[str] = set()
    missing: set[str] = set()
    watching = False
    for (at, bodies), now in zip(steps, told, strict=True):
        for name, body in bodies.items():
            if name in feeds:
                items = read_items(body)
                # A page of an entry that is known under another address is none that is new.
                seen |= {item.link for item in items if former(item, entries.get(name, ()), items)}
                entries[name], listed[name] = items, [item.link for item in items]
            else:
                listed[name] = read_locs(body)
        here = {url for urls in listed.values() for url in urls}
        account.failed_reads += bool(now.problems)
        _new_urls(account, at, here - seen if watching else set(), now)
        for event in now.of("url.missing"):
            account.missing += 1
            url = rooted(event["subject"])
            if url in here | before | missing:
                account.faults.append(f"{at}: url.missing of {url}, which is listed, was, or is told")
            missing.add(url)
        for event in now.of("url.returned"):
            account.returned += 1
            if event["subject"] not in here & missing:
                account.faults.append(
                    f"{at}: url.returned of {event['subject']}, which is not listed or was not missing"
                )
            missing.discard(event["subject"])
        account.faults += [f"{at}: {url} is listed again, and no url.returned told" for url in missing & here]
        watching = watching or bool(now.of("source.baseline"))
        seen |= here
        before = here
    return account


def _new_urls(account: Account, at: datetime, fresh: set[str], now: Told) -> None:
    new = Counter(rooted(event["subject"]) for event in now.of("url.new"))
    summed = sum(event["data"]["count"] for event in now.of("source.surge"))
    account.expected += len(fresh)
    account.new += new.total()
    account.summed += summed
    if summed:
        # The surge of one file tells its URLs by their number; those of other files are told one by one.
        if new.total() + summed != len(fresh) or not set(new) <= fresh:
            account.faults.append(f"{at}: {new.total()} url.new and a surge of {summed} for {len(fresh)} new URLs")
        return
    account.faults += [f"{at}: {new[url]} url.new of {url}, which is new" for url in fresh if new[url] != 1]
    account.faults += [f"{at}: url.new of {url}, which is not new" for url in set(new) - fresh]
