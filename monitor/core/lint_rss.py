"""The rules of RSS 2.0 (and 0.9x), and of RSS 1.0 (pure). Sources: rssboard.org/rss-specification, purl.org/rss/1.0."""

from __future__ import annotations

from typing import Any

from monitor.core.lint_dates import fits_rfc822, fits_w3c, wrong_weekday
from monitor.core.lint_entries import Marks, children, first, first_text, is_absolute, label
from monitor.core.sitemap_rows import local, text_of

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_DC_DATE = "{http://purl.org/dc/elements/1.1/}date"
_RSS_1 = "http://purl.org/rss/1.0/"
_RSS_11 = "{http://purl.org/net/rss1.1#}"
_CHANNEL = ("title", "link", "description")


def lint_rss(root: Any, marks: Marks, form: str) -> None:
    """Check a document whose root is `rss` or `channel`; `form` is as in `Feed.format`."""
    if root.tag.startswith(_RSS_11):
        marks.add("feed.old-format", root, "RSS 1.1 was never taken up")
        return
    if local(root.tag) == "rss":
        if root.get("version") is None:
            marks.add("rss.version", root)
        channel = first(root, "channel")
    else:
        channel = root
        marks.add("rss.channel", root)
    if channel is None:
        marks.add("rss.channel", root)
    else:
        _check_channel(channel, marks)
    for item in marks.items:
        # RSS 0.92 to 0.94 know no guid, and let an item be anything.
        if form in ("rss20", "rss091", "rss090") and not (first_text(item, "title") or first_text(item, "description")):
            marks.add("rss.item-text", item)
        _check_item(item, marks, guids=form == "rss20")


def _check_channel(channel: Any, marks: Marks) -> None:
    for name in _CHANNEL:
        found = first(channel, name)
        if found is None:
            marks.add("rss.channel-field", channel, name)
        elif not text_of(found):
            marks.add("rss.channel-blank", found, name)
    for element in children(channel, "pubDate", "lastBuildDate"):
        _check_date(element, marks)
    for link in children(channel, "link"):
        _check_address(link, text_of(link), marks)


def _check_address(element: Any, address: str, marks: Marks, entry: Any = None) -> None:
    if address and not is_absolute(address):
        marks.add("rss.link", element, f"{address[:100]!r} has none", entry=entry)


def _check_date(element: Any, marks: Marks, entry: Any = None) -> None:
    marks.date(element, "rss.date-form", fits_rfc822, entry=entry)
    text = text_of(element)
    if wrong_weekday(text):
        marks.add("rss.weekday", element, repr(text), entry=entry)


def _check_item(item: Any, marks: Marks, *, guids: bool) -> None:
    guid = first(item, "guid")
    identity = text_of(guid) if guid is not None else ""
    link = first_text(item, "link")
    if identity:
        _check_guid(item, guid, identity, marks)
    elif not link and not any(_links(item)):
        marks.add("entry.identity", item)
    elif guids:
        marks.add("rss.guid", item)
    dates = [*children(item, "pubDate"), *item.findall(_DC_DATE)]
    for element in dates:
        if element.tag == _DC_DATE:
            marks.date(element, "dc.date-form", fits_w3c, entry=item)
        else:
            _check_date(element, marks, item)
    if not dates:
        marks.add("entry.undated", item)
    for element in children(item, "link", "comments"):
        _check_address(element, text_of(element), marks, item)
    _check_enclosures(item, marks)


def _links(item: Any) -> list[str]:
    """Links that an item has by other means than RSS's own element, such as `atom:link`."""
    return [child.get("href") or text_of(child) for child in item if local(child.tag) == "link"]


def _check_guid(item: Any, guid: Any, identity: str, marks: Marks) -> None:
    marks.unique("rss.guid-duplicate", identity, item)
    said = guid.get("isPermaLink")
    if said is not None and said not in ("true", "false"):
        marks.add("rss.permalink-value", guid, repr(said[:40]), entry=item)
    elif said != "false" and not identity.lower().startswith(("http://", "https://")):
        marks.add("rss.permalink", guid, f"{identity[:100]!r}", entry=item)


def _check_enclosures(item: Any, marks: Marks) -> None:
    enclosures = list(children(item, "enclosure"))
    for enclosure in enclosures:
        for name in ("url", "length", "type"):
            if not (enclosure.get(name) or "").strip():
                marks.add("rss.enclosure", enclosure, name, entry=item)
        length = (enclosure.get("length") or "").strip()
        if length and not (length.isascii() and length.isdecimal()):
            marks.add("rss.enclosure-length", enclosure, repr(length[:40]), entry=item)
        _check_address(enclosure, (enclosure.get("url") or "").strip(), marks, item)
    if len(enclosures) > 1:
        marks.add("rss.enclosures", item, f"this one has {len(enclosures)}")


def lint_rdf(root: Any, marks: Marks) -> None:
    """Check a document whose root is `rdf:RDF`: RSS 1.0, or 0.90, which has neither `rdf:about` nor `items`."""
    channel = next((child for child in root if local(child.tag) == "channel"), None)
    if channel is None:
        marks.add("rdf.field", root, "the channel")
        return
    current = channel.tag.startswith(f"{{{_RSS_1}}}")
    _check_about(channel, "the channel", marks, current=current)
    for name in _CHANNEL:
        if not first_text(channel, name):
            marks.add("rdf.field", channel, f"the channel's {name}")
    listed = {
        about for li in channel.iter(f"{_RDF}li") if (about := li.get(f"{_RDF}resource") or li.get("resource") or "")
    }
    if current and marks.items and first(channel, "items") is None:
        marks.add("rdf.field", channel, "the channel's items")
    for item in marks.items:
        about = _check_about(item, "the item", marks, current=current)
        if about:
            marks.unique("rdf.about-duplicate", about, item)
            if listed and about not in listed:
                marks.add("rdf.items", item, "it is not in there")
        for name in ("title", "link"):
            if not first_text(item, name):
                marks.add("rdf.field", item, f"the item's {name}")
        for element in children(item, "link"):
            _check_address(element, text_of(element), marks, item)
        dates = item.findall(_DC_DATE)
        for element in dates:
            marks.date(element, "dc.date-form", fits_w3c, entry=item)
        if not dates:
            marks.add("entry.undated", item)


def _check_about(element: Any, what: str, marks: Marks, *, current: bool) -> str:
    about: str = (element.get(f"{_RDF}about") or "").strip()
    if current and not about:
        marks.add("rdf.about", element, what)
    return about


def item_label(item: Any) -> str:
    """An item's link, else its title."""
    return label(first_text(item, "link"), first_text(item, "title"), first_text(item, "guid"))
