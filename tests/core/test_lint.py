"""What lint tells of a document beside its rules: kind, places, bounds, and how it was answered."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from monitor.core.decode import CAP
from monitor.core.http import Failure, Redirect, Reply
from monitor.core.lint_rules import MAX_PLACES, Findings
from monitor.model import Problem
from tests.core.lint_documents import (
    ENTRY,
    ITEM,
    JSON_ITEM,
    NEWS,
    ROW,
    SITE,
    SOUND,
    URL,
    atom,
    check,
    index,
    json_feed,
    news,
    only,
    rss,
    rules,
    urlset,
)

FINE = {"content-type": "application/xml", "etag": '"1"'}


def reply(data: bytes, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(URL, URL, 200, FINE | named, data, complete=True)


def http_rules(answer: Reply) -> list[str]:
    return sorted({finding.rule for finding in check(answer.body, URL, answer).findings})


@pytest.mark.parametrize(
    ("name", "kind", "form", "size"),
    [
        ("urlset", "sitemap", "urlset", 1),
        ("news", "news_sitemap", "urlset", 1),
        ("index", "sitemap", "index", 1),
        ("text", "sitemap", "text", 2),
        ("rss", "feed", "rss20", 1),
        ("atom", "feed", "atom10", 1),
        ("rdf", "feed", "rdf", 1),
        ("json", "feed", "json11", 1),
    ],
)
def test_the_bytes_tell_what_a_document_is_compressed_or_not(name: str, kind: str, form: str, size: int) -> None:
    for data in (SOUND[name], gzip.compress(SOUND[name])):
        report = check(data)
        assert (report.kind, report.form, report.size, report.complete) == (kind, form, size, True)
        assert report.findings == ()


def test_a_finding_says_what_to_do_where_and_by_which_rule() -> None:
    finding = only(urlset(f"{ROW}<url>\n<loc>/b</loc></url>"), "row.relative")
    assert finding.severity == "error"
    assert finding.place == "line 4, /b"
    assert finding.source == "sitemaps.org protocol"
    assert finding.message.startswith("Write the whole address, with scheme and host: ")
    assert "'/b'" in finding.message
    assert finding.count == 1


@pytest.mark.parametrize(
    ("data", "rule", "place"),
    [
        (b"\n\n" + rss(ITEM + ITEM), "rss.guid-duplicate", "line 5, https://e.example/a"),
        (rss(ITEM.replace("Tue, 01 Dec 2026 09:00:00 GMT", "today")), "entry.date", "line 2, https://e.example/a"),
        (rss(ITEM.replace("<guid>", '<guid isPermaLink="no">')), "rss.permalink-value", "line 2, https://e.example/a"),
        (
            rss(ITEM.replace("<guid>", '<guid isPermaLink="no">&nbsp;')),
            "rss.permalink-value",
            "entry 1, https://e.example/a",
        ),
        (b'<?xml version="1.0"?>\n\n' + rss(ITEM + "<item><title>&</title></item>"), "xml.malformed", "line 5"),
        (
            b"<!DOCTYPE rss [<!ENTITY x 'y'>]>\n" + rss(ITEM + "<item>&x;<title>&</title></item>"),
            "xml.malformed",
            "line 4",
        ),
        (urlset(f"{ROW}</x>").replace(b"<urlset", b"<urlset\n"), "xml.damaged", "line 5"),
        (atom(ENTRY + ENTRY), "atom.id-duplicate", "line 3, https://e.example/a"),
        (json_feed(f"{JSON_ITEM}, {JSON_ITEM}"), "json.id-duplicate", "item 2, https://e.example/a"),
        (f"{SITE}/a\n{SITE}/b\n{SITE}/a\n".encode(), "loc.duplicate", f"row 3, {SITE}/a"),
        (urlset(f"{ROW}\n<url><loc>/b</loc></url>").replace(b"</urlset>", b""), "row.relative", "row 2, /b"),
        (b"<p>Warning</p>\n" + urlset("<url><loc>/b</loc></url>", declaration=""), "row.relative", "row 1, /b"),
    ],
)
def test_a_place_is_a_line_with_the_address_of_its_row(data: bytes, rule: str, place: str) -> None:
    assert only(data, rule).place == place


def test_a_rule_that_is_broken_everywhere_is_listed_twenty_times_and_counted() -> None:
    found = check(urlset("".join(f"<url><loc>/{n}</loc></url>\n" for n in range(5_000)))).findings
    assert len(found) == MAX_PLACES + 1
    assert found[-1].count == 5_000 - MAX_PLACES
    assert found[-1].severity == "error"
    assert "4980 further places" in found[-1].message


def test_errors_come_first() -> None:
    data = urlset(f"<url><loc>{SITE}/a</loc><priority>9</priority></url><url><loc>/b</loc></url>")
    assert [finding.rule for finding in check(data).findings] == ["row.relative", "row.priority"]


def test_a_problem_that_the_table_does_not_know_is_shown_as_it_is() -> None:
    findings = Findings()
    findings.problem(Problem("new.rule", "line 1", "Something {else} is wrong."))
    (finding,) = findings.result()
    assert (finding.severity, finding.message) == ("warning", "Something {else} is wrong")


def test_of_a_file_nothing_is_said_of_hosts_and_folders() -> None:
    elsewhere = urlset("<url><loc>https://other.example/a</loc></url>")
    assert rules(elsewhere, None) == []
    assert rules(elsewhere, URL) == ["loc.host"]
    assert rules(urlset("<url><loc>/a</loc></url>"), None) == ["row.relative"]


def test_folders_of_a_sitemap_at_the_root_are_all_of_the_site() -> None:
    data = urlset("<url><loc>https://e.example/any/thing</loc></url>")
    assert rules(data, "https://e.example/sitemap.xml?page=1") == []
    assert rules(data, "https://E.example:443/sitemap.xml") == []


def test_an_html_page_in_place_of_a_feed_names_the_feed_that_it_offers() -> None:
    page = b'<html><head><link rel="alternate" type="application/rss+xml" href="/rss.xml"></head></html>'
    assert only(page, "document.html").message.endswith("it names one at https://e.example/rss.xml.")
    assert only(page, "document.html", None).message.endswith("it names one at rss.xml.")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"error": 404}', "JSON (an object), but not a JSON Feed"),
        (b"<error><code>wp_die</code></error>", "root <error>"),
        (b"not here", "text"),
        (b"<urlset><url><loc>https://e.example/a", "damaged"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
    ],
)
def test_what_is_neither_feed_nor_sitemap_is_an_error_that_says_what_it_is(data: bytes, sentence: str) -> None:
    report = check(data)
    assert report.kind is None
    assert [finding.severity for finding in report.findings] == ["error"]
    assert sentence in report.findings[0].message


def test_a_file_of_over_50_mb_is_too_large_and_no_more() -> None:
    assert rules(urlset() + b"\n" * CAP) == ["size.protocol"]


def test_an_article_may_be_two_days_old_by_any_clock() -> None:
    def dated(text: str) -> list[str]:
        return rules(news(NEWS.replace("2026-12-01T08:00:00Z", text)))

    assert dated("2026-11-29T12:00:01Z") == []
    assert dated("2026-11-29") == []
    assert dated("2026-11-27") == ["news.old"]
    assert dated("2026-12-02") == []  # it is the second of December already east of here
    assert dated("2026-12-03") == ["news.date-future"]
    assert dated("2026-12-01T12:59:00Z") == []  # a clock that is fast


@pytest.mark.parametrize("code", ["en", "EN", "fil", "zh-cn", "zh-TW"])
def test_language_codes_that_google_takes(code: str) -> None:
    assert rules(news(NEWS.replace(">en<", f">{code}<"))) == []


def test_a_deprecated_tag_is_told_once_with_the_number_of_its_rows() -> None:
    block = NEWS.replace("<news:title>", "<news:genres>Blog</news:genres><news:title>")
    finding = only(urlset("".join(f"<url><loc>{SITE}/{n}</loc>{block}</url>" for n in range(30))), "news.deprecated")
    assert "news:genres, in 30 of the rows" in finding.message
    assert finding.severity == "note"


def test_white_space_is_wrong_before_a_declaration_only() -> None:
    assert rules(b"\n" + urlset(declaration="")) == []
    assert rules(b"\n" + urlset()) == ["xml.blank"]


@pytest.mark.parametrize(
    ("rule", "severity"),
    [
        ("gzip.cap", "error"),
        ("rows.cap", "error"),
        ("size.cap", "error"),
        ("feed.damaged", "error"),
        ("feed.too-many", "warning"),
        ("parser.failed", "warning"),
    ],
)
def test_problems_that_no_small_document_has(rule: str, severity: str) -> None:
    findings = Findings()
    findings.problem(Problem(rule, "feed", "60000 of them."))
    (finding,) = findings.result()
    assert finding.severity == severity
    assert "60000 of them" in finding.message


def test_rows_of_extensions_are_not_of_the_sitemap() -> None:
    image = '<i:image xmlns:i="http://www.google.com/schemas/sitemap-image/1.1"><i:loc>/cdn/1.png</i:loc></i:image>'
    link = '<x:link xmlns:x="http://www.w3.org/1999/xhtml" rel="alternate" hreflang="de" href="https://e.example/de"/>'
    assert rules(urlset(f"<url><loc>{SITE}/a</loc>{image}{link}</url>")) == []


def test_elements_of_extensions_are_not_of_the_feed() -> None:
    more = (
        '<m:title xmlns:m="http://search.yahoo.com/mrss/"/><i:item xmlns:i="http://purl.org/rss/1.0/modules/content/"/>'
    )
    assert rules(rss(ITEM.replace("</item>", f"{more}</item>"))) == []
    missing = rss(ITEM.replace("<title>A</title>", '<m:title xmlns:m="http://search.yahoo.com/mrss/">A</m:title>'))
    assert rules(missing) == ["rss.item-text"]


@pytest.mark.parametrize(
    "date",
    [
        "01 Dec 26 09:00 GMT",
        "Tue, 1 Dec 2026 09:00:00 +0000",
        "Mon, 30 Nov 2026 09:00:00 EST",
        "tue, 01 dec 2026 09:00 Z",
    ],
)
def test_forms_of_rfc_822(date: str) -> None:
    assert rules(rss(ITEM.replace("Tue, 01 Dec 2026 09:00:00 GMT", date))) == []


@pytest.mark.parametrize("date", ["2026-12-01", "2026-12-01T09:00Z", "2026-12-01T09:00:00.12+01:00", "2026-11", "2025"])
def test_forms_of_w3c_dates(date: str) -> None:
    assert rules(urlset(ROW.replace("2026-11-30T10:00:00+01:00", date))) == []


def test_relative_links_of_atom_with_a_base_are_right() -> None:
    entry = ENTRY.replace('href="https://e.example/a"', 'href="a"')
    assert rules(atom(entry)) == ["atom.relative"]
    assert rules(atom(entry.replace("<entry>", '<entry xml:base="https://e.example/">'))) == []


def test_an_index_may_list_sitemaps_below_its_folder_only() -> None:
    assert rules(index(f"<sitemap><loc>{SITE}/deep/1.xml</loc></sitemap>")) == []
    assert rules(index("<sitemap><loc>https://cdn.example/1.xml</loc></sitemap>")) == ["loc.host"]


def test_a_sound_answer_breaks_no_rule() -> None:
    assert http_rules(reply(SOUND["urlset"])) == []
    assert http_rules(reply(SOUND["text"], content_type="text/plain; charset=utf-8")) == []
    assert http_rules(reply(SOUND["json"], content_type="application/feed+json")) == []
    assert http_rules(reply(gzip.compress(SOUND["urlset"]), content_type="application/x-gzip")) == []


@pytest.mark.parametrize(
    ("answer", "broken"),
    [
        (replace(reply(b""), status=404), ["http.status"]),
        (replace(reply(b""), status=None, failure=Failure("dns", "no such host")), ["http.failure"]),
        (replace(reply(SOUND["rss"]), complete=False), ["http.cut"]),
        (replace(reply(SOUND["rss"]), redirects=(Redirect(302, URL),)), ["http.redirect"]),
        (replace(reply(SOUND["rss"]), headers={"content-type": "text/xml"}), ["http.validators"]),
        (reply(SOUND["rss"], content_type="text/html"), ["http.content-type"]),
        (reply(SOUND["text"]), ["http.content-type"]),
        (replace(reply(SOUND["rss"]), headers={"etag": "1"}), ["http.content-type"]),
        (reply(SOUND["urlset"], content_type="text/xml; charset=iso-8859-1"), ["encoding.header"]),
        (reply(SOUND["urlset"], content_type="text/xml; charset=utf8"), []),
    ],
)
def test_each_rule_of_answers(answer: Reply, broken: list[str]) -> None:
    assert http_rules(answer) == broken


def test_a_redirect_names_the_address_to_publish() -> None:
    answer = replace(reply(SOUND["rss"]), url="https://e.example/old", redirects=(Redirect(301, URL),))
    (finding,) = check(answer.body, URL, answer).findings
    assert finding.place == "https://e.example/old"
    assert URL in finding.message
    assert finding.severity == "note"
