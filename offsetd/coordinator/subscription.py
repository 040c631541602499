"""The topics that a consumer's metadata names. Opaque bytes from a stranger: whatever they are, nothing breaks here."""

from struct import Struct
from struct import error as struct_error
from typing import Final

#: The protocol type whose metadata is read; that of any other is nobody's business.
CONSUMER: Final = "consumer"
# Every version begins like the first one: version, topics, and bytes that belong to whoever assigns.
_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")
_USER_DATA_LENGTH: Final = Struct(">i")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a consumer's subscription, None where they cannot be told."""
    try:
        _, count = _HEAD.unpack_from(metadata)
        # Each topic takes two bytes at least, so a count cannot ask for more than there is.
        if not 0 <= count <= len(metadata) // _LENGTH.size:
            return None
        at = _HEAD.size
        topics = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size
            if length < 0 or at + length > len(metadata):
                return None
            topics.append(metadata[at : at + length].decode(errors="replace"))
            at += length
        (length,) = _USER_DATA_LENGTH.unpack_from(metadata, at)
    except struct_error:
        return None
    if at + _USER_DATA_LENGTH.size + length > len(metadata):
        return None
    return frozenset(topics)
