"""URLs: the published one is fetched and reported as it stands, the key only tells pages apart.

`page_key` does what RFC 3986 section 6.2.2 and the WHATWG URL standard call the same resource, and drops a short list
of trackers. Everything that merely tends to be the same page (http and https, www, a trailing slash, index files,
``//``, m. and amp. hosts) stays apart here: it needs evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from urllib.parse import quote, unquote_plus

from ada_url import URL
from publicsuffixlist import PublicSuffixList

_TRACKERS = (
    "fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid twclid ttclid igshid mc_cid mc_eid mkt_tok _ga _gl _hsenc "
    "_hsmi xtor wt_mc wt_zmc at_medium at_campaign at_campaign_type at_custom1 at_custom2 at_custom3 at_custom4 "
    "at_bbc_team at_format at_link_id at_link_origin at_link_type at_ptr_name jsessionid phpsessid"
)
TRACKERS: frozenset[str] = frozenset(_TRACKERS.split())
"""Query names (lower case) that never choose a page, besides every ``utm_...``: click ids, campaigns, sessions."""

# White space of Unicode, the controls that WHATWG strips, and what editors leave behind: ZWSP, word joiner, BOM.
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "".join(map(chr, range(0x20))) + "\u200b\u2060\ufeff"

# Nothing in such a URL has two spellings, save dot segments, escapes, the order of its query and its trackers.
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_PLAIN = re.compile(
    rf"(https?)://(((?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*|(?:{_OCTET}\.){{3}}{_OCTET})"
    r"(?::(?!(?:80|443)(?:[/?]|$))(?:[1-9]\d{0,3}|[1-5]\d{4}))?)"
    r"(/(?:[A-Za-z0-9_~!$'()*+,=:@&./-]++|%[0-9A-Fa-f]{2})*+)?"
    r"(?:\?((?:[A-Za-z0-9_~!$()*+,;=:@&./?-]++|%[0-9A-Fa-f]{2})*+))?",
    re.ASCII,
)
_DOTS = re.compile(r"(?:/|%2F)(?:\.|%2E)", re.I)
_WEB = re.compile(r"https?:/{2}", re.ASCII | re.I)
_INSIDE = re.compile(r"[\t\n\r]")
# A `%` without two hexadecimal digits stands for itself; the rest is what RFC 3986 allows nowhere unencoded.
_ESCAPE = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+|%(?:[0-9A-Fa-f]{2})?|[\"<>\\^`{|}\[\]]", re.ASCII)
_SESSION = re.compile(r"(?<=[^/.])(?:;jsessionid=[^/;]*)+", re.ASCII | re.I)
_FINAL_DOT = re.compile(r"(?<=[^.@])\.(?=(?::\d+)?$)", re.ASCII)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def page_key(url: str, *, keep_fragment: bool = False) -> str:
    """The canonical key of a page: equal for two URLs that name the same page by the standards alone.

    Normalised: case of scheme and host, IDN, default port, a final dot of the host, dot segments, percent-encoding
    (unreserved characters bare, forbidden ones encoded, upper-case digits), an empty path. Dropped: the fragment
    except ``#!`` routes (`keep_fragment` keeps every one), the query names of `TRACKERS` and ``utm_*``, a
    ``;jsessionid=``. Parameters are sorted by name when every name occurs once and has a value; else their order
    may matter and stays.

    Idempotent, never raises. A text that is no http(s) URL is its own key, stripped.
    """
    plain = _split(url)
    if plain is None:
        return _slow_key(url, keep_fragment)
    scheme, host, path, query = plain
    head = f"{scheme}://{host}{path}"
    if query is None:
        return head
    kept = _key_query(query)
    return head if kept is None else f"{head}?{kept}"


_OWN_KEYS = re.compile(r"(?:https?://(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*/[A-Za-z0-9_~!$'()*+,=:@/.-]*+\n)++", re.ASCII)


def page_keys(urls: Sequence[str]) -> list[str]:
    """`page_key` of each URL; plain ones, of which sitemaps are full, all at once."""
    text = "\n".join(urls)
    if "/." not in text and _OWN_KEYS.fullmatch(f"{text}\n"):
        return list(urls)
    return list(map(page_key, urls))


def _split(url: str) -> tuple[str, str, str, str | None] | None:
    """Scheme, host, path and query of a plain URL, escapes normalised; None where a real parser is needed."""
    plain = _PLAIN.fullmatch(url)
    if plain is None or "/." in url:
        return None
    scheme, host, _, path, query = plain.groups()
    if "%" in url:
        if _DOTS.search(url):
            return None
        path, query = _escape(path or "/"), query and _escape(query)
    return scheme, host, path or "/", query


def _slow_key(url: str, keep_fragment: bool) -> str:
    text = url.strip(_SPACE)
    parsed = _parse(text)
    if parsed is None or parsed.protocol not in ("http:", "https:"):
        return text
    rest, hash_, fragment = parsed.href.partition("#")
    rest, mark, query = rest.partition("?")
    scheme, _, rest = rest.partition("://")
    authority, _, path = rest.partition("/")
    key = f"{scheme}://{_FINAL_DOT.sub('', authority)}/{_SESSION.sub('', _escape(path))}"
    if mark:
        kept = _key_query(_escape(query))
        key = key if kept is None else f"{key}?{kept}"
    if hash_ and fragment and (keep_fragment or (fragment[0] == "!" and len(fragment) > 1)):
        key = f"{key}#{_escape(fragment)}"
    return key


def _parse(url: str, base: str | None = None) -> URL | None:
    try:
        return URL(url, base)
    except ValueError:  # also of lone surrogates
        return None


def _escape(text: str) -> str:
    return _ESCAPE.sub(_escape_one, text)


def _escape_one(form: re.Match[str]) -> str:
    found = form[0]
    if len(found) == 1:
        return f"%{ord(found):02X}"
    code = int(found[1:3], 16)
    return chr(code) if chr(code) in _UNRESERVED else found.upper()


def _key_query(query: str) -> str | None:
    """The query as it stands in a key, None where nothing of it is left."""
    if "&" not in query:
        return None if _is_tracker(query) else query
    every = query.split("&")
    kept = [pair for pair in every if not _is_tracker(pair)]
    if not kept:
        return None
    names = {_name(pair) for pair in kept}
    if len(names) == len(kept) and all("=" in pair for pair in kept):
        kept.sort(key=_sort_name)
    elif kept == [""] and len(every) > 1:
        return None
    return "&".join(kept)


def _sort_name(pair: str) -> str:
    return pair.partition("=")[0]


def _name(pair: str) -> str:
    name = pair.partition("=")[0]
    return unquote_plus(name) if "%" in name or "+" in name else name


def _is_tracker(pair: str) -> bool:
    name = pair.partition("=")[0].lower()
    return name in TRACKERS or name.startswith("utm_")


def absolute(url: str, base: str) -> str | None:
    """`url` as published, made absolute against the document `base`; None unless it is http or https.

    White space around it is stripped, and the line breaks and tabs inside that no client sends (WHATWG URL, 4.4). An
    absolute URL is otherwise returned as it was written. An empty text is None, not the document itself.
    """
    if _PLAIN.fullmatch(url):
        return url
    text = _INSIDE.sub("", url.strip(_SPACE))
    if not text:
        return None
    if _WEB.match(text):
        return text if _parse(text) is not None else None
    parsed = _parse(text, base.strip(_SPACE)) or _parse(text)
    return parsed.href if parsed is not None and parsed.protocol in ("http:", "https:") else None


def host_of(url: str) -> str:
    """The host of an absolute URL: lower case, A-labels, without port and final dot; empty where there is none."""
    plain = _PLAIN.fullmatch(url)
    if plain is not None:
        return plain[3]
    parsed = _parse(url.strip(_SPACE))
    return parsed.hostname.rstrip(".") if parsed is not None else ""


def is_site_host(host: str, hosts: frozenset[str]) -> bool:
    """Whether `host` (as of `host_of`) is one of `hosts`; ``www.`` and the bare name count as one."""
    twin = host[4:] if host.startswith("www.") else f"www.{host}"
    return host in hosts or twin in hosts


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=4096)
def registrable(host: str) -> str | None:
    """The registrable domain of `host` (as of `host_of`): ``bbc.co.uk`` of ``news.bbc.co.uk``.

    None for IP addresses, public suffixes themselves and single labels. Source: publicsuffix.org, private suffixes
    (``github.io``) included.
    """
    if not host or ":" in host or host.rpartition(".")[2].isdecimal():
        return None
    domain = _suffixes().privatesuffix(host)
    return domain if isinstance(domain, str) else None


def matches(pattern: str, url: str) -> bool:
    """Whether `url` falls under a glob of ``include`` or ``exclude``; case counts.

    ``*`` stays within a path segment, ``**`` crosses them (``/**/`` also stands for ``/``). ``/news/**`` is held
    against the path, with the query only where the pattern has a ``?`` (which is literal). A pattern with a scheme,
    ``https://amp.example.com/**``, is held against the whole URL; one without any ``/``, ``*.pdf``, against the last
    segment. How characters are percent-encoded makes no difference.
    """
    parts = _split(url) or _slow_split(url)
    if parts is None:
        return False
    scheme, host, path, query = parts
    subject = f"{path}?{query}" if query and "?" in pattern else path
    if "://" in pattern:
        subject = f"{scheme}://{host}{subject}"
    return _glob(pattern).fullmatch(subject) is not None


def _slow_split(url: str) -> tuple[str, str, str, str | None] | None:
    parsed = _parse(url.strip(_SPACE))
    if parsed is None:
        return None
    return parsed.protocol[:-1], parsed.host, _escape(parsed.pathname), _escape(parsed.search[1:])


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    if "://" not in pattern and not pattern.startswith(("/", "**")):
        pattern = f"/{pattern}" if "/" in pattern else f"/**/{pattern}"
    path, mark, query = pattern.partition("?")
    wild = {"/**/": "/(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = [wild.get(part) or _literal(part) for part in re.split(r"(/\*\*/|\*\*|\*)", path)]
    if mark:
        parts.append(r"\?" + ".*".join(_literal(part) for part in re.split(r"\*+", query)))
    return re.compile("".join(parts))


def _literal(text: str) -> str:
    return re.escape(_escape(quote(text, safe="/%:@!$&'()*+,;=?#[]")))
