"""Folding the loads of a table one by one: twin, check, exchange. Killed at any point, it leaves each load whole.

OUT/_staging/000007-…     the twin while it is written; after a kill it is swept by a later run
OUT/_replaced/000007-…    a load as it was, kept for a while after the exchange
"""

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from offsetd.failpoint import failpoint
from offsetd.pipeline.compacting.exchange import exchange, refuse_without_exchange
from offsetd.pipeline.compacting.fold import Fold, folded_entries, plan_folds, sources_of
from offsetd.pipeline.compacting.merge import compare, merge
from offsetd.pipeline.compacting.readers import without_readers
from offsetd.pipeline.load import manifest as manifests
from offsetd.pipeline.load.manifest import DataFile, Manifest
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused
from offsetd.pipeline.load.table import Table, delta_directory, sync, sync_tree

TARGET_BYTES: Final = 128 * 1024 * 1024
_REPLACED: Final = re.compile(r"\d{6,}-(\d{8}T\d{6}Z)-[0-9a-f]+")
_MOMENT: Final = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one load."""

    number: int
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    done: str
    """For people: folded, or why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of a compaction."""

    target_bytes: int = TARGET_BYTES
    before: int | None = None
    """Only loads with smaller numbers."""
    keep: timedelta = timedelta(hours=24)
    """How long a load is kept as it was."""
    wait_seconds: float = 60.0
    """For readers that hold the lock."""
    dry_run: bool = False


def compact(table: Table, wish: Wish) -> Iterator[Outcome]:
    """Fold every load that has small files, oldest first.

    Raises:
        BadRequest: the table is one that Delta folds.
        LoadRefused: there is no table, or a load is not what its manifest says.
    """
    if delta_directory(table.out).is_dir():
        raise BadRequest(
            f"{table.out} is a Delta table, and Delta folds its own files, over loads too, while others read: "
            f"spark.sql('OPTIMIZE delta.`{table.out}`'). The next load begins where it should all the same."
        )
    if not table.numbers():
        raise LoadRefused(f"{table.out} has no published load: is it the directory that was given to --out?")
    if not wish.dry_run:
        table.staging.mkdir(exist_ok=True)
        refuse_without_exchange(table.staging)
        # What is swept below may have been exchanged by a run that was killed before it had told the disk.
        sync(table.staging)
        sync(table.out)
        table.sweep()
        sweep_replaced(table, older_than=wish.keep)
    for manifest in table.live():
        if wish.before is not None and manifest.number >= wish.before:
            continue
        folds = plan_folds(sources_of(manifest.files), target_bytes=wish.target_bytes)
        if any(len(fold.sources) > 1 for fold in folds):
            yield _fold_load(table, manifest, folds, wish)


def _fold_load(table: Table, manifest: Manifest, folds: list[Fold], wish: Wish) -> Outcome:
    load = table.directory(manifest.number)
    refuse_changed(load, manifest)
    before = Outcome(
        number=manifest.number,
        files_before=sum(len(fold.sources) for fold in folds),
        files_after=len(folds),
        bytes_before=sum(file.bytes for file in manifest.files),
        bytes_after=0,
        done="would be folded",
    )
    if wish.dry_run:
        return before
    with table.stage(manifest.number) as twin:
        twin.mkdir()
        failpoint("compact_staged")
        entries = [entry for fold in folds for entry in _fold(fold, load, twin)]
        failpoint("compact_written")
        changed = _rewritten(manifest, entries, files_before=before.files_before)
        (twin / manifests.NAME).write_text(manifests.encode(changed))
        sync_tree(twin)
        failpoint("compact_synced")
        obstacle = _exchange(table, manifest, twin, wish)
    size = sum(entry.bytes for entry in entries)
    return replace(before, bytes_after=size, done=obstacle or "folded")


def _fold(fold: Fold, load: Path, twin: Path) -> list[DataFile]:
    """Make one file of the twin, and return what the manifest says of it."""
    (twin / fold.directory).mkdir(parents=True, exist_ok=True)
    if len(fold.sources) == 1:
        [source] = fold.sources
        # The same bytes under the same name: readers that have listed it go on, and no space is taken.
        os.link(load / source.path, twin / source.path)
        return list(source.entries)
    # Never a name that was there before: a reader with an old listing must not find other bytes behind it.
    name = f"{fold.directory}/folded-{uuid.uuid4().hex}.parquet"
    paths = [load / source.path for source in fold.sources]
    merge(paths, twin / name)
    compare(paths, twin / name)
    return folded_entries(fold, path=name, size_bytes=(twin / name).stat().st_size)


def _rewritten(manifest: Manifest, entries: list[DataFile], *, files_before: int) -> Manifest:
    """Return the manifest with the new files; ranges, rows and positions are what they were."""
    rows: dict[object, int] = {}
    for entry in entries:
        rows[entry.key] = rows.get(entry.key, 0) + entry.rows
    assert all(rows.get(key, 0) == count for key, count in manifest.rows.items()), "rows of a load changed"
    facts = {"folded_at": datetime.now(UTC).isoformat(timespec="seconds"), "files_before_folding": files_before}
    return replace(manifest, files=tuple(entries), facts={**manifest.facts, **facts})


def _exchange(table: Table, manifest: Manifest, twin: Path, wish: Wish) -> str | None:
    """Put the twin in the place of the load; return why not, if something is in the way."""
    load = table.directory(manifest.number)
    with without_readers(table.out, wait_seconds=wish.wait_seconds) as alone:
        if not alone:
            return f"left as it is: readers held the table for {wish.wait_seconds:g} s"
        with table.locked():
            if not load.is_dir() or table.manifest(manifest.number) != manifest:
                return "left as it is: another run changed it meanwhile"
            refuse_changed(load, manifest)
            failpoint("compact_before_exchange")
            exchange(twin, load)
            failpoint("compact_exchanged")
            sync(table.out)
            sync(table.staging)
            _keep(table, manifest.number, twin)
    failpoint("compact_kept")
    return None


def _keep(table: Table, number: int, old: Path) -> None:
    """Move a load as it was to where it is kept: whoever has its directory open still finds all its files."""
    replaced = table.out / "_replaced"
    replaced.mkdir(exist_ok=True)
    old.rename(replaced / f"{number:06d}-{datetime.now(UTC).strftime(_MOMENT)}-{uuid.uuid4().hex[:8]}")
    sync(replaced)


def sweep_replaced(table: Table, *, older_than: timedelta) -> int:
    """Remove loads that were replaced longer ago, and return how many."""
    replaced, swept = table.out / "_replaced", 0
    for path in sorted(replaced.iterdir()) if replaced.is_dir() else ():
        found = _REPLACED.fullmatch(path.name)
        if found is None:
            continue
        moved_at = datetime.strptime(found[1], _MOMENT).replace(tzinfo=UTC)
        if datetime.now(UTC) - moved_at >= older_than:
            shutil.rmtree(path, ignore_errors=True)
            swept += 1
    return swept


def refuse_changed(load: Path, manifest: Manifest) -> None:
    """Refuse a load whose files are not those that its manifest names.

    Raises:
        LoadRefused: a file is missing, has another size, or is not named.
    """
    named = {source.path: source.bytes for source in sources_of(manifest.files)}
    faults = []
    for path, size in named.items():
        try:
            found = (load / path).stat().st_size
        except FileNotFoundError:
            faults.append(f"{path}: missing")
            continue
        if found != size:
            faults.append(f"{path}: {found} bytes, the manifest says {size}")
    faults += [f"{name}: not in the manifest" for name in _visible(load) if name not in named and _rows(load / name)]
    if faults:
        raise LoadRefused(
            f"{load} does not hold what its manifest says. Nothing was changed. Was it edited by another program?",
            faults,
        )


def _visible(load: Path) -> list[str]:
    """Return the files that readers see below a load."""
    paths = (path.relative_to(load) for path in sorted(load.rglob("*")) if path.is_file())
    return [str(path) for path in paths if not any(part.startswith(("_", ".")) for part in path.parts)]


def _rows(path: Path) -> bool:
    """Return whether a file is other than an empty Parquet file, which Spark leaves where a task had nothing."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        return bool(parquet.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return True
