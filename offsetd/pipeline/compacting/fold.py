"""Which files of a load are folded together. Pure: sizes and names in, a plan out."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from offsetd.pipeline.load.manifest import DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file as it is on disk, and what the manifest says of it: an entry for each partition that it holds."""

    path: str
    """Below the load's directory."""
    bytes: int
    entries: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Files of one directory that become one file; a single one stays what it is."""

    directory: str
    sources: tuple[Source, ...]


def sources_of(files: Iterable[DataFile]) -> list[Source]:
    """Return the files that a manifest names, by path. One that was folded before is named once for each partition."""
    found: dict[str, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.path, []).append(file)
    return [
        Source(path=path, bytes=sum(entry.bytes for entry in entries), entries=tuple(entries))
        for path, entries in sorted(found.items())
    ]


def plan_folds(sources: Iterable[Source], *, target_bytes: int) -> list[Fold]:
    """Return what becomes of each file: those of over half the target stay, the others are folded up to the target.

    Files of one directory only are folded together, in the order of partition and offset.
    """
    directories: dict[str, list[Source]] = {}
    for source in sources:
        directories.setdefault(str(PurePosixPath(source.path).parent), []).append(source)
    folds = []
    for directory, found in sorted(directories.items()):
        run: list[Source] = []
        for source in sorted(found, key=lambda item: (item.entries[0].partition, item.entries[0].first)):
            if source.bytes * 2 > target_bytes:
                folds.append(Fold(directory=directory, sources=(source,)))
                continue
            if run and sum(item.bytes for item in run) + source.bytes > target_bytes:
                folds.append(Fold(directory=directory, sources=tuple(run)))
                run = []
            run.append(source)
        if run:
            folds.append(Fold(directory=directory, sources=tuple(run)))
    return folds


def folded_entries(fold: Fold, *, path: str, size_bytes: int) -> list[DataFile]:
    """Return what the manifest says of a folded file: an entry for each slice of a partition.

    Bytes are shared out by rows, so that they add up to the file's size.
    """
    slices: list[DataFile] = []
    for entry in (entry for source in fold.sources for entry in source.entries):
        last = slices[-1] if slices else None
        if last is not None and last.key == entry.key and last.last < entry.first:
            slices[-1] = _joined(last, entry, path)
        else:
            slices.append(_joined(entry, None, path))
    rows, given, result = sum(item.rows for item in slices), 0, []
    counted = 0
    for item in slices:
        counted += item.rows
        share = size_bytes * counted // rows - given
        given += share
        result.append(_with_bytes(item, share))
    return result


def _joined(one: DataFile, other: DataFile | None, path: str) -> DataFile:
    return DataFile(
        path=path,
        topic=one.topic,
        partition=one.partition,
        rows=one.rows + (other.rows if other else 0),
        bytes=0,
        first=one.first,
        last=other.last if other else one.last,
        unparsed=one.unparsed + (other.unparsed if other else 0),
    )


def _with_bytes(item: DataFile, size: int) -> DataFile:
    return DataFile(
        path=item.path,
        topic=item.topic,
        partition=item.partition,
        rows=item.rows,
        bytes=size,
        first=item.first,
        last=item.last,
        unparsed=item.unparsed,
    )
