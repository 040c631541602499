"""A sample job in a process of its own: reads records elsewhere, writes to SQLite, keeps its positions in a group.

It says a dot for every step it takes, and can be told at which of them to die, or how long behind it, wherever it is
then: without warning and for good.
"""

import argparse
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random

from offsetd.client import AtLeastOnce, AtMostOnce, BlockingClient, BlockingKeeper, ExactlyOnce, Keeper, TopicPartition

GROUP, TOPIC = "job", "orders"
PARTITIONS, RECORDS, CHUNK_MAX = 2, 120, 5

Step = Callable[[], None]


def record(partition: int, offset: int) -> str:
    """Return what stands elsewhere: the record of an offset."""
    return f"order {partition}-{offset}"


def chunks(starts: dict[TopicPartition, int], random: Random) -> Iterator[tuple[TopicPartition, range]]:
    """Yield what is read next, in turn over the partitions, until everything is."""
    nexts = dict(starts)
    while left := [partition for partition, offset in nexts.items() if offset < RECORDS]:
        partition = random.choice(left)
        stop = min(nexts[partition] + random.randint(1, CHUNK_MAX), RECORDS)
        yield partition, range(nexts[partition], stop)
        nexts[partition] = stop


def write(database: sqlite3.Connection, partition: TopicPartition, offsets: range) -> None:
    """Write the output of some records."""
    rows = [(partition.partition, offset, record(partition.partition, offset)) for offset in offsets]
    database.executemany("insert into output values (?, ?, ?)", rows)


def store(database: sqlite3.Connection, partition: TopicPartition, offset: int) -> None:
    """Store a position."""
    database.execute("insert or replace into positions values (?, ?)", (partition.partition, offset))


def run_simple(
    keeper: BlockingKeeper[Keeper],
    database: sqlite3.Connection,
    wanted: list[TopicPartition],
    random: Random,
    step: Step,
) -> None:
    """Work with positions that only the broker keeps."""
    starts = {partition: found.offset for partition, found in keeper.resume(wanted).items()}
    step()
    for partition, offsets in chunks(starts, random):
        with keeper.processing({partition: offsets.stop}):
            step()
            for offset in offsets:
                write(database, partition, range(offset, offset + 1))
                database.commit()
                step()
        step()


def run_stored(
    keeper: BlockingKeeper[ExactlyOnce],
    database: sqlite3.Connection,
    wanted: list[TopicPartition],
    random: Random,
    step: Step,
    *,
    apart: bool,
) -> None:
    """Work with positions that are stored with the output; `apart`, as nobody should, in a transaction of their own."""
    rows = dict(database.execute("select number, offset from positions"))
    found = keeper.resume({partition: rows.get(partition.partition) for partition in wanted})
    step()
    for partition, offsets in chunks({each: start.offset for each, start in found.items()}, random):
        with keeper.processing({partition: offsets.stop}):
            write(database, partition, offsets)
            step()
            if apart:
                database.commit()
                step()
            store(database, partition, offsets.stop)
            database.commit()
            step()
        step()


def main() -> int:
    """Do what is left of the work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("database")
    parser.add_argument("discipline", choices=["AtMostOnce", "AtLeastOnce", "ExactlyOnce", "Apart"])
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--die-after-ms", type=float, default=0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        os.write(sys.stdout.fileno(), b".")
        if steps == asked.die_at and asked.die_after_ms:
            threading.Timer(asked.die_after_ms / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()
        elif steps == asked.die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    random = Random(asked.seed)
    wanted = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with closing(sqlite3.connect(asked.database)) as database, BlockingClient(asked.address) as client:
        # Here a process dies and not its machine, so there is nothing to wait for.
        database.execute("pragma synchronous = off")
        database.execute("create table if not exists output (number, offset, line)")
        database.execute("create table if not exists positions (number primary key, offset)")
        database.commit()
        match asked.discipline:
            case "AtMostOnce":
                run_simple(client.keep(AtMostOnce, GROUP), database, wanted, random, step)
            case "AtLeastOnce":
                run_simple(client.keep(AtLeastOnce, GROUP), database, wanted, random, step)
            case _:
                with client.keep(ExactlyOnce, GROUP) as keeper:
                    run_stored(keeper, database, wanted, random, step, apart=asked.discipline == "Apart")
    return 0


if __name__ == "__main__":
    sys.exit(main())
