"""Who a node is, and who is at the other end of a connection: TLS 1.3, both sides with certificates, trust by key.

A node's identity is an Ed25519 key in its data folder, made on first use. Its peer id is the hash of the public key.
After a handshake each side computes the other's id from the key in the other's certificate (`id_of`). Nothing else in a
certificate counts: no name, no date, no issuer.

What makes that sound: in TLS 1.3 each side signs the whole handshake, with the fresh keys exchanged in it, by the key
of its certificate (CertificateVerify, RFC 8446 §4.4.3), and OpenSSL checks this signature whatever else it is told to
check. So whoever completes a handshake under an id holds its private key, and is the end of this very connection.
Somebody in the middle needs a key of its own and therefore has an id of its own: who dialled a certain id notices, and
who was dialled knows the middle by its real id. The TLS handshake of libp2p rests on the same.

What stands in the way is Python: `ssl` has no verification callback (cpython#75425). A server requests a certificate
only if it also verifies its chain, and no list of trusted issuers can name self-signed certificates that were never
seen. Verifying nothing, and proving the client's key in a first frame of our own, would be a second handshake beside
that of TLS, without a channel binding to hold on to: Python offers `tls-unique`, which TLS 1.3 does not define (RFC
9266).

So all certificates are issued by one common authority *whose private key everybody has*: it is derived from a constant
below. OpenSSL's check of the chain then succeeds for everybody and says nothing, but lets `CERT_REQUIRED` do the one
thing that it is here for: both sides must show a certificate, and prove its key. Since everybody can issue
certificates, they are worthless as statements, and nobody reads them as such.

A consequence of TLS 1.3: the client's side of a handshake ends before the server has seen its certificate. A client
that is refused learns it when it first reads.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import stat
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import (
    PeerId,
    SignedEvent,
    is_signed,
    key_from,
    key_from_pem,
    key_to_pem,
    new_key,
    public_bytes,
)
from grapevine.net.contacts import Contact
from grapevine.net.private_files import make_private_file, make_private_folder

KEY_FILE = "identity.key"
CERTIFICATE_FILE = "identity.crt"

_KEY_FILE_LIMIT = 10_000  # bytes; ours has 119
_AUTHORITY_KEY = key_from("grapevine's common authority: anybody may issue certificates, so nobody trusts them")
_AUTHORITY_NAME = "Grapevine: anybody may issue"
_PROOF = b"grapevine proof 1\0"
_ALWAYS = (datetime(2000, 1, 1), datetime(9999, 12, 31, 23, 59, 59))  # RFC 5280 §4.1.2.5: without an end


class Identity:
    """A node's key, and what follows from it."""

    def __init__(self, key: Ed25519PrivateKey, folder: Path) -> None:
        self._key, self._folder = key, folder
        self.id = PeerId.of(key.public_key().public_bytes_raw())

    @classmethod
    def open(cls, folder: Path, make_key: Callable[[], Ed25519PrivateKey] = new_key) -> Identity:
        """The identity in a data folder; a new one, with a key that `make_key` makes, if there is none yet."""
        try:
            make_private_folder(folder)
            path = folder / KEY_FILE
            if not path.exists():
                _create(path, key_to_pem(make_key()))
            identity = cls(_read_key(path), folder)
            _keep(folder / CERTIFICATE_FILE, identity.certificate())
            make_private_file(folder / CERTIFICATE_FILE)
        except OSError as error:
            raise UsageError(f"{folder}: cannot hold an identity ({error.strerror}); choose another folder") from None
        return identity

    def certificate(self) -> bytes:
        """The certificate, as PEM. It is a function of the key, so that a lost one is no loss."""
        return _issue(self._key.public_key(), str(self.id)).public_bytes(Encoding.PEM)

    def sign(self, topic: int, sequence: int, payload: bytes) -> SignedEvent:
        """An event of this node's, signed: the payload is what `envelope.stamped` makes."""
        return SignedEvent.sign(self._key, topic, sequence, payload)

    def contact(self, host: str, port: int, time_ms: int) -> Contact:
        """A signed record that this node is found here, as of this time; others replace earlier ones by it."""
        unsigned = Contact(self._key.public_key().public_bytes_raw(), host, port, time_ms, b"")
        return Contact(unsigned.key, host, port, time_ms, self._key.sign(unsigned.content()))

    def prove(self, challenge: bytes) -> tuple[bytes, bytes]:
        """The public key, and its signature of a challenge: for transports that have no handshake (`proven`).

        What is signed begins with a purpose of its own, so that no challenge is an event, a contact or a handshake.
        """
        return self._key.public_key().public_bytes_raw(), self._key.sign(_PROOF + challenge)

    def server_context(self) -> ssl.SSLContext:
        """The TLS settings of connections that others open: they must show a certificate and prove its key."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # no session is resumed: every connection proves its keys anew
        return context

    def client_context(self) -> ssl.SSLContext:
        """The TLS settings of connections that this node opens. Who is there is read with `id_of` afterwards."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, side: int) -> ssl.SSLContext:
        context = ssl.SSLContext(side)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # names say nothing here; see above
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=_authority())
        try:
            context.load_cert_chain(self._folder / CERTIFICATE_FILE, self._folder / KEY_FILE)
        except OSError as error:  # an SSLError is one
            raise UsageError(f"{self._folder}: its key or certificate has changed ({error}); start again") from None
        return context


