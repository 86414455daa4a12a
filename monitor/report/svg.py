"""Plots as inline SVG: values in, text out. Everything that comes from a site is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from monitor.model import SourceKind

COLOURS: dict[SourceKind, str] = {
    "feed": "#c2410c",
    "news_sitemap": "#7c3aed",
    "sitemap": "#0369a1",
    "crawl": "#15803d",
}
NAMES: dict[SourceKind, str] = {"feed": "feed", "news_sitemap": "news sitemap", "sitemap": "sitemap", "crawl": "crawl"}


TICKS = (
    ("1s", 1), ("10s", 10), ("1m", 60), ("10m", 600), ("1h", 3600), ("6h", 21600), ("1d", 86400), ("7d", 604800),
    ("30d", 2592000),
)  # fmt: skip


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> str:
    """A text at a place; `anchor` is SVG's, `kind` a class."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, colour: str, title: str = "") -> str:
    """A bar; `title` is shown where the pointer rests on it."""
    told = f"<title>{escape(title)}</title>" if title else ""
    size = f'width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}">{told}</rect>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> str:
    """A straight line of a class."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def frame(width: float, height: float, parts: Sequence[str], label: str) -> str:
    """The parts as one picture that scales with the page; `label` says what it shows."""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}" '
        f'style="max-width:{width:.0f}px">{"".join(parts)}</svg>'
    )


def upset(
    sources: Mapping[SourceKind, int], combinations: Sequence[tuple[Sequence[SourceKind], int]], union: int
) -> str:
    """Which pages the sources share: a column for each combination, dots for the sources in it (an UpSet plot)."""
    kinds = [kind for kind, count in sources.items() if count]
    shown = combinations[:16]
    most = max((count for _kinds, count in shown), default=1)
    left, top, step, row = 230.0, 150.0, 44.0, 26.0
    widest = max(sources.values(), default=1) or 1
    parts = []
    for place, kind in enumerate(kinds):
        y = top + 26 + row * place
        share = 90 * sources[kind] / widest
        parts += [
            rect(left - 110 - share + 90, y - 8, share, 16, COLOURS[kind], f"{NAMES[kind]}: {sources[kind]:,} pages"),
            text(0, y + 4, f"{NAMES[kind]} {sources[kind]:,}"),
        ]
        parts.append(line(left, y, left + step * len(shown), y, "guide"))
    for place, (members, count) in enumerate(shown):
        x = left + step * (place + 0.5)
        height = (top - 30) * count / most
        title = f"{' + '.join(NAMES[kind] for kind in members)}: {count:,} pages, {count / max(union, 1):.1%}"
        parts.append(rect(x - 13, top - height, 26, max(height, 1), "var(--bar)", title))
        parts.append(text(x, top - height - 5, f"{count:,}", anchor="middle", kind="small"))
        rows = [kinds.index(kind) for kind in members if kind in kinds]
        if rows:
            parts.append(line(x, top + 26 + row * min(rows), x, top + 26 + row * max(rows), "link"))
        for number, kind in enumerate(kinds):
            colour = COLOURS[kind] if kind in members else "var(--guide)"
            parts.append(f'<circle cx="{x:.1f}" cy="{top + 26 + row * number:.1f}" r="7" fill="{colour}"/>')
    label = "Pages by the combination of sources that have them"
    return frame(left + step * max(len(shown), 1) + 10, top + 40 + row * len(kinds), parts, label)


def bars(rows: Sequence[tuple[str, Mapping[SourceKind, int]]], kinds: Sequence[SourceKind], label: str) -> str:
    """Horizontal bars, a group for each row and a bar for each kind."""
    most = max((counts[kind] for _name, counts in rows for kind in kinds), default=1) or 1
    parts, y, thick = [], 6.0, 9.0
    for name, counts in rows:
        short = name if len(name) <= 30 else f"{name[:29]}…"
        parts.append(text(196, y + thick * len(kinds) / 2 + 4, short, anchor="end"))
        for place, kind in enumerate(kinds):
            width = 420 * counts[kind] / most
            title = f"{name}: {counts[kind]:,} in {NAMES[kind]}"
            parts.append(rect(204, y + thick * place, width, thick - 1, COLOURS[kind], title))
            parts.append(text(208 + width, y + thick * place + 8, f"{counts[kind]:,}", kind="tiny"))
        y += thick * len(kinds) + 8
    return frame(700, y + 4, parts, label)


def days(rows: Sequence[tuple[str, Mapping[SourceKind, int]]], kinds: Sequence[SourceKind], label: str) -> str:
    """A line for each kind over days, (day, counts) each, gaps between days as wide as they are in `rows`."""
    most = max((counts[kind] for _day, counts in rows for kind in kinds), default=1) or 1
    left, width, height = 46.0, 640.0, 170.0
    step = width / max(len(rows) - 1, 1)
    parts = [line(left, 10, left, 10 + height), line(left, 10 + height, left + width, 10 + height)]
    parts += [
        text(left - 6, 14 + height * (1 - share), f"{most * share:,.0f}", anchor="end", kind="small")
        for share in (0.0, 0.5, 1.0)
    ]
    for kind in kinds:
        points = [(left + step * n, 10 + height * (1 - counts[kind] / most)) for n, (_d, counts) in enumerate(rows)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2"/>')
        for (x, y), (day, counts) in zip(points, rows, strict=True):
            title = f"{day}: {counts[kind]:,} first in {NAMES[kind]}"
            dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[kind]}">'
            parts.append(f"{dot}<title>{escape(title)}</title></circle>")
    for place in sorted({0, len(rows) // 2, len(rows) - 1}) if rows else ():
        anchor = "start" if place == 0 else "end" if place == len(rows) - 1 else "middle"
        parts.append(text(left + step * place, 28 + height, rows[place][0], anchor=anchor, kind="small"))
    return frame(left + width + 14, height + 36, parts, label)


def distribution(lags: Mapping[SourceKind, Sequence[float]], label: str) -> str:
    """The share of pages that each kind showed within a time, on a logarithmic axis from a second to 30 days.

    `lags` are sorted seconds.
    """
    left, width, height = 46.0, 640.0, 190.0
    end = math.log10(2592000)

    def place(seconds: float) -> float:
        return left + width * min(1.0, math.log10(max(1.0, seconds)) / end)

    parts = [line(left, 10, left, 10 + height), line(left, 10 + height, left + width, 10 + height)]
    for name, seconds in TICKS:
        x = place(seconds)
        parts += [line(x, 10, x, 10 + height, "guide"), text(x, 28 + height, name, anchor="middle", kind="small")]
    for share in (0.0, 0.5, 0.9, 1.0):
        y = 10 + height * (1 - share)
        parts += [line(left, y, left + width, y, "guide"), text(left - 6, y + 4, f"{share:.0%}", anchor="end")]
    for kind, values in lags.items():
        if not values:
            continue
        step = max(1, len(values) // 200)
        chosen = [*range(0, len(values), step), len(values) - 1]
        steps = [f"M{place(values[0]):.1f},{10 + height:.1f}"]
        steps += [f"H{place(values[n]):.1f}V{10 + height * (1 - (n + 1) / len(values)):.1f}" for n in chosen]
        steps.append(f"H{left + width:.1f}")
        title = f"<title>{escape(NAMES[kind])}: {len(values):,} pages</title>"
        parts.append(f'<path d="{"".join(steps)}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2">{title}</path>')
    return frame(left + width + 14, height + 36, parts, label)


VERDICTS = {"trusted": "#15803d", "untrusted": "#b91c1c", "unknown": "#78716c"}


def scores(rows: Sequence[tuple[str, float | None, str]], label: str) -> str:
    """A bar from 0 to 1 for each (name, score, verdict)."""
    parts, y = [], 6.0
    for name, score, verdict in rows:
        short = name if len(name) <= 46 else f"…{name[-45:]}"
        told = "no lastmods" if score is None else f"{score:.2f} {verdict}"
        width = 300 * (score or 0.0)
        parts += [
            text(290, y + 11, short, anchor="end", kind="small"),
            rect(300, y, 300, 14, "var(--guide)"),
            rect(300, y, width, 14, VERDICTS[verdict], f"{name}: {told}"),
            text(606, y + 11, told, kind="small"),
        ]
        y += 20
    return frame(720, y + 4, parts, label)
