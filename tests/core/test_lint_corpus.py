"""Lint over real documents: no exception, and no error where the origin of a file says that there is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.core.lint import lint
from tests.corpus import corpus_path, expectations, members

NOW = datetime(2026, 12, 1, tzinfo=UTC)
VALIDATOR = "feeds/w3c-feedvalidator.tar.gz"
# Documents of AtomPub and OpenSearch: sound, but neither feed nor sitemap.
_NO_FEEDS = ("ext/app/", "opensearch/")
_RULES = {
    "InvalidRFC2822Date": {"rss.date-form", "rss.weekday", "entry.date", "feed.date"},
    "DuplicateAtomLink": {"atom.alternates"},
    "MissingHref": {"atom.href"},
    "SAXError": {"xml.malformed", "xml.cut", "xml.damaged"},
    "UnknownEncoding": {"encoding.unknown"},
    "ImplausibleDate": {"entry.future", "entry.date", "feed.date"},
    "MissingNamespace": {"atom.namespace", "xml.malformed"},
    "UndeclaredPrefix": {"xml.malformed", "xml.prefix"},
    "DuplicateEntries": {"atom.id-duplicate"},
}
"""What the W3C's feed validator calls a mistake, and the rules of ours that say so."""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["feeds", "sitemaps"])
def test_real_documents_give_reports(folder: str) -> None:
    count = 0
    for archive in sorted((corpus_path() / folder).glob("*.tar.gz")):
        for _name, data in members(f"{folder}/{archive.name}"):
            lint(data, None, now=NOW)
            count += 1
    assert count > 50


def test_what_the_w3c_calls_sound_has_no_error() -> None:
    corpus_path()
    sound = {
        line["file"]
        for line in expectations("feed")
        if line["archive"] == VALIDATOR and line.get("must_not_report") == "Error"
    }
    wrong = {
        name: [finding for finding in lint(data, None, now=NOW).findings if finding.severity == "error"]
        for name, data in members(VALIDATOR)
        if name in sound and not name.startswith(_NO_FEEDS)
    }
    assert len(wrong) > 20
    assert {name: errors for name, errors in wrong.items() if errors} == {}


def test_what_the_w3c_calls_wrong_is_found() -> None:
    corpus_path()
    wanted = {
        line["file"]: rules
        for line in expectations("feed")
        if line["archive"] == VALIDATOR
        and (rules := _RULES.get(line.get("must_report", "")))
        and not line["file"].startswith(_NO_FEEDS)
    }
    missed = {
        name: wanted[name]
        for name, data in members(VALIDATOR)
        if name in wanted and wanted[name].isdisjoint(f.rule for f in lint(data, None, now=NOW).findings)
    }
    assert wanted
    assert missed == {}
