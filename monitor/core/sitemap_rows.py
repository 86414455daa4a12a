"""The rows of an XML sitemap: `url`, `sitemap`, `item` and `entry` elements to values (pure)."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

from monitor.core.dates import parse_date
from monitor.core.sitemap_plain import PlainRow
from monitor.core.sitemap_text import MAX_ADDRESS, MAX_PROBLEMS
from monitor.core.url import absolute
from monitor.model import Alternate, Date, Image, News, Problem, Row, Video

PROTOCOL_LOC = 2_048
"""Characters of a `loc` (sitemaps.org)."""

MAX_LIST = 1_000
"""Images, videos and alternates kept of one row; Google reads 1,000 images."""

_MAX_FIELD = 65_536  # characters of a title or description
_MAX_FIELDS = 200  # elements of one news, image or video block
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"
_OTHER = re.compile(r"image|video|news|media", re.I)
_BURIED = re.compile(r"https?://", re.I)
_PROSE = re.compile(r"[\r\n][^\r\n]*\S[ \t]+\S")  # a line of several words: a warning, no part of an address
_ENTITY = re.compile(r"&([\w.:-]+);")
_NO_DATE = Date("", None, None)
_ROLES = frozenset({"loc", "lastmod", "news", "image", "video", "link"})
_DATES = ("updated", "modified", "pubdate", "date", "published")


@lru_cache(maxsize=1024)
def local(tag: Any) -> str:
    """An element's name without its namespace, in lower case."""
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


def text_of(element: Any) -> str:
    """An element's whole text, white space of every kind stripped, cut where no title or description is as long."""
    return _clean(element.text or "" if len(element) == 0 else "".join(element.itertext()))


def _clean(text: str) -> str:
    text = text.strip() if text.isascii() else text.strip(_SPACE)
    return text[:_MAX_FIELD]


