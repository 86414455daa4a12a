"""Where a request goes: a published URL to host, port and request target, sent as published (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urljoin

from ada_url import URL

_SENDABLE = r"[!$%&'()*+,./0-9:;=?@A-Z\[\\\]_a-z|~-]*"
_PLAIN = re.compile(rf"(https?)://([A-Za-z0-9._-]+)(?::([0-9]*))?((?:[/?]{_SENDABLE})?)")
_ANY = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*)://(?:([^/?#\\]*)@)?([^/?#\\@:\[\]\s]+|\[[0-9A-Fa-f:.]*\])(?::([0-9]*))?(.*)"
)
_EDGES = "".join(map(chr, range(33)))
_BREAKS = dict.fromkeys(map(ord, "\t\n\r"))
_AS_IS = "!$%&'()*+,-./:;=?@[\\]_|~"
_AS_IS_IN_QUERY = _AS_IS + "^`{}"
_LONGEST_URL = 65_536  # no server takes a request line of that length
_LONGEST_NAME = 254  # with the final dot, RFC 1035, 2.3.4
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A URL taken apart for sending.

    `host` is lower case, in A-labels, an IPv6 address without brackets; `port` is None for the scheme's own; `target`
    is path and query as they go out; `userinfo` is ``user:password`` still percent-encoded, None where there is none.
    """

    scheme: str
    host: str
    port: int | None
    target: str
    userinfo: str | None = None


def address_of(url: str) -> Address:
    """Take apart an http or https URL. The path and query are not normalised: servers compare bytes.

    Only what cannot stand in a request line is percent-encoded (the WHATWG URL standard's path and query sets):
    controls, spaces, quotes, angle brackets, non-ASCII as UTF-8. The fragment is dropped. ValueError, in one sentence:
    this is no http or https address.
    """
    if len(url) > _LONGEST_URL:
        raise ValueError(f"{url[:100]!r}... is no usable address: it has {len(url)} characters")
    found = _PLAIN.fullmatch(url)
    if found is not None:
        scheme, host, port, target = found.groups()
        return Address(scheme, _host(host), _port(scheme, port), target if target[:1] == "/" else "/" + target)
    found = _ANY.fullmatch(url.strip(_EDGES))
    if found is None or found[1].lower() not in _PORTS:
        raise ValueError(f"{url[:200]!r} is no http or https address")
    scheme = found[1].lower()
    path, mark, query = found[5].partition("#")[0].partition("?")
    if path and path[0] != "/":
        raise ValueError(f"{url[:200]!r} is no usable address")
    target = (quote(path, _AS_IS) or "/") + mark + quote(query, _AS_IS_IN_QUERY)
    return Address(scheme, _host(found[3]), _port(scheme, found[4]), target, found[2])


def follow(base: str, location: str) -> str:
    """Where a `Location` leads (RFC 9110, 10.2.2): as it was given where it is absolute, else resolved against `base`.

    The fragment of `base` is not inherited: nothing here looks at fragments. ValueError for what cannot be resolved.
    """
    location = location.strip(_EDGES).translate(_BREAKS)
    if _ANY.fullmatch(location):
        return location
    # urljoin drops a `?` with nothing behind it.
    if location == "?":
        return base.partition("#")[0].partition("?")[0] + "?"
    there = urljoin(base, location)
    return there + "?" if location.endswith("?") and not there.endswith("?") else there


@lru_cache(4096)
def _host(text: str) -> str:
    """The host in one spelling: IDNA, the many spellings of an IPv4 address, case (WHATWG URL, 3.5)."""
    try:
        name = URL(f"http://{text}/").hostname
    except ValueError:
        raise ValueError(f"{text[:200]!r} is no host name") from None
    if len(name) > _LONGEST_NAME or name.endswith("xn--") or "xn--." in name or ".." in name:
        raise ValueError(f"{text[:200]!r} is no host name")
    return str(name).strip("[]")


def _port(scheme: str, text: str | None) -> int | None:
    if not text:
        return None
    port = int(text) if len(text) < 9 else 65_536
    if port > 65_535:
        raise ValueError(f"{text[:20]} is no port")
    return None if port == _PORTS[scheme] else port
