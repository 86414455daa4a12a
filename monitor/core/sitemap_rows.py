"""The rows of an XML sitemap: `url`, `sitemap`, `item` and `entry` elements to values (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from monitor.core.url import absolute
from monitor.model import Alternate, Date, Image, News, Problem, Row, Video

MAX_PROBLEMS = 200
_IDLE = frozenset({"priority", "changefreq", "expires"})


def local(tag: Any) -> str:
    """An element's name without its namespace; prefixes that were never declared are cut, too."""
    name = tag.rsplit("}", 1)[-1] if isinstance(tag, str) else ""
    return name.rsplit(":", 1)[-1]


def text_of(element: Any) -> str:
    """An element's own text, white space of every kind stripped; entities that were not resolved are left out."""
    return "".join(element.itertext()).strip().strip("\ufeff\u200b\u00a0").strip()


class Reader:
    """Turns elements into rows for one document, and notes what is wrong with them."""

    def __init__(self, url: str, problems: list[Problem], parse: Callable[[str], Date]) -> None:
        self._url = url
        self._problems = problems
        self._parse = parse

    def row(self, element: Any, kind: str) -> list[Row]:
        """The rows of one element: none without a usable address, two where it has two."""
        if kind == "feed":
            return self._item(element)
        locs: list[str] = []
        lastmod: str | None = None
        extensions = []
        for child in element:
            name = local(child.tag)
            if name == "loc":
                locs.append(text_of(child))
                continue
            low = name.lower()
            if low == "loc":
                locs.append(text_of(child))
            elif low == "lastmod":
                lastmod = lastmod or text_of(child)
            elif low in ("news", "image", "video", "link"):
                extensions.append((low, child))
        child_row = local(element.tag).lower() == "sitemap"
        if not locs and child_row and element.text and element.text.strip().startswith("http"):
            locs.append(element.text.strip())
        place = f"line {element.sourceline}"
        if not locs:
            self._note("row.loc", place, "a row without an address")
            return []
        if len(locs) > 1:
            self._note("row.locs", place, "a row with more than one address")
        more = self._extensions(extensions) if extensions else {}
        rows = []
        for text in locs:
            address = self._address(text, place)
            if address is not None:
                rows.append(self._made(address, lastmod, place, child=child_row, **more))
        return rows

    def _address(self, text: str, place: str) -> str | None:
        address = absolute(text, self._url)
        if address is None:
            self._note("row.address", place, f"not an http or https address: {text[:80]!r}")
            return None
        if not text[:8].lower().startswith(("http://", "https://")):
            self._note("row.relative", place, "the address is relative; sitemaps want absolute ones")
        if len(address) > 2048:
            self._note("row.length", place, "the address is longer than 2,048 characters")
        return address

    def _made(self, address: str, lastmod: str | None, place: str, *, child: bool = False, **more: Any) -> Row:
        if not lastmod:
            return Row(address, child=child, **more)
        date = self._parse(lastmod)
        if date.instant is None:
            self._note("row.lastmod", place, f"not a usable date: {lastmod[:40]!r} ({date.problem})")
        return Row(
            address,
            lastmod=date.instant,
            lastmod_precision=date.precision,
            lastmod_text=lastmod,
            lastmod_zone=date.zone,
            lastmod_problem=date.problem,
            child=child,
            **more,
        )

    def _extensions(self, found: list[tuple[str, Any]]) -> dict[str, Any]:
        news: News | None = None
        images, videos, alternates = [], [], []
        for name, element in found:
            if name == "news":
                news = self._news(element)
            elif name == "image":
                fields = _fields(element)
                images.append(
                    Image(
                        url=_one(fields, "loc"),
                        title=_one(fields, "title"),
                        caption=_one(fields, "caption"),
                        geo_location=_one(fields, "geo_location"),
                        license=_one(fields, "license"),
                    )
                )
            elif name == "video":
                videos.append(self._video(element))
            elif href := element.get("href"):
                target = absolute(href, self._url)
                if target is not None and (element.get("rel") or "alternate").lower() == "alternate":
                    alternates.append(Alternate(target, element.get("hreflang"), element.get("media")))
        return {
            "news": news,
            "images": tuple(images),
            "videos": tuple(videos),
            "alternates": tuple(alternates),
        }

    def _news(self, element: Any) -> News:
        fields = _fields(element)
        date = _one(fields, "publication_date")
        return News(
            title=_one(fields, "title"),
            publication_date=self._parse(date).instant if date else None,
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
            publication_date=self._parse(date).instant if date else None,
            duration=int(duration) if duration and duration.isdigit() and len(duration) < 9 else None,
            fields={name: tuple(values) for name, values in fields.items()},
        )

    def _item(self, element: Any) -> list[Row]:
        """An item of a feed that serves as a sitemap: its link, else a guid that is one."""
        link = guid = date = title = None
        for child in element:
            name = local(child.tag).lower()
            if name == "link":
                rel = (child.get("rel") or "alternate").lower()
                text = child.get("href") if child.get("href") else text_of(child)
                if text and (link is None or "rel" not in child.attrib) and rel == "alternate":
                    link = text
            elif name in ("guid", "id"):
                guid = text_of(child)
            elif name in ("pubdate", "date", "updated", "modified", "published"):
                date = text_of(child) if date is None or name in ("updated", "modified") else date
            elif name == "title":
                title = text_of(child)
        if link is None and guid and guid.lower().startswith(("http://", "https://")):
            link = guid
        place = f"line {element.sourceline}"
        if not link:
            self._note("row.loc", place, "an item without a link")
            return []
        address = self._address(link, place)
        return [self._made(address, date, place, title=title or None)] if address else []

    def _note(self, rule: str, place: str, message: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(Problem(rule, place, message))


def _fields(element: Any) -> dict[str, list[str]]:
    """Texts of all elements below, by local name."""
    found: dict[str, list[str]] = {}
    for child in element.iterdescendants("*"):
        if len(child) == 0 and (text := text_of(child)):
            found.setdefault(local(child.tag).lower(), []).append(text)
    return found


def _one(fields: dict[str, list[str]], name: str) -> str | None:
    values = fields.get(name)
    return values[0] if values else None


def _list(fields: dict[str, list[str]], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for text in fields.get(name, ()) for part in text.split(",") if part.strip())
