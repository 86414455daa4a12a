"""The JSON Schema of the events: the CloudEvents envelope, and for each type what its `data` holds.

Fields may be added to `data` without a new major version, so the schema allows more than it names.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

REASONS = ("removed", "withdrawn", "expected", "dead", "redirected")
"""Why a page is missing, in the order of the contract."""

KINDS = ("feed", "sitemap", "news_sitemap", "crawl")


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _maybe(kind: str, description: str, **more: Any) -> Schema:
    return {"type": [kind, "null"], "description": description, **more}


def _instant(description: str) -> Schema:
    return _maybe("string", description, format="date-time")


def _count(description: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": description}


def _texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_SITE = _text("The site's name in sites.yaml")
_FOUND_IN: Schema = {
    "type": "object",
    "description": "The source that gave rise to the event",
    "properties": {
        "kind": {"enum": list(KINDS), "description": "The kind of source"},
        "url": _text("The document: a feed, one sitemap file, or where a crawl started"),
    },
    "required": ["kind", "url"],
}
_ENTRY: Schema = {
    "type": ["object", "null"],
    "description": "The feed entry, or what a news sitemap tells of the page; null where the source gives URLs alone",
    "properties": {
        "id": _maybe("string", "The entry's guid or id, or what stands for it"),
        "title": _maybe("string", "The headline"),
        "published": _instant("When the source says it was published"),
        "updated": _instant("When the source says it was last updated"),
        "authors": _texts("Authors, as published"),
        "tags": _texts("Categories or keywords, as published"),
        "summary": _maybe("string", "The summary, as published"),
    },
}
_OBSERVED_URL = _text("The URL as this source published it")
_REASON: Schema = {"enum": list(REASONS), "description": "Why the page is, or was, missing"}
_ERROR = _maybe("string", "What went wrong, in a sentence")
_STATUS = _maybe("integer", "The HTTP status; null where there was no response")
_SINCE = _instant("Since when the source fails, or had failed")
_TRUST: Schema = {"type": ["array", "string", "object"], "description": "What spoke for the verdict"}

# For each type: what it means, further fields of `data`, and those of them that are always there.
_TYPES: dict[str, tuple[str, Schema, tuple[str, ...]]] = {
    "url.new": (
        "A page is first listed by any source after that source's baseline",
        {
            "observed_url": _OBSERVED_URL,
            "entry": _ENTRY,
            "delay_seconds": _maybe("number", "Seconds from publication to this event", minimum=0),
            "late": {"type": "boolean", "description": "Published or modified long before it appeared"},
        },
        ("observed_url", "delay_seconds"),
    ),
    "url.changed": (
        "Evidence that the page or its entry changed",
        {
            "observed_url": _OBSERVED_URL,
            "entry": _ENTRY,
            "changed": _texts("The fields that changed"),
            "before": {"type": "object", "description": "Their values before, as far as known"},
            "after": {"type": "object", "description": "Their values after, as far as known"},
            "evidence": {"enum": ["entry", "lastmod", "page"], "description": "What shows the change"},
        },
        ("changed", "before", "after", "evidence"),
    ),
    "url.missing": (
        "A page that ought to be listed is not",
        {
            "reason": _REASON,
            "missing_from": {
                "type": "array",
                "items": {"enum": list(KINDS)},
                "description": "The kinds of source that lack the page",
            },
            "last_seen": _instant("When a source last listed the page"),
            "page": {
                "type": ["object", "null"],
                "description": "What the page itself answered",
                "properties": {
                    "status": _STATUS,
                    "final_url": _maybe("string", "Where redirects led"),
                    "noindex": _maybe("boolean", "Whether the page asks search engines to leave it out"),
                },
            },
        },
        ("reason", "missing_from", "last_seen", "page"),
    ),
    "url.returned": (
        "A missing page is back",
        {
            "observed_url": _OBSERVED_URL,
            "reason": _REASON,
            "missing_seconds": {"type": "number", "minimum": 0, "description": "How long the page was missing"},
        },
        ("reason", "missing_seconds"),
    ),
    "source.baseline": (
        "A source's first complete read",
        {
            "pages": _count("Pages listed"),
            "files": _count("Documents read"),
            "seconds": {"type": "number", "minimum": 0, "description": "How long the read took"},
        },
        ("pages", "files", "seconds"),
    ),
    "source.gap": (
        "Entries may have been lost between two polls",
        {
            "known_before": {"description": "Entries, or the newest of them, known before the gap"},
            "oldest_now": _instant("The oldest entry now shown"),
            "estimated_lost": _maybe("number", "How many entries stay lost, by estimate", minimum=0),
            "recovered": _count("How many were found in archives, further pages and news sitemaps"),
        },
        ("known_before", "oldest_now", "estimated_lost", "recovered"),
    ),
    "source.failing": (
        "A source fails repeatedly",
        {"status": _STATUS, "error": _ERROR, "since": _SINCE},
        ("status", "error", "since"),
    ),
    "source.recovered": (
        "A failing source works again",
        {"status": _STATUS, "error": _ERROR, "since": _SINCE},
        ("since",),
    ),
    "source.moved": ("A source redirects for good", {"to": _text("The new address")}, ("to",)),
    "source.gone": (
        "A source answers 410 or its equivalent",
        {"to": _maybe("string", "Where it might have gone"), "status": _STATUS, "error": _ERROR},
        (),
    ),
    "source.surge": (
        "One read brings far more URLs than ever: they are recorded, and summed up in this event",
        {
            "count": _count("How many"),
            "sample": _texts("Some of them"),
            "usual": {"type": "number", "minimum": 0, "description": "The most that one read brought before"},
        },
        ("count", "sample", "usual"),
    ),
    "source.untrusted": ("A sitemap's lastmod fails its trust test", {"evidence": _TRUST}, ("evidence",)),
    "source.trusted": ("A sitemap's lastmod regains trust", {"evidence": _TRUST}, ("evidence",)),
}

EVENT_TYPES = tuple(_TYPES)
"""Every type of event, in the order of the contract."""


def event_schema() -> Schema:
    """The JSON Schema (2020-12) of one event: a CloudEvents 1.0 envelope, and `data` by `type`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "monitor event",
        "type": "object",
        "properties": {
            "specversion": {"const": "1.0", "description": "The version of CloudEvents"},
            "id": _text("A ULID: unique, and sorting by time; repeats can be dropped by it") | {"minLength": 1},
            "type": {"enum": list(_TYPES), "description": "What happened"},
            "source": {"type": "string", "pattern": "^/sites/.+$", "description": "The site, as a path"},
            "subject": _text("The page, or the document, that the event is about"),
            "time": {"type": "string", "format": "date-time", "description": "When the event was recorded, in UTC"},
            "datacontenttype": {"const": "application/json", "description": "The media type of `data`"},
            "data": {"type": "object", "description": "The event itself"},
        },
        "required": ["specversion", "id", "type", "source", "subject", "time", "datacontenttype", "data"],
        "oneOf": [_typed(name) for name in _TYPES],
    }


def _typed(name: str) -> Schema:
    description, fields, always = _TYPES[name]
    about = "page" if name.startswith("url.") else "document"
    return {
        "title": name,
        "description": description,
        "properties": {
            "type": {"const": name},
            "data": {
                "properties": {"site": _SITE, "url": _text(f"The {about}"), "found_in": _FOUND_IN, **fields},
                "required": ["site", "url", "found_in", *always],
            },
        },
    }
