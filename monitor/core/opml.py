"""Subscriptions as OPML 2.0 (http://opml.org/spec2.opml), in and out (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lxml import etree

from monitor.core.sitemap_text import to_utf8
from monitor.core.url import absolute

_DECLARATION = re.compile(rb"^\s*<\?xml[^>]{0,200}\?>")
_BARE = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r"))

MOST = 100_000
"""Outlines that are read of a file."""


class NotOPML(ValueError):  # noqa: N818 - it says what it is
    """The bytes are no OPML, or hold no subscription. `str(error)` is one sentence."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A feed of a list: `url` its address (xmlUrl), `home` that of its site (htmlUrl), `title` as people know it."""

    url: str
    home: str | None = None
    title: str | None = None


def parse_opml(data: bytes) -> list[Subscription]:
    """The feeds of a list, in its order, each address once. Raises NotOPML.

    Whatever is nested in whatever: groups are of the reader that wrote the file. Attribute names count in any case,
    as readers differ in it.
    """
    text = _DECLARATION.sub(b"", to_utf8(data, [])).translate(None, _CONTROLS).lstrip()
    if b"<!ENTITY" in text:
        raise NotOPML("declares entities of its own, which no subscription list needs")
    try:
        try:
            root = etree.fromstring(text, _parser())
        except etree.XMLSyntaxError:
            # Recovery drops the rest of what a bare & stands in, and so makes another address of one.
            root = etree.fromstring(_BARE.sub(b"&amp;", text), _parser(recover=True))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise NotOPML(f"is no XML ({str(error)[:100]})") from None
    if root is None or not isinstance(root.tag, str) or etree.QName(root).localname.lower() != "opml":
        raise NotOPML("is no OPML: its root is not <opml>")
    found: dict[str, Subscription] = {}
    for number, outline in enumerate(root.iter("{*}outline", "{*}Outline")):
        if number >= MOST:
            break
        fields = {str(name).lower(): str(value).strip() for name, value in outline.attrib.items()}
        url = absolute(fields.get("xmlurl", ""), "") if fields.get("xmlurl") else None
        if url is not None:
            home = absolute(fields["htmlurl"], "") if fields.get("htmlurl") else None
            title = " ".join((fields.get("title") or fields.get("text") or "").split())[:200]
            found.setdefault(url, Subscription(url, home, title or None))
    if not found:
        raise NotOPML("holds no feed: no outline has an xmlUrl that is an http or https address")
    return list(found.values())


def _parser(*, recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, recover=recover, huge_tree=False
    )


def write_opml(groups: Iterable[tuple[str, Sequence[Subscription]]], title: str) -> bytes:
    """An OPML 2.0 document: an outline for each group, in it one for each of its feeds."""
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = title
    body = etree.SubElement(root, "body")
    for name, feeds in groups:
        group = etree.SubElement(body, "outline", text=name)
        for feed in feeds:
            fields = {"type": "rss", "text": " ".join((feed.title or "").split()) or feed.url, "xmlUrl": feed.url}
            etree.SubElement(group, "outline", fields | ({"htmlUrl": feed.home} if feed.home else {}))
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True))