def id_of(connection: ssl.SSLObject | ssl.SSLSocket, expected: PeerId | None = None) -> PeerId:
    """Who is at the other end, after the handshake; PeerError if it is another than expected."""
    encoded = connection.getpeercert(binary_form=True)
    if encoded is None:
        raise PeerError("a peer showed no certificate; both sides of a connection need one")
    try:
        public = public_bytes(x509.load_der_x509_certificate(encoded).public_key())
    except Exception as error:  # OpenSSL took it; whatever else a second parser says of it, it is the remote's fault
        raise PeerError(f"a peer showed a certificate that cannot be read ({type(error).__name__})") from None
    if public is None:
        raise PeerError("a peer showed a certificate with a key of another kind; peers have Ed25519 keys")
    return _accepted(public, expected)


def proven(challenge: bytes, key: bytes, signature: bytes, expected: PeerId | None = None) -> PeerId:
    """Who answered a challenge (`Identity.prove`); PeerError if it does not hold the key, or is not the expected."""
    if not is_signed(key, _PROOF + challenge, signature):
        raise PeerError("a peer showed a key that it does not hold")
    return _accepted(key, expected)


def _accepted(public: bytes, expected: PeerId | None) -> PeerId:
    if public == _AUTHORITY_KEY.public_key().public_bytes_raw():
        raise PeerError("a peer showed a certificate with the common authority's key; everybody has that")
    found = PeerId.of(public)
    if expected is not None and found != expected:
        raise PeerError(f"peer {found} answered where {expected} was expected")
    return found


def _issue(public: Ed25519PublicKey, name: str, *, authority: bool = False) -> x509.Certificate:
    """A certificate by the common authority, for a peer or for itself. The same key and name give the same bytes."""
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(_AUTHORITY_KEY.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(_AUTHORITY_NAME))
        .public_key(public)
        .serial_number(int.from_bytes(identifier.digest[:15], "big") | 1)  # positive, at most 20 bytes
        .not_valid_before(_ALWAYS[0])
        .not_valid_after(_ALWAYS[1])
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(issuer, critical=False)
        .sign(_AUTHORITY_KEY, None)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@cache
def _authority() -> str:
    certificate = _issue(_AUTHORITY_KEY.public_key(), _AUTHORITY_NAME, authority=True)
    return certificate.public_bytes(Encoding.PEM).decode()


def _read_key(path: Path) -> Ed25519PrivateKey:
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise UsageError(f"{path}: others than its owner may use this key (mode {mode:o}); run chmod 600 on it")
        key = key_from_pem(file.read(_KEY_FILE_LIMIT))
    if key is None:
        raise UsageError(f"{path}: holds no readable Ed25519 key; restore it, or move it away to become a new peer")
    return key


def _create(path: Path, content: bytes) -> None:
    """Write a file for its owner's eyes, whole or not at all; if another process has just made it, that one stays."""
    with _written(path, content) as partial, contextlib.suppress(FileExistsError):
        path.hardlink_to(partial)


def _keep(path: Path, content: bytes) -> None:
    """Write a file that follows from the key, unless it is there already."""
    if not path.exists() or path.read_bytes() != content:
        with _written(path, content) as partial:
            partial.replace(path)


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """The content on disk under a temporary name, beside its place."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
        _sync(path.parent)
    finally:
        Path(name).unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
