"""What the answer that brought a document tells a checker (pure). Sources: RFC 9110, RFC 7303, the formats' types."""

from __future__ import annotations

import codecs
import re

from monitor.core.decode import GZIP
from monitor.core.http import Reply, describe
from monitor.core.lint_rules import Findings

_XML = ("application/xml", "text/xml")
_TYPES = {
    "feed": (*_XML, "application/rss+xml", "application/atom+xml", "application/rdf+xml"),
    "json": ("application/feed+json", "application/json"),
    "sitemap": _XML,
    "text": ("text/plain",),
}
_COMPRESSED = ("application/gzip", "application/x-gzip", "application/octet-stream")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I | re.ASCII)
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([\w.:-]{1,40})")


def lint_answer(reply: Reply, findings: Findings) -> bool:
    """Check how the address answered; False where there is no document to check."""
    if reply.redirects:
        steps = ", ".join(str(step.status) for step in reply.redirects)
        findings.add("http.redirect", reply.url, f"it redirects ({steps}) to {reply.redirects[-1].url}")
    if reply.failure is not None:
        findings.add("http.failure", reply.final_url or reply.url, reply.failure.message)
        return False
    if reply.status != 200:
        findings.add("http.status", reply.final_url or reply.url, describe(reply))
        return False
    if not reply.complete:
        findings.add("http.cut", "body")
    if not reply.headers.get("etag") and not reply.headers.get("last-modified"):
        findings.add("http.validators", "headers")
    return True


def lint_type(reply: Reply, kind: str, findings: Findings) -> None:
    """Check the content type against what the document turned out to be: feed, json, sitemap or text."""
    header = reply.headers.get("content-type", "")
    media = header.partition(";")[0].strip().lower()
    fitting = _TYPES[kind] + (_COMPRESSED if reply.body.startswith(GZIP) else ())
    if media not in fitting:
        said = f"it is {media[:60]}" if media else "there is none"
        findings.add("http.content-type", "headers", f"{said}; {' or '.join(fitting)} would do")
    charset, declared = _CHARSET.search(header), _DECLARED.search(reply.body[:1000])
    if charset is not None and declared is not None:
        names = charset[1], declared[1].decode("ascii", "replace")
        if _codec(names[0]) != _codec(names[1]):
            findings.add("encoding.header", "headers", f"the one says {names[0]}, the other {names[1]}")


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return name.lower()
