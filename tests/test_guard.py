"""Which addresses are public."""

from __future__ import annotations

import socket

import pytest

from monitor.guard import BlockedAddress, allowed, allowed_by_name, guarded_socket

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "0.0.0.0",
    "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1", "2001:db8::1", "2001::1",
    "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::8.8.8.8",
    "2002:0a00:0001::1", "2002:7f00:0001::", "::10.0.0.1", "::8.8.8.8", "not an address", "",
    "::ffff:8.8.8.8", "2002:0808:0808::1", "2001:20::1", "2001:2::1", "3fff::1", "4000::1", "5f00::1", "127.1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::8a", "64:ff9b::8.8.8.8"]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public(address: str) -> None:
    assert not allowed(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public(address: str) -> None:
    assert allowed(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "10.1",
        "[::1]", "::1", "[::ffff:8.8.8.8]", "localhost", "LOCALHOST.", "www.localhost",
    ],
)  # fmt: skip
def test_hosts_that_are_not_asked_for_through_a_proxy(host: str) -> None:
    assert not allowed_by_name(host)


@pytest.mark.parametrize(
    "host",
    ["news.example", "localhost.example", "8.8.8.8", "0x08080808", "[2606:4700::1111]", "1.2.3.4.example", "é.fr"],
)
def test_hosts_that_may_be_asked_for_through_a_proxy(host: str) -> None:
    assert allowed_by_name(host)


def test_the_socket_factory_sees_the_address_before_the_connection() -> None:
    with pytest.raises(BlockedAddress, match=r"10\.1\.2\.3"):
        guarded_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("10.1.2.3", 80)))
    made = guarded_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("8.8.8.8", 80)))
    assert not made.getblocking()
    made.close()
