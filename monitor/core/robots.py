"""robots.txt: which sitemaps a host announces, what may be fetched, how far apart (RFC 9309, over protego)."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from functools import lru_cache

from protego import Protego

from monitor.core.url import absolute, host_of, is_site_host

MAX_BYTES = 512 * 1024
"""What is read of a file; RFC 9309 section 2.5 asks for 500 KiB at least. The rest is not looked at."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LINE_END = re.compile(r"\r\n?|\n")
_SITEMAP = re.compile(r"\s*site-?maps?\s*[:\s]\s*(\S.*)", re.I)
_BARE_URL = re.compile(r"\s*(https?://\S+)\s*", re.I)
_AGENT = re.compile(r"\s*user(?:-|\s+)?agent\b\s*:?\s*(.*)", re.I)
_RULE = re.compile(r"\s*(?:allow|dis?s?al+[oa]w|diasllow)\b", re.I)
_COMPATIBLE = re.compile(r"compatible;\s*([^\s/;),]+)", re.I)
_TOKEN = re.compile(r"[^\s/;(),]+")
_NOBODY = "~nobody~"


@dataclass(frozen=True, slots=True)
class Robots:
    """What one robots.txt says. `sitemaps` are absolute URLs, each once, in the order of the file."""

    sitemaps: tuple[str, ...] = ()
    status: int = 200
    _text: str = field(default="", repr=False)

    def allows(self, url: str, user_agent: str) -> bool:
        """Whether `user_agent` may fetch `url`.

        RFC 9309 section 2.3.1: without a file (4xx, or redirects that lead nowhere) everything is allowed; when the
        server fails (5xx) or cannot be reached (status 0) nothing is, until it answers again. A URL that cannot be
        parsed is not allowed.
        """
        if not _is_read(self.status):
            return 300 <= self.status < 500
        try:
            return bool(_rules(self._text, _product(user_agent)).can_fetch(url, _product(user_agent)))
        except ValueError:
            return False

    def crawl_delay(self, user_agent: str) -> float | None:
        """Seconds that `user_agent` should leave between two requests, None where the file does not say."""
        if not _is_read(self.status):
            return None
        delay: float | None = _rules(self._text, _product(user_agent)).crawl_delay(_product(user_agent))
        return delay


def parse_robots(body: bytes, *, status: int, url: str) -> Robots:
    """Reads the answer to a request for robots.txt. Never raises.

    `status` is the final HTTP status (0: no answer), `url` the final address, against which relative sitemap lines
    are resolved. UTF-8 and UTF-16 with or without BOM are understood, bytes that are neither are dropped, a comment
    ends a sitemap's URL. A page of HTML in place of the file holds no rules and no sitemaps.
    """
    if not _is_read(status):
        return Robots(status=status)
    text = _decode(body)
    if text.lstrip().startswith("<"):
        return Robots(status=status)
    lines = _LINE_END.split(text)
    found: dict[str, None] = {}
    for line in lines:
        for address in _sitemaps_of(line, url):
            found[address] = None
    return Robots(tuple(found), status, "\n".join(lines))


def _is_read(status: int) -> bool:
    return 200 <= status < 300


def _decode(body: bytes) -> str:
    whole, body = len(body) <= MAX_BYTES, body[:MAX_BYTES]
    encoding = next((name for bom, name in _BOMS if body.startswith(bom)), None)
    if encoding is None:
        # Latin text in UTF-16 has a zero in every other byte.
        encoding = "utf-16-le" if body[1:2] == b"\0" else "utf-16-be" if body[:1] == b"\0" else "utf-8"
    text = body.decode(encoding, "ignore").lstrip("\ufeff").replace("\0", "")
    if whole:
        return text
    # A rule cut in the middle would say more than was meant: "Disallow: /" of "Disallow: /private".
    return text[: max(text.rfind("\n"), text.rfind("\r")) + 1]


def _sitemaps_of(line: str, url: str) -> list[str]:
    form = _SITEMAP.match(line) or _BARE_URL.fullmatch(line)
    value = form[1].partition("#")[0].strip("<>\"' \t") if form is not None else ""
    values = value.split()
    if len(values) > 1:
        values = [one for one in values if one.startswith(("http:", "https:"))] or values[:1]
    resolved = (absolute(_with_scheme(one, url), url) for one in values)
    return [one for one in resolved if one is not None]


def _with_scheme(value: str, url: str) -> str:
    """`www.example.com/sitemap.xml` is meant as an address where it begins with the file's own host."""
    host = host_of(url)
    if host and "/" in value and is_site_host(value.partition("/")[0].lower(), frozenset((host,))):
        return f"{url.partition(':')[0]}://{value}"
    return value


def _product(user_agent: str) -> str:
    """The product token that a group is chosen by (RFC 9309 section 2.2.1): `Foobot` of `Foobot/1.0 (+https://...)`."""
    form = _COMPATIBLE.search(user_agent)
    if form is not None:
        return form[1].lower()
    form = _TOKEN.search(user_agent)
    return form[0].lower() if form is not None else "*"


@lru_cache(maxsize=256)
def _rules(text: str, product: str) -> Protego:
    """The rules that concern `product`, read by protego, with two things put right before.

    protego copies each rule into every agent of its group: half a megabyte of agents and rules would become hundreds
    of millions, so agents that are not meant share one name. And to it another record, such as `Crawl-delay`, between
    two agents ends their group, against RFC 9309 section 2.2.4: there all agents are named again before the rules.
    """
    lines: list[str] = []
    agents: dict[str, None] = {}
    interrupted = False
    for line in text.split("\n"):
        form = _AGENT.match(line)
        if form is not None:
            name = form[1].partition("#")[0].strip().lower()
            meant = name == "*" or product.startswith(name.replace("*", ""))
            named = f"User-agent: {name if meant else _NOBODY}"
            agents[named] = None
            lines.append(named)
            continue
        if not agents or not line.partition("#")[0].strip():
            pass
        elif not _RULE.match(line):
            interrupted = True
        else:
            lines += agents if interrupted else ()
            agents.clear()
            interrupted = False
        lines.append(line)
    return Protego.parse("\n".join(lines))
