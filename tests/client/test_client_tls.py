"""TLS: a broker that is trusted is spoken to, any other is sent nothing and is not tried again."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offsetd.client import BlockingClient, Client, Untrusted
from offsetd.client.address import Address
from tests.client.scripted import QUICK, ScriptedBroker, client_of

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing, which makes certificates")

ORDERS = ("orders", 0)


def self_signed(directory: Path, host: str) -> tuple[Path, Path]:
    """Make a certificate for a host that nobody but itself vouches for, and its key."""
    certificate, key = directory / "broker.pem", directory / "broker.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=a broker of a test",
            "-addext",
            f"subjectAltName={host}",
            "-out",
            str(certificate),
            "-keyout",
            str(key),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


def trusting(certificate: Path) -> ssl.SSLContext:
    """Return the context of a client that trusts one certificate and no other."""
    return ssl.create_default_context(cafile=str(certificate))


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    """A broker that is not started yet, and stopped at the end."""
    made = ScriptedBroker()
    yield made
    await made.stop()


async def start(broker: ScriptedBroker, directory: Path, host: str) -> Path:
    """Let a broker listen with a certificate for a host; return the certificate."""
    certificate, key = self_signed(directory, host)
    broker.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    broker.tls.load_cert_chain(certificate, key)
    await broker.start()
    return certificate


async def test_a_broker_that_is_trusted_is_spoken_to(broker: ScriptedBroker, tmp_path: Path) -> None:
    certificate = await start(broker, tmp_path, "IP:127.0.0.1")
    async with client_of(broker, ssl=trusting(certificate)) as client:
        await client.commit("billing", {ORDERS: 42})

        found = await client.fetch("billing", [ORDERS])

    assert [committed.offset for committed in found.values()] == [42]


async def test_a_certificate_that_nobody_vouches_for_is_not_tried_again(broker: ScriptedBroker, tmp_path: Path) -> None:
    await start(broker, tmp_path, "IP:127.0.0.1")
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with Client(broker.address, limits=QUICK, ssl=ssl.create_default_context(), sleep=pause) as client:
        with pytest.raises(Untrusted) as committing:
            await client.commit("billing", {ORDERS: 42})
        with pytest.raises(Untrusted):
            await client.fetch("billing")

    assert committing.value.address == Address("127.0.0.1", broker.port)
    assert str(committing.value) == (
        f"the broker at {broker.address} is not trusted: self-signed certificate. Let the SSLContext trust the "
        "authority that signed its certificate (load_verify_locations), and connect by a name that stands in it"
    )
    assert pauses == []
    assert broker.seen == []


async def test_a_certificate_for_another_name_is_not_tried_again(broker: ScriptedBroker, tmp_path: Path) -> None:
    certificate = await start(broker, tmp_path, "DNS:broker.example")
    async with client_of(broker, ssl=trusting(certificate)) as client:
        with pytest.raises(Untrusted, match=r"not trusted: IP address mismatch, .* '127\.0\.0\.1'\. Let"):
            await client.fetch("billing")


async def test_a_member_does_not_wait_for_a_broker_that_it_does_not_trust(
    broker: ScriptedBroker, tmp_path: Path
) -> None:
    await start(broker, tmp_path, "IP:127.0.0.1")
    async with client_of(broker, ssl=ssl.create_default_context()) as client:
        with pytest.raises(Untrusted):
            async with client.member("billing", ["orders"]) as member:
                await member.assigned()


async def test_without_a_loop_it_is_the_same_error(broker: ScriptedBroker, tmp_path: Path) -> None:
    await start(broker, tmp_path, "IP:127.0.0.1")

    def fetch() -> None:
        with BlockingClient(broker.address, limits=QUICK, ssl=ssl.create_default_context()) as client:
            client.fetch("billing")

    with pytest.raises(Untrusted):
        await asyncio.to_thread(fetch)
