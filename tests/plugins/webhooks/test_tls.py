"""TLS of deliveries: for the name, with its certificate, to an address that was checked (CONTRACT 4)."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from dualtrack.plugins.webhooks.post import MOST_READ, Poster, PostOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

NAME: Final = "hooks.example.com"
PUBLIC: Final = "93.184.216.34"
BODY: Final = b"{}"
ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Authority:
    """Who vouches for names: a CA of the test."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> str:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def vouch(self, folder: Path, name: str, *, days: int = 1) -> Path:
        """A certificate for a name, with its key; ``days``: until it ends."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(name, key, self.certificate.subject, self.key, days)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = folder / f"{name}{days}.pem"
        path.write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
        return path


def authority() -> Authority:
    """A new one."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "The test's CA")])
    return Authority(key, _certificate("", key, named, key, 1))


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    days: int,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) if name else issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=not name, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if name:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    else:
        builder = builder.add_extension(
            x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False,
                data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
                encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )  # fmt: skip
    return builder.sign(signer, hashes.SHA256())


@dataclass
class Server:
    """What a server saw: the names that clients asked for, and their requests."""

    port: int = 0
    names: list[str | None] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)


@contextlib.contextmanager
def serving(certificate: Path, answer: bytes = ANSWER) -> Iterator[Server]:
    """A server with this certificate, on this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    seen = Server()
    context.sni_callback = lambda _, name, __: seen.names.append(name)
    listening = socket.create_server(("127.0.0.1", 0))
    seen.port = listening.getsockname()[1]

    def serve() -> None:
        while True:
            try:
                raw, _ = listening.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), raw, context.wrap_socket(raw, server_side=True) as client:
                seen.requests.append(_request(client))
                client.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def _request(client: socket.socket) -> bytes:
    """A request, with its body; empty if the client hangs up."""
    read = b""
    while not read.endswith(BODY):
        more = client.recv(65_536)
        if not more:
            return b""
        read += more
    return read


@dataclass
class Network:
    """A resolver, and a network in which every address leads to one server. ``connected``: where it was asked for."""

    addresses: list[Sequence[str]]
    server: Server
    connected: list[tuple[str, int]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def resolve(self, host: str, port: int) -> Sequence[str]:
        """What the name leads to by now."""
        assert port == 443
        self.asked.append(host)
        return self.addresses[min(len(self.asked), len(self.addresses)) - 1]

    def connect(self, open_socket: Callable[..., socket.socket]) -> Callable[..., socket.socket]:
        """`socket.create_connection` in this network."""

        def connect(address: tuple[str, int], timeout: Any = None) -> socket.socket:
            self.connected.append(address)
            return open_socket(("127.0.0.1", self.server.port), timeout)

        return connect


@pytest.fixture(scope="module")
def ca() -> Authority:
    return authority()


def _post(
    monkeypatch: pytest.MonkeyPatch, network: Network, ca: Authority, url: str = f"https://{NAME}/in"
) -> PostOutcome:
    monkeypatch.setattr(socket, "create_connection", network.connect(socket.create_connection))
    trusted = ssl.create_default_context(cadata=ca.pem())
    outcome = Poster(names=network.resolve, trusted=trusted, seconds=30).post(url, BODY, {"webhook-id": "1"})
    return PostOutcome(outcome.status, outcome.error)


def test_the_name_is_asked_for_and_the_checked_address_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ca: Authority
) -> None:
    """The name leads to this machine from the second look on, and nobody looks a second time."""
    with serving(ca.vouch(tmp_path, NAME)) as server:
        network = Network([[PUBLIC], ["127.0.0.1"]], server)
        assert _post(monkeypatch, network, ca) == PostOutcome(204)
        assert (network.asked, network.connected) == ([NAME], [(PUBLIC, 443)])
        assert server.names == [NAME]
        (request,) = server.requests
        assert request.startswith(b"POST /in HTTP/1.1\r\nHost: hooks.example.com\r\n")
        again = _post(monkeypatch, network, ca)
        assert again == PostOutcome(0, "not allowed: its name leads to an address that is not public")
        assert len(network.connected) == 1


@pytest.mark.parametrize("wrong", ["another name", "another authority", "expired"])
def test_a_wrong_certificate_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ca: Authority, wrong: str
) -> None:
    signer = authority() if wrong == "another authority" else ca
    name = "other.example.com" if wrong == "another name" else NAME
    with serving(signer.vouch(tmp_path, name, days=-1 if wrong == "expired" else 1)) as server:
        outcome = _post(monkeypatch, Network([[PUBLIC]], server), ca)
        assert outcome == PostOutcome(0, "TLS: CERTIFICATE_VERIFY_FAILED")
        assert server.requests == []


def test_an_address_needs_a_certificate_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ca: Authority
) -> None:
    with serving(ca.vouch(tmp_path, NAME)) as server:
        outcome = _post(monkeypatch, Network([[PUBLIC]], server), ca, f"https://{PUBLIC}/in")
        assert outcome.error == "TLS: CERTIFICATE_VERIFY_FAILED"
        assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 400_000, PostOutcome(0, "the connection failed, or broke off")),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000_000, PostOutcome(200)),
        (b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"x" * 1_000 + b"\r\n") * 10_000, PostOutcome(200)),
        (b"x" * 10_000_000, PostOutcome(0, "the connection failed, or broke off")),
    ],
    ids=["interim answers", "a line", "lines", "no HTTP"],
)
def test_a_head_is_read_within_bounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ca: Authority, answer: bytes, outcome: PostOutcome
) -> None:
    read = [0]
    receive = ssl.SSLSocket.recv_into

    def counted(self: ssl.SSLSocket, *args: Any, **named: Any) -> int:
        taken = receive(self, *args, **named)
        read[0] += taken
        return taken

    monkeypatch.setattr(ssl.SSLSocket, "recv_into", counted)
    with serving(ca.vouch(tmp_path, NAME), answer) as server:
        assert _post(monkeypatch, Network([[PUBLIC]], server), ca) == outcome
    assert 0 < read[0] <= MOST_READ
