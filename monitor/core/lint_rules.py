"""What lint finds, and the table of all rules: severity, where the rule is written, what a publisher should do (pure).

Rule ids that `parse_feed` and `parse_sitemap` give to their problems stand here beside those of lint's own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from monitor.core.lint_table import TABLE
from monitor.model import Problem

Severity = Literal["error", "warning", "note"]

MAX_PLACES = 20
"""Places of one rule that are listed; further ones are counted."""

MAX_DETAIL = 300
"""Characters of a document's own text that a finding repeats."""

_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of one rule at one place.

    `rule` is a stable id such as ``row.relative``; `place` a line, row or element, with the URL of the row where it has
    one; `message` one sentence on what to do; `source` where the rule is written. The last finding of a rule that was
    broken more than `MAX_PLACES` times stands for all further places: `count` is their number.
    """

    rule: str
    severity: Severity
    place: str
    message: str
    source: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """`sentence` may hold ``{detail}``, which is where what was found at the place is told."""

    severity: Severity
    source: str
    sentence: str


def _rules() -> dict[str, Rule]:
    severities: dict[str, Severity] = {"E": "error", "W": "warning", "N": "note"}
    return {rule: Rule(severities[mark], source, sentence) for rule, mark, source, sentence in TABLE}


RULES: dict[str, Rule] = _rules()
"""Every rule by its id."""

# A problem that a parser learns to see later is shown before this table knows it.
_UNKNOWN = Rule("warning", "monitor", "{detail}")


class Findings:
    """Collects findings, bounded however often a rule is broken."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Finding]] = {}
        self._more: Counter[str] = Counter()

    def add(self, rule: str, place: str, detail: str = "") -> None:
        """Note that `rule` is broken at `place`."""
        kept = self._kept.setdefault(rule, [])
        if len(kept) >= MAX_PLACES:
            self._more[rule] += 1
            return
        known = RULES.get(rule, _UNKNOWN)
        said = detail if len(detail) <= MAX_DETAIL else f"{detail[:MAX_DETAIL]}..."
        kept.append(Finding(rule, known.severity, place, known.sentence.format(detail=said), known.source))

    def problem(self, problem: Problem, place: str = "") -> None:
        """Note a parser's problem, at its own place unless a better one is known."""
        self.add(problem.rule, place or problem.place, problem.message.rstrip("."))

    def __contains__(self, rule: str) -> bool:
        return rule in self._kept

    def result(self) -> tuple[Finding, ...]:
        """All findings: errors first, those of one rule together, in the order of the document."""
        found: list[Finding] = []
        for rule, kept in self._kept.items():
            found += kept
            if more := self._more[rule]:
                first = kept[0]
                said = f"The same is found at {more} further places."
                found.append(Finding(rule, first.severity, f"{more} further places", said, first.source, more))
        return tuple(sorted(found, key=lambda finding: _RANK[finding.severity]))
