"""Breaks requests: by what their pieces mean, by their bytes alone, or makes bytes of nothing."""

import struct
from random import Random

from tests.fuzz import specimens
from tests.protocol.layout import Piece, frame_of, varint

CORPUS = 400
#: One in so many frames, a specimen of the corpus makes room for a new one.
RENEWAL = 20

#: A high number here makes Metadata list thousands of partitions ever after, which would become all there is to do.
_COMMITTED_PARTITION = "OffsetCommitRequestPartition.partition_index"

_VARINTS = (0, 1, 2, 3, 126, 127, 128, 129, 2**14, 32768, 32769, 2**31 - 1, 2**31, 2**32 - 1)
_TEXTS = (b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"a/b", b"a b", b"..", b"\xff" * 12_000)


class Mutator:
    """An endless source of frames, without their sizes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._corpus = [
            specimens.pieces(random, specimens.ROUTES[number % len(specimens.ROUTES)]) for number in range(CORPUS)
        ]

    def valid(self) -> bytes:
        """Return a frame that nothing is wrong with."""
        return frame_of(self._specimen())

    def frame(self) -> bytes:
        """Return the next frame: seldom valid, mostly nearly so."""
        random = self._random
        choice = random.random()
        if choice < 0.1:
            return self.valid()
        if choice < 0.6:
            return self._broken_pieces()
        if choice < 0.9:
            return self._broken_bytes(bytearray(self.valid()))
        if choice < 0.95:
            header = struct.pack(">hhi", random.choice((*range(70), -1, 32767)), random.randrange(-2, 20), 7)
            return header + self.valid()[8:]
        return random.randbytes(random.choice((8, 9, 10, 11, 16, 64, 300)))

    def _specimen(self) -> list[Piece]:
        random = self._random
        place = random.randrange(CORPUS)
        if random.random() < 1 / RENEWAL:
            self._corpus[place] = specimens.pieces(random, random.choice(specimens.ROUTES))
        return self._corpus[place]

    def _broken_pieces(self) -> bytes:
        random = self._random
        pieces = list(self._specimen())
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            place = random.randrange(len(pieces))
            piece = pieces[place]
            choice = random.random()
            if choice < 0.8:
                pieces[place] = piece._replace(data=self._broken(piece))
            elif choice < 0.87:
                del pieces[place:]
                pieces.append(piece)
            elif choice < 0.94:
                # The rest of another request, from a piece of the same kind on.
                other = self._specimen()
                starts = [at for at, each in enumerate(other) if each.role == piece.role]
                pieces[place:] = other[random.choice(starts) :] if starts else other
            else:
                pieces[place:place] = pieces[place : place + random.randrange(1, 6)] * random.randrange(1, 40)
        return frame_of(pieces)

    def _broken(self, piece: Piece) -> bytes:
        random = self._random
        if piece.what == _COMMITTED_PARTITION and random.random() < 0.99:
            return struct.pack(">i", random.choice((-1, 0, 1, 50)))
        if piece.code in {"b", "h", "i", "q"}:
            return struct.pack(f">{piece.code}", specimens.number(random, piece.code))
        match piece.role:
            case "text" | "client id":
                return random.choice((*_TEXTS, piece.data * 2, random.randbytes(len(piece.data))))
            case "tags":
                return self._tags()
            case "length" | "size" | "count" | "tag" | "tag size":
                value = random.choice((*_VARINTS, random.randrange(300)))
                return varint(value, bytes_least=random.choice((1, 1, 2, 5, 6)))
            case _:
                return random.randbytes(len(piece.data))

    def _tags(self) -> bytes:
        random = self._random
        tags = []
        for _ in range(random.randrange(4)):
            payload = random.randbytes(random.choice((0, 1, 5, 20)))
            size = len(payload) if random.random() < 0.8 else random.choice(_VARINTS)
            tags.append(varint(random.choice((0, 1, 2, 3, 99, 2**32 - 1))) + varint(size) + payload)
        count = len(tags) if random.random() < 0.8 else random.choice(_VARINTS)
        return varint(count) + b"".join(tags)

    def _broken_bytes(self, data: bytearray) -> bytes:
        random = self._random
        for _ in range(random.choice((1, 1, 2, 3, 8))):
            at = random.randrange(len(data))
            match random.randrange(6):
                case 0:
                    data[at] ^= 1 << random.randrange(8)
                case 1:
                    data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
                case 2:
                    data[at:at] = random.randbytes(random.randrange(1, 9))
                case 3:
                    del data[at : at + random.randrange(1, 9)]
                case 4:
                    del data[at:]
                case _:
                    data[at:at] = data[at : at + 20] * random.randrange(1, 30)
            # What is shorter than a header is the frame buffer's business.
            data.extend(bytes(max(0, 8 - len(data))))
        return bytes(data)
