"""HOST:PORT as people write it, with IPv6 hosts in brackets. No name is looked up here."""

from typing import NamedTuple

WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104  # named so that they can be refused, not bound
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
# Kafka writes listeners as PLAINTEXT://host:port; we have one listener, which speaks plain text.
PLAIN_SCHEME = "PLAINTEXT://"


class Address(NamedTuple):
    """A host and a port, as a socket takes them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether a listener here takes connections on every interface."""
        return self.host in WILDCARDS

    def reachable(self) -> "Address":
        """Return where a program on this machine connects to reach a listener here."""
        return Address(LOOPBACK_OF.get(self.host, self.host), self.port)


def parse_address(text: str) -> Address:
    """Read ``host:port`` or ``[ipv6]:port``.

    Raises:
        ValueError: with a phrase that says what is wrong with the text.
    """
    plain = text.strip().removeprefix(PLAIN_SCHEME)
    if "://" in plain:
        raise ValueError("names a scheme other than PLAINTEXT, which is the only one spoken here")
    if "," in plain:
        raise ValueError("names several addresses, want one HOST:PORT")
    host, colon, port_text = plain.rpartition(":")
    if not colon:
        raise ValueError("has no port, want HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("has an IPv6 host without brackets, want [HOST]:PORT")
    if not host:
        raise ValueError("has no host, want HOST:PORT (0.0.0.0 listens on every interface)")
    if not port_text.isascii() or not port_text.isdigit() or int(port_text) > 65_535:
        raise ValueError("has a port outside 0..65535")
    return Address(host, int(port_text))
