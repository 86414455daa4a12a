"""`monitor lint`: a document of a publisher's against the specification of what it turns out to be (pure).

Decided by the bytes: a sitemap, a feed, or neither. The rules are in `lint_sitemap`, `lint_news`, `lint_feed` and its
parts, `lint_http`; their severities, sources and sentences in `lint_table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from monitor.core.decode import decode
from monitor.core.discovery import feed_links, sitemap_links
from monitor.core.feed import MAX_BYTES, parse_feed
from monitor.core.http import Reply
from monitor.core.jsonfeed import looks_like_json
from monitor.core.lint_feed import lint_feed
from monitor.core.lint_http import lint_answer, lint_type
from monitor.core.lint_rules import Finding, Findings
from monitor.core.lint_sitemap import lint_sitemap
from monitor.core.markup import is_html
from monitor.core.sitemap import parse_sitemap
from monitor.model import Feed, NotAFeed, NotASitemap, Sitemap

Kind = Literal["feed", "sitemap", "news_sitemap"]

NOWHERE = "https://document.invalid/"
"""Stands for the address of a document that has none (a file), so that relative addresses in it are seen as such."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a document is, and what is wrong with it.

    `kind` is None where it is neither feed nor sitemap, or could not be fetched; `form` is as in `Feed.format` or
    `Sitemap.kind`; `size` counts entries or rows. `complete` is False where not all of it could be read.
    """

    kind: Kind | None
    form: str | None
    size: int
    complete: bool
    findings: tuple[Finding, ...]


def lint(data: bytes, url: str | None, *, now: datetime, reply: Reply | None = None) -> Report:
    """Check a document. Never raises, and lists at most `lint_rules.MAX_PLACES` places of a rule.

    `url` is the document's own address after redirects, None where it has none: then nothing is said of hosts and
    folders. `reply` is the answer that brought it, None for a file: then nothing is said of status and headers.
    """
    findings = Findings()
    if reply is not None and not lint_answer(reply, findings):
        return Report(None, None, 0, False, findings.result())
    whole = reply is None or reply.complete
    base = url or NOWHERE
    read = _read(data, base, reply)
    if isinstance(read, str):
        _neither(data, base, read, findings)
        return Report(None, None, 0, whole, findings.result())
    if isinstance(read, Sitemap):
        lint_sitemap(data, base, read, findings, now=now, published=url is not None)
        kind: Kind = "news_sitemap" if read.is_news or "news.empty" in findings else "sitemap"
        family, form, size = "text" if read.kind == "text" else "sitemap", str(read.kind), len(read.rows)
    else:
        lint_feed(data, base, read, findings, now=now, content_type=_content_type(reply))
        kind, form, size = "feed", read.format, read.size
        family = "json" if form.startswith("json") else "feed"
    if reply is not None:
        lint_type(reply, family, findings)
    return Report(kind, form, size, read.complete and whole, findings.result())


def _content_type(reply: Reply | None) -> str | None:
    return reply.headers.get("content-type") if reply is not None else None


def _read(data: bytes, url: str, reply: Reply | None) -> Sitemap | Feed | str:
    """The document as parsed; a sentence on what it is where it is neither feed nor sitemap."""
    refused = ""
    if not looks_like_json(data):
        try:
            sitemap = parse_sitemap(data, url, cap=MAX_BYTES, whole=reply is None or reply.complete)
        except NotASitemap as error:
            refused = str(error)
        else:
            if sitemap.kind != "feed":
                return sitemap
    try:
        return parse_feed(data, url, _content_type(reply))
    except NotAFeed as error:
        said = str(error)
    # Each parser knows its own: of a broken sitemap the feed parser says only that it is one.
    return refused if refused and "a sitemap" in said else said


def _neither(data: bytes, url: str, said: str, findings: Findings) -> None:
    """Say what the bytes are that are neither feed nor sitemap."""
    peeled = decode(data, MAX_BYTES)
    for problem in peeled.problems:
        findings.problem(problem)
    body = peeled.data
    if not body.strip(b"\x00 \t\r\n\xef\xbb\xbf\xfe\xff"):
        if peeled.complete:
            findings.add("document.empty", "body")
        return
    if not is_html(body, None):
        findings.add("document.other", "body", said.rstrip("."))
        return
    named = [*feed_links(body, url), *sitemap_links(body, url)]
    address = named[0].url.removeprefix(NOWHERE) if named else ""
    findings.add("document.html", "body", f"; it names one at {address}" if address else "")