class Reader:
    """Turns elements into rows for one document, and notes what is wrong with them.

    `feed` says that the elements are items of a feed; `entities` are names of entities that stand unexpanded in texts.
    """

    def __init__(self, url: str, problems: list[Problem], *, feed: bool, entities: frozenset[str]) -> None:
        self.count = 0
        """Row elements so far, usable or not."""
        self.news = 0
        """Rows with a news block so far."""
        self.children = 0
        """Rows so far that name a further sitemap."""
        self.damaged = False
        """A row was left out that could not be read for damage."""
        self.row = self._item if feed else self._url
        self._url_of_document = url
        self._problems = problems
        self._entities = entities
        self._roles: dict[str, str] = {}
        self._dates: dict[str, Date] = {}
        self._site = "\n"

    def plain(self, found: list[PlainRow], *, child: bool) -> list[Row]:
        """The rows that `read_plain` found."""
        rows = []
        dates = self._dates
        for loc, lastmod, _, _ in found:
            self.count += 1
            text = loc.strip()
            fine = text.startswith(self._site) and text.isprintable() and len(text) <= PROTOCOL_LOC
            address = text if fine else self._address(text)
            if address is None:
                continue
            date = dates.get(lastmod) or self._date(lastmod) if lastmod else _NO_DATE
            rows.append(
                Row(
                    address,
                    date.instant,
                    date.precision,
                    date.text or None,
                    date.zone,
                    date.problem,
                    None,
                    (),
                    (),
                    (),
                    None,
                    child,
                )
            )
        self.children += len(rows) if child else 0
        return rows

    def _url(self, element: Any) -> list[Row]:
        """The rows of a `url` or `sitemap` element: none without a usable address, two where it has two."""
        self.count += 1
        locs: list[str | None] = []
        lastmod: str | None = None
        extensions: list[tuple[str, Any]] = []
        for child in element:
            tag = child.tag
            role = self._roles.get(tag)
            if role is None:
                role = self._role(tag)
            if role == "loc":
                locs.append(child.text if len(child) == 0 else self._nested(child))
            elif role == "lastmod":
                lastmod = lastmod or child.text
            elif role:
                extensions.append((role, child))
        child_row = local(element.tag) == "sitemap"
        if not locs:
            locs = self._bare_address(element, child_row)
        more = self._extensions(extensions) if extensions else {}
        rows = [
            self._made(address, lastmod, child_row, more)
            for text in (locs if len(locs) == 1 else self._several(locs))
            if (address := self._address(text or "")) is not None
        ]
        if rows:
            self.news += "news" in more
            self.children += len(rows) if child_row else 0
        return rows

    def _several(self, locs: list[str | None]) -> list[str | None]:
        if locs:
            self._note("row.locs", "the row has more than one address")
        return list(dict.fromkeys(locs))

    def _role(self, tag: Any) -> str:
        """What a row's child element is to us, by its local name; an image's `loc` is not the page's."""
        name = local(tag)
        role = name if name in _ROLES else ""
        if name in ("loc", "lastmod") and _OTHER.search(tag.rpartition("}")[0]):
            role = ""
        if len(self._roles) < 1_000:
            self._roles[tag] = role
        return role

    def _nested(self, loc: Any) -> str | None:
        """The address in a `loc` that holds elements: that of the only one, if it holds nothing else."""
        inner = loc[0]
        alone = len(loc) == 1 and len(inner) == 0 and not (loc.text or "").strip() and not (inner.tail or "").strip()
        if alone and local(inner.tag) in ("url", "loc", "a", "link"):
            self._note("row.markup", "the address is wrapped in a further element")
            text: str | None = inner.text
            return text
        self.damaged = True
        self._note("row.markup", "there is markup within the address; it is left out")
        return None

    def _bare_address(self, element: Any, child_row: bool) -> list[str | None]:
        """The address of a row without a `loc`: a `sitemap` may hold it as its text."""
        text = (element.text or "").strip(_SPACE)
        if child_row and len(element) == 0 and text.lower().startswith(("http://", "https://")):
            return [text]
        parent = element.getparent()
        if parent is not None and parent.getparent() is None:
            self._note("row.loc", "the row has no address")
        return []

    def _address(self, text: str) -> str | None:
        text = text.strip(_SPACE)
        if text.startswith(self._site) and text.isprintable() and not self._entities and len(text) <= PROTOCOL_LOC:
            return text  # as the rows before: nothing behind a good host can spoil a URL
        if not text:
            self._note("row.loc", "the row's address is empty")
            return None
        if self._entities and not self._entities.isdisjoint(_ENTITY.findall(text)):
            self.damaged = True
            self._note("row.entity", "the address holds an entity of the document's own; it is left out")
            return None
        web = text[:8].lower().startswith(("http://", "https://"))
        address = absolute(text, self._url_of_document) if len(text) <= MAX_ADDRESS else None
        if len(text) <= MAX_ADDRESS and (_PROSE.search(text) or (not web and text[0] != "/" and _BURIED.search(text))):
            self.damaged = True
            self._note("row.address", f"there is other text beside the address: {text[:80]!r}")
            return None
        if address is None:
            self._note("row.address", f"not an http or https address: {text[:80]!r}")
            return None
        if not web:
            self._note("row.relative", "the address is relative; sitemaps want absolute ones")
        elif "\ufffd" in text:
            self._note("row.encoding", "the address holds a character that could not be decoded")
        else:
            self._remember(text)
        if len(address) > PROTOCOL_LOC:
            self._note("row.length", "the address is longer than 2,048 characters")
        return address

    def _remember(self, text: str) -> None:
        end = text.find("/", 8) + 1
        site = text[:end]
        self._site = site if end and site.startswith("http") and absolute(site, "") == site else "\n"

    def _made(self, address: str, lastmod: str | None, child: bool, more: dict[str, Any]) -> Row:
        date = self._date(lastmod) if lastmod else _NO_DATE
        text = date.text or None
        return Row(address, date.instant, date.precision, text, date.zone, date.problem, child=child, **more)

    def _date(self, text: str) -> Date:
        """`parse_date`, once for each text: many documents give all rows one."""
        date = self._dates.get(text)
        if date is None:
            stripped = text.strip(_SPACE)
            date = parse_date(stripped) if stripped else _NO_DATE
            if date.instant is not None and len(self._dates) < 10_000:
                self._dates[text] = date
        if date.instant is None and date.text:
            self._note("row.lastmod", f"not a usable date: {date.text[:40]!r} ({date.problem})")
        return date

    def _extensions(self, found: list[tuple[str, Any]]) -> dict[str, Any]:
        images: list[Image] = []
        videos: list[Video] = []
        alternates: list[Alternate] = []
        more: dict[str, Any] = {}
        for role, element in found:
            if role == "news":
                if "news" in more:
                    self._note("row.news", "the row has more than one news block; the first counts")
                else:
                    more["news"] = self._news(element)
            elif role == "image":
                images.append(_image(element))
            elif role == "video":
                videos.append(self._video(element))
            elif (alternate := self._alternate(element)) is not None:
                alternates.append(alternate)
        if images:
            more["images"] = tuple(images[:MAX_LIST])
        if videos:
            more["videos"] = tuple(videos[:MAX_LIST])
        if alternates:
            more["alternates"] = tuple(alternates[:MAX_LIST])
        return more

    def _alternate(self, element: Any) -> Alternate | None:
        if "alternate" not in (element.get("rel") or "alternate").lower().split():
            return None
        href = element.get("href")
        target = absolute(href, self._url_of_document) if href and len(href) <= MAX_ADDRESS else None
        return Alternate(target, element.get("hreflang"), element.get("media")) if target is not None else None

    def _news(self, element: Any) -> News:
        fields = _fields(element)
        date = _one(fields, "publication_date")
        return News(
            title=_one(fields, "title"),
            publication_date=parse_date(date).instant if date else None,
            publication_date_text=date,
            name=_one(fields, "name"),
            language=_one(fields, "language"),
            access=_one(fields, "access"),
            genres=_list(fields, "genres"),
            keywords=_list(fields, "keywords"),
            stock_tickers=_list(fields, "stock_tickers"),
        )

    def _video(self, element: Any) -> Video:
        fields = _fields(element)
        date, duration = _one(fields, "publication_date"), _one(fields, "duration")
        return Video(
            title=_one(fields, "title"),
            description=_one(fields, "description"),
            thumbnail_url=_one(fields, "thumbnail_loc"),
            content_url=_one(fields, "content_loc"),
            player_url=_one(fields, "player_loc"),
            publication_date=parse_date(date).instant if date else None,
            duration=int(duration) if duration and re.fullmatch(r"[0-9]{1,8}", duration) else None,
            fields={name: tuple(values) for name, values in fields.items()},
        )

    def _item(self, element: Any) -> list[Row]:
        """The row of an item of a feed that serves as a sitemap: its link, else a guid that is one."""
        self.count += 1
        link = guid = title = None
        dates: dict[str, str] = {}
        for child in element:
            name = local(child.tag)
            if name == "link":
                link = _better_link(link, child)
            elif name in ("guid", "id"):
                guid = guid or _permalink(child)
            elif name in _DATES:
                dates.setdefault(name, text_of(child))
            elif name == "title":
                title = title or text_of(child)
        text = link[1] if link is not None else guid
        if not text:
            self._note("row.loc", "the item has no link")
            return []
        address = self._address(text)
        if address is None:
            return []
        date = next((dates[name] for name in _DATES if dates.get(name)), None)
        return [self._made(address, date, False, {"title": title or None})]

    def _note(self, rule: str, message: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(Problem(rule, f"row {self.count}", message))


def _better_link(link: tuple[bool, str] | None, element: Any) -> tuple[bool, str] | None:
    """The better of the link so far and the next: RSS's own, or Atom's without `rel`, before one that names it."""
    rel = (element.get("rel") or "").strip().lower()
    text = element.get("href") or text_of(element)
    if rel not in ("", "alternate") or not text:
        return link
    if link is None or (not rel and not link[0]):
        return (not rel, text)
    return link


def _permalink(element: Any) -> str | None:
    """A `guid` or `id` that is an address (RSS 2.0: unless `isPermaLink` denies it)."""
    text = text_of(element)
    denied = (element.get("isPermaLink") or element.get("ispermalink") or "").lower() == "false"
    return text if text.lower().startswith(("http://", "https://")) and not denied else None


def row_of_texts(url: str, lastmod: str | None) -> Row:
    """A row of nothing but an address and a lastmod, as published."""
    date = parse_date(lastmod) if lastmod else _NO_DATE
    return Row(url, date.instant, date.precision, date.text or None, date.zone, date.problem)


def _image(element: Any) -> Image:
    fields = _fields(element)
    return Image(
        url=_one(fields, "loc"),
        title=_one(fields, "title"),
        caption=_one(fields, "caption"),
        geo_location=_one(fields, "geo_location"),
        license=_one(fields, "license"),
    )


def _fields(element: Any) -> dict[str, list[str]]:
    """Texts of the elements below by local name; whole where markup stands within a text, none of mere containers."""
    found: dict[str, list[str]] = {}
    for child in islice(element.iterdescendants("*"), _MAX_FIELDS):
        text = child.text
        if len(child) and ((text and text.strip()) or any(inner.tail and inner.tail.strip() for inner in child)):
            text = text_of(child)
        elif len(child):
            continue
        if text and (text := _clean(text)):
            found.setdefault(local(child.tag), []).append(text)
    return found


def _one(fields: dict[str, list[str]], name: str) -> str | None:
    values = fields.get(name)
    return values[0] if values else None


def _list(fields: dict[str, list[str]], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for text in fields.get(name, ()) for part in text.split(",") if part.strip())
