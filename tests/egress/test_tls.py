"""TLS: only a receiver that proves to be the one named is posted to."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.egress.receiving import (
    NO_CONTENT,
    WAIT,
    Behaviour,
    Connection,
    Receiver,
    answering,
    post,
    posting,
    receiving,
    taken,
)
from tests.egress.zone import Zone
from tradepost.egress.client import Client

Run = Callable[[Coroutine[Any, Any, Any]], Any]

NAME = "hooks.example.com"


class Certificate:
    """A self-signed certificate for names and addresses, in a file with its key."""

    def __init__(self, folder: Path, *names: str, days: int = 1) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
        now = datetime.now(UTC)
        built = (
            x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=3))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName(list(map(_general, names))), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.text = built.public_bytes(serialization.Encoding.PEM)
        self._file = folder / "certificate.pem"
        self._file.write_bytes(
            self.text
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def serving(self) -> ssl.SSLContext:
        """What a server shows it with."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._file)
        return context

    def trusting(self) -> ssl.SSLContext:
        """What a client has that trusts it."""
        return ssl.create_default_context(cadata=self.text.decode("ascii"))


def _general(name: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)


@asynccontextmanager
async def secured(
    certificate: Certificate,
    *,
    trusted: bool = True,
    behave: Behaviour | None = None,
    seconds: float = WAIT,
) -> AsyncIterator[tuple[Client, Receiver, list[str | None]]]:
    """A client, a receiver with a certificate, and the names it was asked to show one for (SNI)."""
    asked: list[str | None] = []
    serving = certificate.serving()
    serving.sni_callback = lambda _, name, __: asked.append(name)
    trusting = certificate.trusting() if trusted else None
    zone = Zone(**{NAME: [["127.0.0.1"]], "other.example.com": [["127.0.0.1"]]})
    async with (
        receiving(behave or answering(NO_CONTENT), tls=serving) as receiver,
        posting(lookup=zone, tls=trusting, seconds=seconds) as client,
    ):
        yield client, receiver, asked


def test_a_certificate_is_asked_for_and_checked_by_the_name(run: Run, tmp_path: Path) -> None:
    """The receiver is asked for the name of the URL, not its address, and has to show a certificate for that."""

    async def scene() -> None:
        async with secured(Certificate(tmp_path, NAME)) as (client, receiver, asked):
            for _ in range(2):
                assert (await post(client, f"https://{NAME}:{receiver.port}/hook")).status == 204
            assert asked == [NAME]
            reply = await post(client, f"https://other.example.com:{receiver.port}/hook")
            assert reply.status is None
            assert reply.error is not None
            assert reply.error.startswith("TLS failed: Hostname mismatch")
            assert len(receiver.requests) == 2

    run(scene())


def test_an_address_is_a_name_of_a_certificate_as_well(run: Run, tmp_path: Path) -> None:
    """A URL with an address is served by a certificate for that address."""

    async def scene() -> None:
        async with secured(Certificate(tmp_path, "127.0.0.1")) as (client, receiver, _):
            assert (await post(client, f"https://127.0.0.1:{receiver.port}/hook")).status == 204

    run(scene())


def test_a_self_signed_certificate_is_refused(run: Run, tmp_path: Path) -> None:
    """A certificate that nobody vouches for is an error in words, and nothing is posted."""

    async def scene() -> None:
        async with secured(Certificate(tmp_path, NAME), trusted=False) as (client, receiver, _):
            reply = await post(client, f"https://{NAME}:{receiver.port}/hook")
            assert (reply.status, reply.error) == (None, "TLS failed: self-signed certificate")
            assert not receiver.requests

    run(scene())


def test_a_certificate_out_of_date_is_refused(run: Run, tmp_path: Path) -> None:
    """A certificate that has expired proves nothing."""

    async def scene() -> None:
        async with secured(Certificate(tmp_path, NAME, days=-1)) as (client, receiver, _):
            reply = await post(client, f"https://{NAME}:{receiver.port}/hook")
            assert reply.error == "TLS failed: certificate has expired"
            assert not receiver.requests

    run(scene())


def test_a_receiver_without_tls_is_an_error(run: Run) -> None:
    """A server that speaks plain HTTP where TLS is expected is told so in words."""

    async def behave(connection: Connection) -> None:
        await connection.reader.read(1)
        await connection.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            reply = await post(client, receiver.url.replace("http:", "https:"))
            assert reply.error == "TLS failed: wrong version number"

    run(scene())


def test_the_seconds_bound_the_handshake(run: Run) -> None:
    """A receiver that takes the connection and never shakes hands takes the seconds."""

    async def behave(connection: Connection) -> None:
        await connection.reader.read(1)
        await asyncio.Event().wait()

    async def scene() -> None:
        async with receiving(behave) as receiver, posting(seconds=0.25) as client:
            reply = await post(client, receiver.url.replace("http:", "https:"))
            assert reply.error == "timed out after 0.25 s"
            assert reply.seconds < 2

    run(scene())


def test_a_connection_that_is_left_ends_at_once(run: Run, tmp_path: Path) -> None:
    """Over TLS, too, nobody waits for a receiver to say farewell that was left because it said too little."""
    certificate = Certificate(tmp_path, "127.0.0.1")

    def answer(listening: socket.socket) -> socket.socket:
        """Begins an answer, and does not speak TLS any more."""
        accepted, _ = listening.accept()
        with certificate.serving().wrap_socket(accepted, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            return socket.socket(fileno=os.dup(secured.fileno()))

    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            answering = asyncio.create_task(asyncio.to_thread(answer, listening))
            async with posting(tls=certificate.trusting(), seconds=0.25) as client:
                reply = await post(client, f"https://127.0.0.1:{listening.getsockname()[1]}/")
                assert (reply.status, reply.error, reply.body) == (200, None, b"abc")
                with await answering as left:
                    await asyncio.to_thread(taken, left)

    run(scene())


def test_what_comes_unasked_over_tls_ends_a_connection(run: Run, tmp_path: Path) -> None:
    """An idle connection over TLS that says something is not used again."""
    idle = asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(NO_CONTENT)
        await idle.wait()
        await connection.say_forever(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")

    async def scene() -> None:
        async with secured(Certificate(tmp_path, NAME), behave=behave) as (client, receiver, _):
            url = f"https://{NAME}:{receiver.port}/hook"
            assert (await post(client, url)).status == 204
            idle.set()
            await receiver.ended.wait()
            assert (await post(client, url)).status == 204
            assert len(receiver.connections) == 2

    run(scene())
