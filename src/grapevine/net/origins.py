"""Where a connection comes from, as far as that costs something: keys are free, addresses and subnets are not.

Every bound on connections of strangers counts by *address* (one machine, for all one can tell) and by *subnet* (what
one customer of a provider gets for little money). Of IPv6 an address is a /64, since any machine has that many to
choose from, and a subnet a /48; of IPv4 a subnet is a /24.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import NamedTuple

from grapevine.model.errors import UsageError

_SUBNET, _ADDRESS_6, _SUBNET_6 = 24, 64, 48


class Origin(NamedTuple):
    """Where somebody connects from. Two connections of one origin's address may be one attacker's, at no cost."""

    address: str
    subnet: str


class Origins:
    """Tells origins from hosts. Networks that are not counted, such as one's own machines, have none."""

    def __init__(self, uncounted: str) -> None:
        self._uncounted = parse_networks(uncounted)
        self.of = lru_cache(maxsize=10_000)(self._of)

    def _of(self, host: str) -> Origin | None:
        """The origin of this IP address; None if it is not counted, or the transport could not tell the address."""
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return None
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address.version == network.version and address in network for network in self._uncounted):
            return None
        if isinstance(address, ipaddress.IPv4Address):
            return Origin(str(address), _network(address, _SUBNET))
        return Origin(_network(address, _ADDRESS_6), _network(address, _SUBNET_6))


def parse_networks(text: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Networks separated by spaces, e.g. `10.0.0.0/8 fd00::/8`; UsageError with what is none."""
    networks = []
    for word in text.split():
        try:
            networks.append(ipaddress.ip_network(word))
        except ValueError as error:
            raise UsageError(f"{word!r} is no network ({error}); write e.g. 10.0.0.0/8, several with spaces") from None
    return networks


def _network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int) -> str:
    return str(ipaddress.ip_network((address, bits), strict=False))
