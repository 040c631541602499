"""A broker's history made up for measuring: released segments as a daemon would have left them."""

import random
from collections.abc import Iterator
from pathlib import Path
from struct import pack
from typing import Final

from offsetd.journal.batch import cluster_seed, encode_batch, frame_crc
from offsetd.journal.directory import Identity, open_directory
from offsetd.journal.segment import encode_header, segment_name
from offsetd.record import TopicOffsets, Who, encode_commit

SLOTS: Final = 50
#: A segment of the default size, and a batch of a loop turn in which several clients have committed.
SEGMENT_BYTES: Final = 64 * 1024 * 1024
BATCH_COMMITS: Final = 48
COMMIT_PARTITIONS: Final = 2
_GROUPS: Final = 200
_TOPICS: Final = 20
_BEGAN_MS: Final = 1_790_000_000_000
_BATCH_MS: Final = 100


def write_history(data: Path, records: int) -> Identity:
    """Fill the history of broker 1 in a new data directory with at least so many commits, and return whose it is."""
    identity, broker, lock = open_directory(data, broker_id=1, slots=SLOTS, random_bytes=bytes)
    lock.release()
    batches = _batches(-(-records // (BATCH_COMMITS * COMMIT_PARTITIONS)))
    seed, number, crc = cluster_seed(identity.cluster), 0, 0
    sequences = [0] * SLOTS
    ended = False
    while not ended:
        header = encode_header(
            cluster=identity.cluster,
            first_number=number + 1,
            previous_crc=crc,
            epoch=1,
            created_ms=_BEGAN_MS,
            next_sequences=sequences,
        )
        frames, size = [header], len(header)
        ended = True
        for time_ms, entries in batches:
            number += 1
            frame = encode_batch(
                [entry for _, entry in entries],
                seed=seed,
                number=number,
                previous_crc=crc,
                synced_number=number - 1,
                epoch=1,
                time_ms=time_ms,
            )
            for slot, _ in entries:
                sequences[slot] += COMMIT_PARTITIONS
            crc = frame_crc(frame)
            frames.append(frame)
            size += len(frame)
            if size >= SEGMENT_BYTES:
                ended = False
                break
        first = number - len(frames) + 2
        (broker.history / segment_name(first)).write_bytes(b"".join(frames))
    return identity


def _batches(count: int) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
    """Yield the time of each batch, and its entries with their slots."""
    dice = random.Random(1)  # noqa: S311  # offsets, not secrets
    groups = [f"group-{number:04d}" for number in range(_GROUPS)]
    topics = [f"topic-{number:02d}" for number in range(_TOPICS)]
    whos = [Who(f"client-{number:03d}", f"/10.0.{number // 250}.{number % 250}", "") for number in range(_GROUPS)]
    position = 0
    for number in range(count):
        entries = []
        for _ in range(BATCH_COMMITS):
            group, topic = dice.randrange(_GROUPS), dice.randrange(_TOPICS)
            position += dice.randrange(500)
            start = COMMIT_PARTITIONS * dice.randrange(6)
            columns = TopicOffsets(
                topics[topic],
                pack(f">{COMMIT_PARTITIONS}i", *range(start, start + COMMIT_PARTITIONS)),
                pack(f">{COMMIT_PARTITIONS}q", *(position + dice.randrange(100) for _ in range(COMMIT_PARTITIONS))),
            )
            slot = group % SLOTS
            time_ms = _BEGAN_MS + number * _BATCH_MS
            entries.append((slot, encode_commit(slot, groups[group], time_ms, whos[group], [columns])))
        yield _BEGAN_MS + number * _BATCH_MS, entries
