"""What the `offsetd` source can be asked for by options, and what is wrong with those that make no sense."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.pipeline.history.places import Places, locate
from offsetd.pipeline.history.refusal import HistoryRefused
from offsetd.pipeline.history.span import Span, parse_spans

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_HISTORY: Final = frozenset({"directory", "path", "brokerId", "failOnDataLoss"})
_OF_BATCH_READS: Final = frozenset({"batches"})
_OF_STREAMS: Final = frozenset({"startingBatch", "maxBatchesPerTrigger"})
_LIVE: Final = "broker"
_NAMES: Final = {name.lower(): name for name in (*_HISTORY, *_OF_BATCH_READS, *_OF_STREAMS, _LIVE)}
_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Which history is to be read, and how."""

    directory: Path
    broker_id: int | None = None
    fail_on_data_loss: bool = True
    spans: tuple[Span, ...] | None = None
    """The batches of a batch read, a task for each run of them; None for all that are not sealed."""
    starting: str | int = EARLIEST
    batches_max: int | None = None

    def locate(self) -> Places:
        """Return where the history lies now.

        Raises:
            HistoryRefused: it is nowhere.
        """
        return locate(self.directory, self.broker_id)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Which cluster's live state is to be read."""

    bootstrap: str


def read_options(given: Mapping[str, str]) -> HistoryOptions | LiveOptions:
    """Return what options ask for.

    Raises:
        HistoryRefused: one is unknown, makes no sense, or does not go with another.
    """
    options = {_known(name): text for name, text in given.items()}
    if _LIVE in options:
        return _live(options)
    named = [options[name] for name in ("directory", "path") if name in options]
    if not named:
        raise HistoryRefused(
            "the offsetd source needs option directory (the data directory of a daemon, or a copy of its history) for "
            "history, or broker (HOST:PORT) for the live state"
        )
    if len(set(named)) > 1:
        raise HistoryRefused(f"directory is {options['directory']!r} and path {options['path']!r}: give one of them")
    fail = options.get("failOnDataLoss", "true").lower()
    if fail not in _BOOLEANS:
        raise HistoryRefused(f"failOnDataLoss is {fail!r}, want true or false")
    return HistoryOptions(
        # Absolute from here on: executors have working directories of their own.
        directory=local_directory(named[0]),
        broker_id=_number("brokerId", options, 0),
        fail_on_data_loss=_BOOLEANS[fail],
        spans=_spans(options),
        starting=_starting(options),
        batches_max=_number("maxBatchesPerTrigger", options, 1),
    )


def local_directory(text: str) -> Path:
    """Return a directory as an absolute path.

    Raises:
        HistoryRefused: it is on no file system that this machine has mounted.
    """
    path = text.removeprefix("file://") if text.startswith("file:///") else text.removeprefix("file:")
    if "://" in path:
        raise HistoryRefused(
            f"{text} is no directory of this machine: segments are read as files, so mount it. Sealed files alone, "
            "wherever they are, can be read by spark.read.parquet"
        )
    if not path:
        raise HistoryRefused("directory is empty: give the data directory of a daemon, or a copy of its history")
    return Path(path).absolute()


def _known(name: str) -> str:
    try:
        return _NAMES[name.lower()]
    except KeyError:
        known = ", ".join(sorted(_NAMES.values()))
        raise HistoryRefused(f"the offsetd source has no option {name!r}; it has {known}") from None


def _live(options: Mapping[str, str]) -> LiveOptions:
    # Imported here: whoever reads history needs no client, and Spark starts a process for every plan it makes.
    from offsetd.client.address import parse_bootstrap  # noqa: PLC0415

    others = sorted(options.keys() - {_LIVE})
    if others:
        raise HistoryRefused(f"broker reads the live state, and {others[0]} is for history: give one of them")
    try:
        parse_bootstrap(options[_LIVE])
    except ValueError as error:
        raise HistoryRefused(f"broker: {error}") from error
    return LiveOptions(options[_LIVE])


def check_batch_read(given: Mapping[str, str]) -> None:
    """Refuse what only streams have."""
    _refuse(given, _OF_STREAMS, "spark.readStream")


def check_stream(given: Mapping[str, str]) -> None:
    """Refuse what only batch reads have."""
    _refuse(given, _OF_BATCH_READS | {_LIVE}, "spark.read")


def _refuse(given: Mapping[str, str], names: frozenset[str], where: str) -> None:
    for name in given:
        if _known(name) in names:
            raise HistoryRefused(f"the option {_known(name)} is for {where} only")


def _number(name: str, options: Mapping[str, str], least: int) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise HistoryRefused(f"{name} is {text!r}, want a whole number from {least} on")
    return int(text)


def _starting(options: Mapping[str, str]) -> str | int:
    text = options.get("startingBatch", EARLIEST)
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise HistoryRefused(f"startingBatch is {text!r}, want earliest, latest, or the number of the first batch")
    return int(text)


def _spans(options: Mapping[str, str]) -> tuple[Span, ...] | None:
    text = options.get("batches")
    if text is None:
        return None
    try:
        return parse_spans(text)
    except ValueError as error:
        raise HistoryRefused(f"batches: {error}") from error
