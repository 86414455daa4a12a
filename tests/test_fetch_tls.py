"""Secure connections: certificates are checked, and nothing leads from https to http."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from monitor.fetch import Fetcher, FetchPolicy

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
POLICY = FetchPolicy("test/1", allow_private_networks=True, total_timeout=5.0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 and its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    cert.write_bytes(cert.read_bytes() + key.read_bytes())
    return cert


@asynccontextmanager
async def secure(certificate: Path, said: bytes) -> AsyncIterator[int]:
    """The port of a TLS server that says the same to everyone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(said)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    async def go() -> None:
        async with secure(certificate, b"") as port, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(f"https://127.0.0.1:{port}/")
            assert reply.failure is not None
            assert (reply.status, reply.failure.kind) == (None, "tls")
            assert "certificate" in reply.failure.message

    asyncio.run(go())


def test_a_certificate_of_another_host_is_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def go() -> None:
        async with secure(certificate, b"") as port, Fetcher(POLICY) as fetcher:
            reply = await fetcher.get(f"https://localhost:{port}/")
            assert reply.failure is not None
            assert reply.failure.kind == "tls"

    asyncio.run(go())


def test_a_good_certificate_is_taken_and_closing_leaves_nothing_open(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def go() -> None:
        said = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        async with secure(certificate, said) as port, Fetcher(POLICY) as fetcher:
            replies = await asyncio.gather(*(fetcher.get(f"https://127.0.0.1:{port}/{n}") for n in range(4)))
            assert [reply.body for reply in replies] == [b"ok"] * 4

    asyncio.run(go())


@pytest.mark.parametrize("trusted", [False, True])
def test_https_leads_to_http_only_where_that_is_allowed(
    trusted: bool, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def go() -> None:
        said = b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:1/\r\n\r\n"
        policy = FetchPolicy("test/1", allow_private_networks=True, allow_downgrade=trusted)
        async with secure(certificate, said) as port, Fetcher(policy) as fetcher:
            reply = await fetcher.get(f"https://127.0.0.1:{port}/", retry=False)
            assert reply.failure is not None
            assert (reply.failure.kind, len(reply.redirects)) == (("refused", 1) if trusted else ("downgrade", 0))

    asyncio.run(go())
