"""Reports as pages of HTML that stand alone: styles and plots inside, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from monitor.core.coverage import KINDS, REASONS, Coverage
from monitor.core.coverage_data import lag_data
from monitor.core.reconcile import when
from monitor.model import SourceKind
from monitor.report import svg
from monitor.report.trust import TrustReport

ROWS = 500
"""Pages that a list of the page shows; the JSON and CSV reports have more."""

STYLE = """
:root{--ink:#1c1917;--paper:#fff;--bar:#44403c;--guide:#e7e5e4;--soft:#78716c}
@media(prefers-color-scheme:dark){:root{--ink:#e7e5e4;--paper:#1c1917;--bar:#d6d3d1;--guide:#44403c;--soft:#a8a29e}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--guide)}
p.sub,.note{color:var(--soft)}svg{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}
svg text{fill:var(--ink)}.small{font-size:11px}.tiny{font-size:9px}.axis{stroke:var(--soft)}
.guide{stroke:var(--guide)}.link{stroke:var(--bar);stroke-width:3}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .5rem;vertical-align:top;
border-bottom:1px solid var(--guide);overflow-wrap:anywhere}td.n,th.n{text-align:right}
.key span{display:inline-block;margin-right:1rem}.key i{display:inline-block;width:.8em;height:.8em;
margin-right:.3em;border-radius:2px}.warn{border-left:4px solid #b45309;padding:.3rem .8rem}
details{margin:.4rem 0}summary{cursor:pointer;font-weight:600}
@media print{details{display:block}}
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole document."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escape(title)}</title><style>{STYLE}</style></head>\n'
        f"<body>\n{''.join(parts)}</body></html>\n"
    )


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers to the right, http(s) addresses as links."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>\n"


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="n">{value:,}</td>'
    words = str(value)
    shown = escape(words)
    if words.startswith(("http://", "https://")):
        return f'<td><a href="{shown}" rel="noreferrer nofollow">{shown}</a></td>'
    return f"<td>{shown}</td>"


def key(kinds: Sequence[SourceKind]) -> str:
    """Which colour is which source."""
    parts = [f'<span><i style="background:{svg.COLOURS[kind]}"></i>{svg.NAMES[kind]}</span>' for kind in kinds]
    return f'<p class="key">{"".join(parts)}</p>\n'


def coverage_page(reports: Sequence[Coverage]) -> str:
    """Coverage reports as one page."""
    names = ", ".join(report.site for report in reports)
    return page(f"Coverage of {names}", [part for report in reports for part in _coverage(report)])


def lag_page(reports: Sequence[Coverage]) -> str:
    """The lags of sites as one page."""
    parts = []
    for report in reports:
        parts.append(f"<h1>From publication to the first listing: {escape(report.site)}</h1>\n")
        if any(report.lags.values()):
            kinds = [kind for kind in KINDS if report.lags.get(kind)]
            parts.append(
                key(kinds) + svg.distribution(report.lags, "Share of pages that a source showed within a time")
            )
            parts.append(lag_table(report))
        else:
            parts.append("<p>No page with a date of publication has come since the sources are watched.</p>\n")
    return page(f"Lag of {', '.join(report.site for report in reports)}", parts)


def trust_page(files: Sequence[TrustReport]) -> str:
    """The trust of sitemap files as one page."""
    parts = ["<h1>How far lastmods are worth believing</h1>\n"]
    parts.append(svg.scores([(one.url, one.score, one.verdict) for one in files[:60]], "Score of each sitemap file"))
    rows = [(one.site, one.url, one.verdict, one.score, one.urls, one.dated, one.evidence) for one in files]
    parts.append(table(["site", "file", "verdict", "score", "URLs", "dated", "evidence"], rows))
    return page("Lastmod trust", parts)


def _coverage(report: Coverage) -> Iterable[str]:
    kinds = [kind for kind in KINDS if report.sources[kind]]
    since = f"pages known since {when(report.since)}" if report.since is not None else "all pages known"
    yield f"<h1>Coverage of {escape(report.site)}</h1>\n"
    yield f'<p class="sub">{report.union:,} pages; {since}, as of {when(report.until)}</p>\n'
    if report.why:
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in report.why)
        yield f'<div class="warn">The report is not complete:<ul>{reasons}</ul></div>\n'
    yield "<h2>Which source has what</h2>\n"
    yield svg.upset(dict(report.sources), report.combinations, report.union)
    yield '<p class="note">A column is the pages that exactly the marked sources have.</p>\n'
    yield "<h2>What each source lacks</h2>\n"
    yield from _missing(report, kinds)
    yield "<h2>By section</h2>\n" + key(kinds)
    yield svg.bars(report.sections[:25], kinds, "Pages of each source by section")
    yield from _over_time(report, kinds)
    yield "<h2>From publication to the first listing</h2>\n"
    if any(report.lags.values()):
        yield key(kinds) + svg.distribution(report.lags, "Share of pages that a source showed within a time")
        yield lag_table(report)
    else:
        yield "<p>No page with a date of publication has come since the sources are watched.</p>\n"
    yield from _oddities(report)


def _missing(report: Coverage, kinds: Sequence[SourceKind]) -> Iterable[str]:
    yield '<p class="note">Only what a source could know counts: see the reasons.</p>\n'
    for kind in kinds:
        count, lacks = report.missing_counts[kind], report.missing[kind][:ROWS]
        name = f"{svg.NAMES[kind]} lacks {count:,} page{'' if count == 1 else 's'}"
        if not lacks:
            yield f"<p>{name}</p>\n"
            continue
        more = f'<p class="note">and {count - len(lacks):,} more</p>' if count > len(lacks) else ""
        rows = [
            (lack.url, ", ".join(svg.NAMES[one] for one in lack.seen_in), when(lack.first_at), REASONS[lack.reason])
            for lack in lacks
        ]
        shown = table(["page", "seen in", "first seen", f"the {svg.NAMES[kind]} …"], rows)
        yield f"<details{' open' if count <= 25 else ''}><summary>{name}</summary>{shown}{more}</details>\n"


def _over_time(report: Coverage, kinds: Sequence[SourceKind]) -> Iterable[str]:
    yield "<h2>New pages by day</h2>\n"
    if not report.days:
        yield "<p>No page has come since the sources are watched.</p>\n"
        return
    span = range(max(min(report.days), max(report.days) - 365), max(report.days) + 1)
    none = dict.fromkeys(KINDS, 0)
    rows = [((when(day * 86400.0) or "")[:10], report.days.get(day, none)) for day in span]
    yield key(kinds) + svg.days(rows, kinds, "Pages that each source first listed, by day")


def lag_table(report: Coverage) -> str:
    """Percentiles of the lag of each source, in seconds."""
    rows = [(svg.NAMES[kind], *lag_data(lags).values()) for kind, lags in report.lags.items() if lags]
    return table(["source", "pages", "median, s", "90 %, s", "99 %, s"], rows)


def _oddities(report: Coverage) -> Iterable[str]:
    if report.off_host:
        yield "<h2>On hosts that are not the site's</h2>\n"
        rows = [(svg.NAMES[one["kind"]], one["url"], one["count"], one["sample"][0]) for one in report.off_host[:ROWS]]
        yield table(["source", "document", "pages", "such as"], rows)
    if report.disallowed:
        yield "<h2>Linked, and disallowed by robots.txt</h2>\n"
        yield table(["page"], [(one["url"],) for one in report.disallowed[:ROWS]])
    if report.duplicates:
        yield "<h2>Perhaps the same page</h2>\n"
        yield table(["page", "and", "they"], [(*one["urls"][:2], one["why"]) for one in report.duplicates[:ROWS]])
