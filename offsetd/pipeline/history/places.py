"""Where one broker's history lies: the journal it writes, the segments that were released, and the sealed files.

A data directory is taken, one broker's directory in it, or a copy of that one's history. Nothing is opened here.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.journal.directory import IDENTITY, BrokerDirectory
from offsetd.journal.segment import segment_name
from offsetd.pipeline.history.refusal import HistoryRefused

_BROKER: Final = re.compile(r"^broker-(\d+)$")
#: What stands in a data directory before a daemon has made its own below it.
_NOTHING_YET: Final = frozenset({IDENTITY, IDENTITY + ".tmp", "lost+found"})


@dataclass(frozen=True, slots=True)
class Places:
    """Three directories, each of which may not be there. Batches move from the first to the second to the third."""

    journal: Path
    segments: Path
    sealed: Path

    def of_segment(self, first_number: int) -> tuple[Path, Path]:
        """Return where a segment may stand, in the order in which it goes from one to the other."""
        name = segment_name(first_number)
        return self.journal / name, self.segments / name


def locate(directory: Path, broker_id: int | None) -> Places:
    """Return where history lies in a directory.

    Args:
        directory: a data directory, one broker's in it, or one that holds `segments` or `sealed`.
        broker_id: whose history is meant; None for the only one there.

    Raises:
        HistoryRefused: it is none of these, or it does not say whose history is meant.
    """
    try:
        names = {path.name for path in directory.iterdir()}
    except FileNotFoundError:
        raise HistoryRefused(f"there is no directory {directory}; executors must see it under the same path") from None
    except NotADirectoryError:
        raise HistoryRefused(f"{directory} is no directory: give the data directory of a daemon") from None
    except OSError as error:
        raise HistoryRefused(f"{directory} cannot be read: {error.strerror}") from error
    brokers = sorted(int(found[1]) for name in names if (found := _BROKER.match(name)))
    if brokers:
        return _of_broker(directory, brokers, broker_id)
    if "journal" in names or "history" in names:
        return _below(BrokerDirectory(directory))
    if "segments" in names or "sealed" in names or names <= _NOTHING_YET:
        return Places(directory / "journal", directory / "segments", directory / "sealed")
    raise HistoryRefused(
        f"{directory} holds no history: want the data directory of a daemon (with broker-<id>/ in it), or a copy of a "
        "broker's history/ (with segments/ or sealed/ in it)"
    )


def _of_broker(directory: Path, brokers: list[int], broker_id: int | None) -> Places:
    named = ", ".join(map(str, brokers))
    if broker_id is None and len(brokers) > 1:
        raise HistoryRefused(f"{directory} holds data of the brokers {named}: say which one (brokerId)")
    if broker_id is not None and broker_id not in brokers:
        raise HistoryRefused(f"{directory} holds nothing of broker {broker_id}, only of {named}")
    chosen = brokers[0] if broker_id is None else broker_id
    return _below(BrokerDirectory(directory / f"broker-{chosen}"))


def _below(broker: BrokerDirectory) -> Places:
    return Places(broker.journal, broker.history, broker.sealed)
