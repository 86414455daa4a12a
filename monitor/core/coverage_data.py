"""A coverage report as JSON (CONTRACT "Coverage report, JSON"; pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.core.coverage import KINDS, Coverage
from monitor.core.reconcile import when


def report_data(report: Coverage) -> dict[str, Any]:
    """The report as JSON (CONTRACT "Coverage report, JSON")."""
    return {
        "site": report.site,
        "since": when(report.since),
        "until": when(report.until),
        "complete": not report.why,
        "why": list(report.why),
        "sources": dict(report.sources),
        "union": report.union,
        "combinations": [
            {"in": list(kinds), "count": count, "share": round(count / report.union, 4)}
            for kinds, count in report.combinations
        ],
        "missing": {
            kind: [
                {
                    "url": lack.url,
                    "seen_in": list(lack.seen_in),
                    "first_seen": when(lack.first_at),
                    "reason": lack.reason,
                }
                for lack in lacks
            ]
            for kind, lacks in report.missing.items()
        },
        "missing_counts": dict(report.missing_counts),
        "sections": [{"prefix": prefix, **counts} for prefix, counts in report.sections],
        "over_time": [
            {"day": (when(day * 86400.0) or "")[:10], **counts} for day, counts in sorted(report.days.items())
        ],
        "lag_seconds": {
            kind: lag_data(report.lags.get(kind, [])) for kind in KINDS if kind != "crawl" or report.lags.get(kind)
        },
        "off_host": report.off_host,
        "disallowed": report.disallowed,
        "duplicates": report.duplicates,
    }


def lag_data(lags: Sequence[float]) -> dict[str, int]:
    """Number and percentiles of sorted seconds; empty for none."""
    if not lags:
        return {}
    return {"n": len(lags)} | {f"p{share}": round(percentile(lags, share / 100)) for share in (50, 90, 99)}


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of sorted `values` do not exceed (nearest rank)."""
    return values[max(0, -int(-share * len(values) // 1) - 1)]
