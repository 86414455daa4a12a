"""Which addresses may be connected to: global unicast only, unless the configuration says otherwise."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

BLOCKED = "is not a public address"

PERMIT = (
    "`allow_private_networks: true` under `defaults` or the site in sites.yaml would permit it "
    "(`discover` and `lint`: the option --allow-private-networks)"
)
"""What to do about a refusal, for those who have a configuration and those who gave a command."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # the one block IANA assigns from, RFC 4291
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # shared address space, RFC 6598
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarking, RFC 2544
        "240.0.0.0/4",
        "2001::/23",  # protocol assignments, RFC 2928: Teredo, ORCHID, benchmarking
        "2001:db8::/32",  # documentation, RFC 3849
        "2002::/16",  # 6to4, RFC 3056; deprecated by RFC 7526
        "3fff::/20",  # documentation, RFC 9637
    )
)


class BlockedAddress(OSError):  # noqa: N818 - it says what it is
    """A connection to this address is not allowed. An OSError, so that the next address of the name is tried."""


def allowed(address: str) -> bool:
    """Whether `address`, a literal IPv4 or IPv6 address, is public: global unicast, and no one's inside.

    `is_global` alone lets multicast, 6to4 and what is not assigned pass, and varies with Python's release. IPv6
    addresses that stand for an IPv4 address (mapped, compatible, 6to4, Teredo) are refused, but for NAT64, which
    networks without IPv4 need: it is judged by the address inside.
    """
    try:
        ip = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return allowed(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if ip not in _GLOBAL_UNICAST:
            return False
    if any(ip.version == network.version and ip in network for network in _NEVER):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def allowed_by_name(host: str) -> bool:
    """Whether the host of a URL may be asked for through a proxy, where no address is seen before the connection.

    Refuses literal addresses that are not public, in any spelling that a resolver takes (``127.1``, ``0x7f000001``),
    and the names that mean the machine itself (RFC 6761, 6.3). A name that resolves to a private address is the
    proxy's to refuse.
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return False
    if ":" in name:
        return allowed(name)
    try:
        return allowed(socket.inet_ntoa(socket.inet_aton(name)))
    except (OSError, UnicodeError, ValueError):
        return True


def guarded_socket(addr_info: tuple[Any, ...]) -> socket.socket:
    """aiohttp's `socket_factory`: it sees the very address that will be connected to, after DNS and redirects.

    Raises BlockedAddress, whose text names the address.
    """
    family, kind, proto, _canonical, sockaddr = addr_info
    if not allowed(str(sockaddr[0])):
        raise BlockedAddress(f"{sockaddr[0]} {BLOCKED}")
    return open_socket((family, kind, proto, "", sockaddr))


def open_socket(addr_info: tuple[Any, ...]) -> socket.socket:
    """The same without a guard."""
    family, kind, proto, *_ = addr_info
    made = socket.socket(family, kind, proto)
    made.setblocking(False)
    return made
