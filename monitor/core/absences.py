"""What a whole sitemap tree says of the pages it lacks (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitor.core.reconcile import Changes, Check, KnownPage, Rules, found_in, when


@dataclass(frozen=True, slots=True)
class Absence:
    """A page that a sitemap tree lacks, after `absent` complete reads, with all that ever listed it.

    `elsewhere` has a (kind, listed, absent) for each other document of the site that listed the page.
    """

    page: KnownPage
    kind: str
    document_url: str
    last_at: float | None
    absent: int
    elsewhere: Sequence[tuple[str, bool, int]] = ()


def judge_absences(absences: Sequence[Absence], rules: Rules) -> Changes:
    """Which pages are missing after a complete read of a tree: candidates for a look at the page itself.

    A page is missing only if every sitemap file that ever listed it has lacked it in `confirm_missing` complete
    reads. Where a feed or news sitemap lists it still, it is asked once, and missing only if it is dead itself.
    Leaving a news sitemap or a feed by age is not missing.
    """
    changes = Changes()
    for absence in absences:
        if absence.page.missing_at is not None or absence.absent < rules.confirm_missing:
            continue
        if absence.kind == "news_sitemap":
            continue
        files = [(listed, absent) for kind, listed, absent in absence.elsewhere if kind == "sitemap"]
        if any(listed or absent < rules.confirm_missing for listed, absent in files):
            continue
        # A feed or news sitemap that still lists the page speaks for it, until the page itself says otherwise.
        still = any(listed for _kind, listed, _absent in absence.elsewhere)
        if still and absence.absent > rules.confirm_missing:
            continue
        changes.checks.append(
            Check(
                absence.page.id,
                "missing",
                {
                    "reason": "removed",
                    "found_in": found_in(absence.kind, absence.document_url),
                    "missing_from": ["sitemap"],
                    "last_seen": when(absence.last_at),
                    "reads": absence.absent,
                    "proof_needed": still,
                },
            )
        )
    return changes
