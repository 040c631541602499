"""The durable marker and the clean-stop file: which batch was known to be on disk, and where it ended."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import crc32c

from offsetd.journal.files import Files

DURABLE: Final = "durable"
CLEAN_STOP: Final = "clean-stop"
_MAGIC: Final = b"OFDMARK1"
_FIELDS: Final = struct.Struct("<8sQQQI")
_CRC: Final = struct.Struct("<I")
MARKER_BYTES: Final = _FIELDS.size + _CRC.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The end of what is durable: a batch, its segment's first batch, where it ends there, and its CRC."""

    number: int
    first_number: int
    position: int
    crc: int


def encode_marker(marker: Marker) -> bytes:
    """Return the bytes of a marker file."""
    fields = _FIELDS.pack(_MAGIC, marker.number, marker.first_number, marker.position, marker.crc)
    return fields + _CRC.pack(crc32c.crc32c(fields))


def decode_marker(data: bytes) -> Marker | None:
    """Read a marker file's bytes; None if they are not whole."""
    if len(data) != MARKER_BYTES:
        return None
    magic, number, first_number, position, crc = _FIELDS.unpack_from(data)
    if magic != _MAGIC or _CRC.unpack_from(data, _FIELDS.size)[0] != crc32c.crc32c(data[: _FIELDS.size]):
        return None
    return Marker(number=number, first_number=first_number, position=position, crc=crc)


def read_marker(files: Files, path: Path) -> tuple[Marker | None, bool]:
    """Return the marker in a file, and whether the file is there at all."""
    try:
        data = files.read(path, 0, MARKER_BYTES + 1)
    except FileNotFoundError:
        return None, False
    return decode_marker(data), True
