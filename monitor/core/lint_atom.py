"""The rules of Atom (pure). Source: RFC 4287; the section of each rule stands in the table of rules."""

from __future__ import annotations

from typing import Any

from lxml import etree

from monitor.core.lint_dates import fits_rfc3339
from monitor.core.lint_entries import Marks, children, first, first_text, is_absolute, label
from monitor.core.sitemap_rows import text_of

NAMESPACE = "http://www.w3.org/2005/Atom"
_ONCE = ("id", "title", "updated")
_BASE = "{http://www.w3.org/XML/1998/namespace}base"


def lint_atom(root: Any, marks: Marks) -> None:
    """Check a document whose root is `feed` (or a lone `entry`), of Atom 1.0."""
    namespace = etree.QName(root).namespace or ""
    if namespace != NAMESPACE:
        marks.add("atom.namespace", root, f"it is {namespace[:100]!r}")
    if etree.QName(root).localname == "feed":
        _check_once(root, "atom.feed-field", marks)
        _check_links(root, marks)
        for element in children(root, "updated"):
            marks.date(element, "atom.date-form", fits_rfc3339)
        if first(root, "author") is None and not all(map(_has_author, marks.items)):
            marks.add("atom.author", root)
    for entry in marks.items:
        _check_entry(entry, marks)


def _check_once(element: Any, rule: str, marks: Marks, entry: Any = None) -> None:
    """`id`, `title` and `updated` must be there once; a title may be empty."""
    for name in _ONCE:
        found = list(children(element, name))
        if not found or (name != "title" and not text_of(found[0])):
            marks.add(rule, element, name)
        for again in found[1:]:
            marks.add("atom.repeated", again, name, entry=entry)
    identity = first(element, "id")
    if identity is not None and (text := text_of(identity)) and not is_absolute(text):
        marks.add("atom.id-uri", identity, f"{text[:100]!r} has no scheme", entry=entry)


def _has_author(entry: Any) -> bool:
    source = first(entry, "source")
    return first(entry, "author") is not None or (source is not None and first(source, "author") is not None)


def _check_entry(entry: Any, marks: Marks) -> None:
    _check_once(entry, "atom.entry-field", marks, entry)
    identity = first_text(entry, "id")
    if identity:
        marks.unique("atom.id-duplicate", identity, entry)
    elif first(entry, "link") is None:
        marks.add("entry.identity", entry)
    for element in children(entry, "updated", "published"):
        marks.date(element, "atom.date-form", fits_rfc3339, entry=entry)
    _check_links(entry, marks, entry)
    rels = [(link.get("rel") or "alternate") for link in children(entry, "link")]
    if first(entry, "content") is None and "alternate" not in rels:
        marks.add("atom.alternate", entry)


def _check_links(element: Any, marks: Marks, entry: Any = None) -> None:
    seen = set()
    for link in children(element, "link"):
        href = (link.get("href") or "").strip()
        if link.get("href") is None:
            marks.add("atom.href", link, entry=entry)
        elif not is_absolute(href) and not any(above.get(_BASE) for above in (link, *link.iterancestors())):
            marks.add("atom.relative", link, f"{href[:100]!r} has no host", entry=entry)
        if (link.get("rel") or "alternate") == "alternate":
            kind = (link.get("type"), link.get("hreflang"))
            if kind in seen:
                marks.add(
                    "atom.alternates", link, f"another one has type {kind[0]} and hreflang {kind[1]}", entry=entry
                )
            seen.add(kind)


def entry_label(entry: Any) -> str:
    """An entry's link, else its title."""
    hrefs = [
        (link.get("href") or "").strip()
        for link in children(entry, "link")
        if (link.get("rel") or "alternate") == "alternate"
    ]
    return label(*hrefs, first_text(entry, "title"), first_text(entry, "id"))
