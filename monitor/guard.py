"""Which addresses may be connected to: global unicast only, unless the configuration says otherwise."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

BLOCKED = "is not a public address"

_EMBEDS_IPV4 = (
    (ipaddress.ip_network("64:ff9b::/96"), 0),  # NAT64, RFC 6052
    (ipaddress.ip_network("2002::/16"), 80),  # 6to4, RFC 3056
)
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # shared address space, RFC 6598
        "192.0.0.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarking, RFC 2544
        "240.0.0.0/4",
        "64:ff9b:1::/48",  # local-use NAT64, RFC 8215
        "2001::/32",  # Teredo: the address inside is obscured
        "fec0::/10",
        "::/96",  # IPv4-compatible, deprecated by RFC 4291
    )
)


class BlockedAddress(OSError):  # noqa: N818 - it says what it is
    """A connection to this address is not allowed. An OSError, so that the next address of the name is tried."""


def allowed(address: str) -> bool:
    """Whether `address`, a literal IPv4 or IPv6 address, is public: reachable for anyone, and no one's inside.

    Addresses that embed an IPv4 address (mapped, NAT64, 6to4) are judged by it as well: `is_global` alone lets some of
    them pass.
    """
    try:
        ip = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return allowed(str(ip.ipv4_mapped))
        for network, shift in _EMBEDS_IPV4:
            if ip in network:
                return allowed(str(ipaddress.IPv4Address(int(ip) >> shift & 0xFFFFFFFF)))
    if any(ip.version == network.version and ip in network for network in _NEVER):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


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
