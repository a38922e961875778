"""Where peers are to be found: records that each signs for itself, so that nobody can lead others astray."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import msgspec

from grapevine.model.arguments import refuse
from grapevine.model.errors import PeerError, UsageError
from grapevine.model.identity import PeerId, is_signed
from grapevine.systems.contracts.peer import Address

_PURPOSE = b"grapevine contact 1\0"


class Contact(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """I am here, says the owner of this key. Sent by its owner in Hello, and passed on by others in Introduce.

    Anybody may pass it on, and nobody can change it. What may go wrong: it is old, and its owner has moved. Then nobody
    answers there, or another peer, which the transport notices.
    """

    key: bytes  # the owner's public key, of which its id is the hash
    host: str  # an IP address: names could lead anywhere
    port: int
    time_ms: int  # by the owner's clock; a later record replaces an earlier one
    signature: bytes  # by the key, of host, port and time

    @property
    def id(self) -> PeerId:
        """Whose record it is; `check` says whether that is so."""
        return PeerId.of(self.key)

    def content(self) -> bytes:
        """The bytes that the owner signs."""
        return _PURPOSE + msgspec.msgpack.encode((self.host, self.port, self.time_ms))

    def check(self) -> PeerId:
        """Whose record it is; PeerError if it did not sign it, or cannot be there."""
        if not 0 < self.port < 65_536 or not is_reachable(self.host):
            raise PeerError(
                f"a contact at {self.host[:50]!r}:{self.port} came; hosts are IP addresses, ports 1 – 65535"
            )
        if not is_signed(self.key, self.content(), self.signature):
            raise PeerError(f"a contact at {self.host}:{self.port} came that its owner did not sign")
        return self.id


class Contacts:
    """The records that a node knows, the least recently used of which are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Address, Contact] = OrderedDict()

    def learn(self, contact: Contact) -> PeerId:
        """Take a record, unless it is older than what is known; PeerError if it is none."""
        known = self._known.get(contact.id.address)
        if known is not None and known.key == contact.key and known.time_ms >= contact.time_ms:
            return contact.id
        owner = contact.check()
        if known is not None and known.key != contact.key:
            raise PeerError(f"peer {owner} has the address of {known.id}; one of them was made to measure")
        self._known[owner.address] = contact
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return owner

    def find(self, address: Address) -> Contact | None:
        """Where the peer says it is; None if it is not known. Whom one asks for is forgotten last."""
        found = self._known.get(address)
        if found is not None:
            self._known.move_to_end(address)
        return found

    def latest(self, most: int) -> list[Contact]:
        """The records that were learnt or asked for last, the newest first."""
        return list(reversed(self._known.values()))[:most]


def parse_endpoint(text: str) -> tuple[str, int]:
    """`host:port`; a host may be a name, an IPv4 address or an IPv6 address in brackets."""
    if not isinstance(text, str):
        raise UsageError(f"{text!r} is no endpoint; give HOST:PORT as a text, e.g. '127.0.0.1:7000'")
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise UsageError(f"{text!r} is no endpoint; give HOST:PORT, e.g. 127.0.0.1:7000")
    return host, int(port)


def parse_endpoints(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Several of them; a port is needed, since nobody is found at port 0."""
    if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
        refuse("bootstrap", texts, "a list of endpoints, e.g. ['127.0.0.1:7000']")
    found = [parse_endpoint(text) for text in texts]
    for host, port in found:
        if port == 0:
            raise UsageError(f"{host}:0 is no endpoint to join; give the port that a node listens on")
    return found


def is_reachable(host: str) -> bool:
    """Whether others can be told this host: an IP address of one machine, without a scope (it may have any length)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_multicast or "%" in host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
