"""Sites added to a text: nothing else changes, whatever the file looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.config import loads
from monitor.config_insert import CannotInsertError, Item, insert_items

FEEDS = ["https://new.example/feed"]
NEW = Item(
    {"url": "https://new.example/", "feeds": FEEDS},
    ["# new", "url: https://new.example/", "feeds:", "  - https://new.example/feed"],
)


def added(text: str) -> str:
    result = insert_items(text, [NEW])
    at = next((n for n, (a, b) in enumerate(zip(text, result, strict=False)) if a != b), len(text))
    size = len(result) - len(text)
    assert any(text == result[:start] + result[start + size :] for start in range(at + 1)), "the old text is kept whole"
    return result


def urls(text: str) -> list[str]:
    return [site.url for site in loads(text, name="x", env={}).sites]


@pytest.mark.parametrize(
    "text",
    [
        "sites:\n  - url: https://a.example/\n",
        "sites:\n  - url: https://a.example/",
        "sites:\n- url: https://a.example/\ndatabase: sqlite:///x.db\n",
        "sites:\r\n  - url: https://a.example/\r\n\r\n# end\r\ndatabase: sqlite:///x.db\r\n",
        "sites:\n  - url: https://a.example/\n    # feeds: []\n\n    # more of a\n  # of nobody\n\nalerts: [stdout]\n",
        "sites:\n  - url: |\n      https://a.example/\n",
        "sites:\n  - url: |+\n      https://a.example/\n\n\nalerts: [stdout]\n",
        "sites:\n  - url: >\n      https://a.example/\n\n  # c\n",
        "sites: &all # here\n  - &a {url: https://a.example/}\n",
        "sites: [{url: https://a.example/}]\n",
        "sites: [{url: https://a.example/} , # first\n]  # last\nalerts: [stdout]",
        "{sites: [{url: https://a.example/}], alerts: [stdout]}",
        "{alerts: [stdout], 'sites': [\n  {url: https://a.example/}\n]}\n",
        "---\nsites:\n  - url: https://a.example/\n...\n",
        "sites: !!seq\n  - url: https://a.example/\n",
        "sites:\n  - url: https://a.example/\n    feeds:\n    # - none yet\nalerts: [stdout]\n",
        "%YAML 1.2\n---\n  sites:\n    -\n        url: https://a.example/\n",
        'defaults: {poll: {min: 1m}}\n"sites":\n- # c\n  url: "https://a.example/"\n  include: ["/x # y/**"]\n',
    ],
)
def test_the_site_stands_behind_the_others(text: str) -> None:
    assert urls(added(text)) == ["https://a.example/", "https://new.example/"]


@pytest.mark.parametrize(
    "text",
    ["", "# only\n", "# only", "sites:\n", "sites: # none yet\nalerts: [stdout]\n", "alerts:\n  - stdout", "---\n"],
)
def test_a_file_without_sites_gets_its_first(text: str) -> None:
    assert urls(insert_items(text, [NEW, Item({"url": "https://b.example/"}, ["url: https://b.example/"])])) == [
        "https://new.example/",
        "https://b.example/",
    ]


def test_comments_that_speak_of_the_last_site_stay_with_it() -> None:
    text = "sites:\n  - url: https://a.example/\n    # feeds: []\n\n  # the end\n"
    assert added(text) == (
        "sites:\n  - url: https://a.example/\n    # feeds: []\n\n  # new\n  - url: https://new.example/\n    feeds:\n"
        "      - https://new.example/feed\n\n  # the end\n"
    )


@pytest.mark.parametrize(
    "text", ["sites: all\n", "x: &s [{url: https://a.example/}]\nsites: *s\n", "{alerts: [stdout]}\n"]
)
def test_where_there_is_no_safe_place_it_says_so(text: str) -> None:
    with pytest.raises(CannotInsertError):
        insert_items(text, [NEW])


_COMMENT = st.text("ab #:-[]{}'\"\t", max_size=8).map(lambda text: "# " + text)


@st.composite
def _files(draw: st.DrawFn) -> str:
    """Valid files in many styles: indents, comments and empty lines anywhere, keys before and behind, flow, block."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    number = draw(st.integers(1, 3))
    indent = draw(st.integers(0, 4))

    def filler(deep: int = 6) -> list[str]:
        width = st.integers(0, deep).map(lambda n: " " * n)
        return draw(st.lists(st.one_of(st.just(""), st.tuples(width, _COMMENT).map("".join)), max_size=3))

    lines = filler()
    if draw(st.booleans()):
        lines += ["alerts: [stdout]", *filler()]
    end = draw(st.sampled_from(["", " # x"]))
    if draw(st.booleans()):
        comma = draw(st.sampled_from(["", ","]))
        items = [f"  {{url: https://s{n}.example/}}" for n in range(number)]
        lines += ["sites: [" + end, *",\n".join(items).split("\n")]
        lines[-1] += comma + end
        lines += [*filler(), " ]" + end]
    else:
        lines += ["sites:" + end]
        for n in range(number):
            lines += [*filler(), " " * indent + f"- url: https://s{n}.example/{end}", *filler()]
            form = draw(st.sampled_from(["none", "name", "literal", "keep", "folded"]))
            inner = " " * (indent + 2)
            if form == "name":
                lines += [f"{inner}name: 's {n}'".replace(" s", "s").replace("s ", "s") + end]
            elif form != "none":
                mark = {"literal": "|", "keep": "|+", "folded": ">-"}[form]
                lines += [f"{inner}user_agent: {mark}", f"{inner}  agent", f"{inner}  # text"]
        lines += filler()
    if draw(st.booleans()):
        lines += ["database: sqlite:///x.db", *filler()]
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


@given(_files())
def test_any_valid_file_stays_valid_and_keeps_every_byte(text: str) -> None:
    before = loads(text, name="x", env={})
    result = added(text)
    after = loads(result, name="x", env={})
    assert after.sites[:-1] == before.sites
    assert after.sites[-1].feeds == tuple(FEEDS)
    assert (after.alerts, after.database, after.defaults) == (before.alerts, before.database, before.defaults)
