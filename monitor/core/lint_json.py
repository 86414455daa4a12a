"""The rules of JSON Feed (pure). Source: jsonfeed.org/version/1.1."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from monitor.core.dates import parse_date
from monitor.core.feed_entry import instant
from monitor.core.lint_dates import fits_rfc3339, in_future
from monitor.core.lint_entries import is_absolute, label
from monitor.core.lint_rules import Findings

_LINKS = ("url", "external_url", "image", "banner_image")


def lint_json(body: bytes, findings: Findings, now: datetime) -> dict[int, str]:
    """Check an uncompressed JSON Feed, and give the place of each item by its number from 1.

    Nothing is checked of JSON that is broken: the parser has said so.
    """
    try:
        feed = json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(feed, dict):
        return {}
    if not _text(feed, "title"):
        findings.add("json.title", "title")
    for name in ("home_page_url", "feed_url", "icon", "favicon", "next_url"):
        _check_link(feed, name, name, findings)
    items = feed.get("items")
    places: dict[int, str] = {}
    seen: dict[str, str] = {}
    for number, item in enumerate(items if isinstance(items, list) else (), 1):
        if isinstance(item, dict):
            named = label(_text(item, "url"), _text(item, "external_url"), _text(item, "title"))
            places[number] = place = f"item {number}, {named}" if named else f"item {number}"
            _check_item(item, place, seen, findings)
            _check_dates(item, place, findings, now)
    return places


def _check_item(item: dict[str, Any], place: str, seen: dict[str, str], findings: Findings) -> None:
    identity = item.get("id")
    key = "" if identity is None else str(identity)[:2_000].strip()
    if not key:
        findings.add("json.id", place)
        if not _text(item, "url") and not _text(item, "external_url"):
            findings.add("entry.identity", place)
    elif seen.setdefault(key, place) is not place:
        findings.add("json.id-duplicate", place, f"{key[:100]!r} is also that of {seen[key].partition(',')[0]}")
    if not isinstance(item.get("content_html"), str) and not isinstance(item.get("content_text"), str):
        findings.add("json.content", place)
    for name in _LINKS:
        _check_link(item, name, place, findings)
    attachments = item.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else ():
        if isinstance(attachment, dict):
            for name in ("url", "mime_type"):
                if not _text(attachment, name):
                    findings.add("json.attachment", place, name)


def _check_dates(item: dict[str, Any], place: str, findings: Findings, now: datetime) -> None:
    texts = [text for name in ("date_published", "date_modified") if (text := _text(item, name))]
    for text in texts:
        moment = instant(text)
        if moment is None:
            continue  # the parser has said so
        if not fits_rfc3339(text):
            findings.add("json.date-form", place, f"{text[:60]!r} is not of that form")
        if in_future(moment, now, zone=parse_date(text).zone):
            findings.add("entry.future", place, text[:60])
    if not texts:
        findings.add("entry.undated", place)


def _check_link(value: dict[str, Any], name: str, place: str, findings: Findings) -> None:
    address = _text(value, name)
    if address and not is_absolute(address):
        findings.add("json.link", place, f"{name} is {address[:100]!r}")


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found.strip() if isinstance(found, str) else ""
