"""URL lists of other crawlers: each form, damaged and odd ones."""

from __future__ import annotations

import pytest

from monitor.core.crawl_file import NoURLsError, Tally, crawl_urls, form_of

A, B = "https://e.example/a", "https://e.example/b?x=1"

SCREAMING_FROG = f"""\ufeff"Internal - HTML"
"Address","Content Type","Status Code","Title 1"
"{A}","text/html; charset=UTF-8","200","One, ""two"",
three"
"https://e.example/moved","text/html","301",""
"https://e.example/i.png","image/png","200",""
"{B}","text/html","200","B"
"""

CASES = {
    "list": ("list", f"# my list\n\n{A}\n  {B}  \n"),
    "one line": ("list", f"{A}\n{B}"),
    "screaming frog": ("csv", SCREAMING_FROG),
    "sitebulb": ("csv", f"Crawl Depth;URL;HTTP Status Code\n0;{A};200\n1;{B};200\n2;https://e.example/gone;404\n"),
    "tabs": ("csv", f"n\turl\n1\t{A}\n2\t{B}\n"),
    "name unknown": ("csv", f"rank,Seite,words\n1,{A},10\n2,{B},12\n"),
    "links beside": ("csv", f"Canonical,Address\nhttps://e.example/c,{A}\nhttps://e.example/c,{B}\n"),
    "no header": ("csv", f"{A},200,x\n{B},200,y\n"),
    "scrapy": ("jsonl", f'{{"url": "{A}", "status": 200}}\n{{"url": "{B}"}}\n{{"url": "{A}x", "status": 500}}\n'),
    "other names": ("jsonl", f'{{"title": "t", "Address": "{A}"}}\n{{"id": 1, "whatever": "{B}"}}\n'),
    "cdxj": (
        "cdxj",
        "!OpenWayback-CDXJ 1.0\n"
        f'example,e)/a 20261201000000 {{"url": "{A}", "status": "200", "mime": "text/html"}}\n'
        f'example,e)/i 20261201000000 {{"url": "https://e.example/i", "status": "200", "mime": "image/png"}}\n'
        f'example,e)/b 20261201000000 {{"url": "{B}", "status": "200"}}\n',
    ),
}


def read(text: str) -> tuple[list[str], Tally]:
    tally = Tally()
    return list(crawl_urls(text.splitlines(keepends=True), tally)), tally


@pytest.mark.parametrize(("form", "text"), CASES.values(), ids=list(CASES))
def test_the_urls_of_each_form(form: str, text: str) -> None:
    urls, tally = read(text)
    assert (urls, tally.form, tally.unreadable) == ([A, B], form, 0)
    assert tally.others == (2 if "Screaming" in text or "Internal" in text else tally.others)


def test_what_cannot_be_read_is_counted_and_stops_nothing() -> None:
    for text in (
        f"{A}\nnot a url\nftp://e.example/x\n{B}\n",
        f'{{"url": "{A}"}}\n{{"url": \n["{A}"]\n{{"url": "{B}"}}\n',
        f"n,url\n1,{A}\n2,no\n3,{'x' * 200_000}\n4,{B}\n",
    ):
        urls, tally = read(text)
        assert (urls, tally.unreadable) == ([A, B], 2), text[:50]


def test_a_table_without_addresses_says_what_it_has() -> None:
    with pytest.raises(NoURLsError, match=r"no column of it holds http or https addresses \(name, size\)"):
        read("name,size\nx,1\ny,2\n")
    with pytest.raises(NoURLsError):
        read("")


def test_the_form_is_told_by_the_first_line() -> None:
    assert form_of([f"{A}, {B}\n"]) == "list"
    assert form_of(["\n", f"{A}\n"]) == "list"
    assert form_of(["Address\n", f"{A}\n"]) == "csv"
