"""The topics that a consumer's metadata names. Opaque bytes from a stranger: whatever they are, nothing breaks here."""

from struct import Struct
from struct import error as struct_error

_HEAD = Struct(">hi")
_LENGTH = Struct(">h")
#: The protocol type whose metadata is read; that of any other is nobody's business.
CONSUMER = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a consumer's subscription, None where they cannot be told."""
    try:
        version, count = _HEAD.unpack_from(metadata)
        # Each topic takes two bytes at least, so a count cannot ask for more than there is.
        if version < 0 or not 0 <= count <= len(metadata) // _LENGTH.size:
            return None
        at = _HEAD.size
        topics = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size
            name = metadata[at : at + length]
            if length < 0 or len(name) != length:
                return None
            topics.append(name.decode())
            at += length
    except (struct_error, UnicodeDecodeError):
        return None
    return frozenset(topics)
