"""The check before a load is published: the files hold what the plan says, nothing outside it, nothing twice. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.manifest import DataFile
from offsetd.pipeline.load.plan import Check, Plan, Range
from offsetd.pipeline.load.refusal import NotVerified


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What the files were found to hold."""

    rows: Mapping[TopicPartition, int]
    checks: Mapping[str, Check]
    """By topic: exact if every offset of every range is a row."""


def verify(plan: Plan, files: Iterable[DataFile], *, exact: bool = False) -> Verified:
    """Hold files against a plan.

    Offsets without a row are not a fault by themselves: compaction takes records away, aborted transactions are not
    shown, and their markers take offsets of their own. Their number is known, and said; what they were is not.

    Args:
        files: each with offsets of one partition, rising, each once.
        exact: whether an offset without a row is a fault nevertheless.

    Raises:
        NotVerified: the load must not be published.
    """
    found: dict[TopicPartition, list[DataFile]] = {item.key: [] for item in plan.ranges}
    faults = []
    for file in files:
        if file.key in found:
            found[file.key].append(file)
        else:
            faults.append(f"{file.path}: holds {file.key}, which is not in the plan")
    rows = {item.key: sum(file.rows for file in found[item.key]) for item in plan.ranges}
    for item in plan.ranges:
        faults += _faults(item, sorted(found[item.key], key=lambda file: file.first))
    holes = [
        f"{item.key}: {item.records - rows[item.key]} of {item.records} offsets brought no row"
        for item in plan.ranges
        if rows[item.key] < item.records
    ]
    if exact and holes and not faults:
        raise NotVerified(
            "some offsets brought no row, and --exact wants one of each. Nothing was published. If the topic is "
            "compacted or has transactions that is as it should be: load it without --exact.",
            holes,
        )
    if faults:
        raise NotVerified(
            f"what was written is not load {plan.number} as planned. Nothing was published; run again.", faults
        )
    empty = {item.topic for item in plan.ranges if rows[item.key] < item.records}
    return Verified(
        rows=rows,
        checks={item.topic: Check.BOUNDS if item.topic in empty else Check.EXACT for item in plan.ranges},
    )


def _faults(item: Range, files: list[DataFile]) -> list[str]:
    faults = []
    for file in files:
        if not item.start <= file.first <= file.last < item.end:
            faults.append(
                f"{file.path}: {item.key} {file.first}..{file.last} is not within {item.start}..{item.end - 1}"
            )
        if not 0 < file.rows <= file.last - file.first + 1:
            faults.append(f"{file.path}: {file.rows} rows cannot be {item.key} {file.first}..{file.last} once each")
    faults += [
        f"{one.path} and {other.path}: both reach over {item.key} {other.first}"
        for one, other in pairwise(files)
        if other.first <= one.last
    ]
    return faults
