"""Where brokers listen, as people write it: HOST:PORT, IPv6 hosts in brackets, several joined by commas.

No name is looked up here.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

PORT_MAX: Final = 65_535


class Address(NamedTuple):
    """A host and a port, as a socket takes them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> tuple[Address, ...]:
    """Read the addresses that a client begins with; each is kept once, in the order they were given.

    Raises:
        ValueError: one of them is not an address, or there is none at all.
    """
    texts = [bootstrap] if isinstance(bootstrap, str) else list(bootstrap)
    parts = [part.strip() for text in texts for part in text.split(",")]
    addresses = tuple(dict.fromkeys(_parse(part) for part in parts if part))
    if not addresses:
        raise ValueError("no bootstrap address was given, want HOST:PORT, several joined by commas")
    return addresses


def _parse(text: str) -> Address:
    host, colon, port_text = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"address {text!r} has an IPv6 host without brackets, want [HOST]:PORT")
    if not colon or not host:
        raise ValueError(f"address {text!r} lacks its host or its port, want HOST:PORT")
    if not port_text.isascii() or not port_text.isdigit() or not 1 <= int(port_text) <= PORT_MAX:
        raise ValueError(f"address {text!r} has no port in 1..{PORT_MAX}")
    return Address(host, int(port_text))
