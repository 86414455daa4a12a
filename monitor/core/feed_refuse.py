"""What bytes hold that are no feed: one sentence for the person who gave their URL."""

from __future__ import annotations

import re
from typing import NoReturn
from urllib.parse import urljoin

import lxml.html
from lxml import etree

from monitor.model import NotAFeed

_MAGIC = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a WebP image or other RIFF file"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"wOF", "a font"),
    (b"SQLite format 3", "a database"),
]
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")
_HEAD = 524_288
_TAGS = re.compile(r"<[^<>]*>")
_TITLE = re.compile(r"<title\b[^<>]*>([^<]{0,300})", re.I)
_KNOWN = {
    "urlset": "a sitemap (urlset)",
    "sitemapindex": "a sitemap index",
    "opml": "an OPML subscription list",
    "html": "an HTML page",
    "svg": "an SVG image",
    "wsdl": "a WSDL description",
    "opensearchdescription": "an OpenSearch description",
}


def refuse_binary(data: bytes) -> None:
    """Raise NotAFeed for an empty body and for formats told by their first bytes."""
    if not data.strip(b"\x00 \t\r\n\xef\xbb\xbf\xfe\xff"):
        raise NotAFeed("The body is empty.")
    controls = sum(byte < 32 and byte not in b"\t\n\r" for byte in data[:500])
    if controls > 20 and b"<" not in data[:500] and b"{" not in data[:500]:
        raise NotAFeed("The body is binary data, not a feed.")
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise NotAFeed(f"The body is {what}, not a feed.")


def refuse_text(text: str, url: str, root: str | None) -> NoReturn:
    """Raise NotAFeed for a text whose first element is `root` (None: the text does not start with an element)."""
    start = text.lstrip("\ufeff \t\r\n")[:2000]
    lowered = start[:200].lower()
    is_page = lowered.startswith(("<!doctype html", "<html", "<head", "<body")) or (root or "").lower() in (
        "html",
        "head",
        "body",
    )
    if is_page or (root is None and "<html" in start.lower()):
        title = _TITLE.search(text, 0, _HEAD)
        named = " ".join(title[1].split()) if title else ""
        page = f'an HTML page titled "{named[:100]}"' if named else "an HTML page"
        offered = advertised_feed(text, url)
        raise NotAFeed(f"The body is {page}, not a feed" + (f"; it names a feed at {offered}." if offered else "."))
    if root is None:
        printable = " ".join(start[:300].split())[:60]
        raise NotAFeed(f'The body is text, not a feed: "{printable}".')
    what = _KNOWN.get(root.lower())
    if what is None:
        said = " ".join(_TAGS.sub(" ", text[:2000]).split())[:100]
        what = f"an XML document of root <{root[:40]}>" + (f' ("{said}")' if said else "")
    raise NotAFeed(f"The body is {what}, not a feed.")


def advertised_feed(page: str, url: str) -> str | None:
    """The first feed that an HTML page's head offers (`link rel=alternate`, HTML Living Standard 4.6.7.1), absolute."""
    try:
        tree = lxml.html.document_fromstring(
            page[:_HEAD].encode("utf-8", "replace"), parser=lxml.html.HTMLParser(encoding="utf-8")
        )
        base = tree.xpath("string((//base/@href)[1])")
        for link in tree.iter("link"):
            kind = (link.get("type") or "").split(";")[0].strip().lower()
            if (
                "alternate" in (link.get("rel") or "").lower().split()
                and kind in _FEED_TYPES
                and (target := link.get("href"))
            ):
                return urljoin(urljoin(url, str(base)), target.strip())
    except (etree.LxmlError, ValueError, AssertionError):
        return None
    return None
