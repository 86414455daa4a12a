"""An outage of the monitor's own network, told from hosts that are dead.

A machine that slept, a cable that was pulled, a resolver that is gone: then every host is silent at once, and none of
them is to blame (commafeed 1034). The signs: hosts that answered before are silent one after another, with no answer of
any other host in between; or there is no route to anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import time
from collections.abc import Callable

from monitor.core.http import Reply

log = logging.getLogger("monitor")

SILENT_HOSTS = 3
"""So many hosts in a row, all well until then, are not dead by chance."""

HOLD = 15.0
"""Seconds that the verdict on a silent host waits for the answer, or the silence, of others that are being asked."""

PATIENCE = 2.0
"""Seconds that it waits although none is: others may be about to."""

AGAIN = 60.0
"""Seconds until a source is asked again that could not be asked for want of a network."""

PROBES = 2
"""Sources asked at a time while the network is down: the first answer ends the outage."""

SILENCE = frozenset({"dns", "unreachable", "timeout"})
REFUSALS = frozenset({"refused", "reset", "tls"})
_NOWHERE = ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1"))  # documentation: RFC 5737, RFC 3849


class OfflineError(Exception):
    """The monitor's own network is down: the poll says nothing of its source."""


def has_route() -> bool:
    """Whether the machine has a route to the world; nothing is sent to find out."""
    for family, address in _NOWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return True
    return False


def is_answer(reply: Reply, *, proxied: bool) -> bool:
    """Whether somebody out there answered, be it by a refusal."""
    if reply.failure is None:
        return reply.status is not None
    return reply.failure.kind in ("redirects", "downgrade") or (reply.failure.kind in REFUSALS and not proxied)


def is_silence(reply: Reply, *, proxied: bool) -> bool:
    """Whether a request came to nothing in a way that a dead network explains. A proxy that refuses is one, too."""
    kind = reply.failure.kind if reply.failure is not None else ""
    return kind in SILENCE or (proxied and kind in REFUSALS)


class Network:
    """What the requests of a process say of its own network. `down` is the verdict, `under_way` counts requests."""

    def __init__(self, routed: Callable[[], bool] = has_route, patience: float = PATIENCE) -> None:
        self.down = False
        self.under_way = 0
        self._routed = routed
        self._patience = patience
        self._answers = 0
        self._silent: set[str] = set()
        self._changed = asyncio.Event()
        self._since = 0.0

    def begin(self) -> None:
        """A request goes out."""
        self.under_way += 1

    def end(self, *, answered: bool) -> None:
        """It came back, with an answer (`is_answer`) or without."""
        self.under_way -= 1
        if answered:
            self._answers += 1
            self._silent.clear()
            if self.down:
                self.down = False
                log.warning("the network is back after %.0f s", time.monotonic() - self._since)
        self._tell()

    async def is_out(self, host: str, *, sound: bool, hosts: int) -> bool:
        """Whether the silence of `host` is an outage of our own. `sound`: the last poll of its source went well;
        `hosts` how many are watched. Waits up to `HOLD` for others that are being asked, if that is what decides.
        """
        if self.down or not sound:
            return self.down
        self._silent.add(host)
        if len(self._silent) >= min(SILENT_HOSTS, max(2, hosts)) or (not _is_near(host) and not self._routed()):
            self._fall()
            return True
        answers, began = self._answers, time.monotonic()
        while not self.down and self._answers == answers:
            left = began + (HOLD if self.under_way else self._patience) - time.monotonic()
            if left <= 0:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        return self.down

    def _fall(self) -> None:
        self.down = True
        self._since = time.monotonic()
        silent = ", ".join(sorted(self._silent)[:SILENT_HOSTS])
        log.warning("no network: %s give no answer, nor does any other host; polls wait for it", silent)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _is_near(host: str) -> bool:
    """Whether a host is reached without a route to the world."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local"))
