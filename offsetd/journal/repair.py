"""Carrying out the plan of a repair, so that a start trusts what is left. Nothing is deleted: what goes, goes into
quarantine.

Every step leaves a journal from which the same plan is made again, so a repair that was killed is simply run again.
"""

from collections.abc import Iterator

from offsetd import __version__
from offsetd.failpoint import failpoint
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.examine import Tail
from offsetd.journal.files import OsFiles, replace_file, sync_directory, sync_path, write_new
from offsetd.journal.marker import DURABLE, encode_marker
from offsetd.journal.plan import Plan, make_plan
from offsetd.journal.planned import Cut, NewSegment, PlannedFiles
from offsetd.journal.rebuild import carry_on, free_name, rebuild
from offsetd.journal.recovery import cut_tail


def repair(directory: BrokerDirectory, identity: Identity) -> Iterator[str]:
    """Do what the plan says, with the broker's directory locked; yield a sentence for each thing done.

    Raises:
        RepairRefused, JournalRefused, CheckpointRefused, UnknownEntry: as `make_plan`; nothing was changed.
        OSError: the disk did not do as told. Run again, the repair goes on from there.
    """
    plan = make_plan(directory, identity)
    if plan.bridge is not None:
        yield _bring_back(directory, identity, plan)
        # Only now is known what the checkpoint says of the slots' sequences.
        plan = make_plan(directory, identity)
        assert plan.bridge is None, "the checkpoint was brought back"
    new = plan.files.new
    if new is not None and new.source is not None:
        yield _create(new)
    # From the end: as long as the damage itself stands, everything behind it is still seen to be cut.
    for cut in sorted(plan.files.cuts.values(), key=lambda cut: cut.path, reverse=True):
        yield _move(directory, cut) if cut.whole else _cut(directory, cut)
    if new is not None and new.source is None:
        yield _create(new)
    if plan.marker is not None:
        yield _mark(directory, plan)
    assert not make_plan(directory, identity).needed, "what was planned was done"


def _bring_back(directory: BrokerDirectory, identity: Identity, plan: Plan) -> str:
    assert plan.bridge is not None, "asked for by the caller"
    if plan.renew:
        place = rebuild(
            directory.checkpoint,
            plan.bridge,
            cluster_id=identity.cluster_id,
            made_by=f"offsetd {__version__} journal repair",
            keep_in=directory.quarantine,
        )
        return f"The checkpoint was made anew from history, up to batch {place.number}."
    place = carry_on(directory.checkpoint, plan.bridge, cluster_id=identity.cluster_id)
    return f"The checkpoint was carried on from history, up to batch {place.number}."


def _create(new: NewSegment) -> str:
    files = OsFiles()
    planned = PlannedFiles(new=new)
    temporary = new.path.with_name(new.path.name + ".tmp")
    write_new(files, temporary, planned.read(new.path, 0, new.size), replace=True)
    failpoint("repair_before_segment")
    files.rename(temporary, new.path)
    sync_directory(files, new.path.parent)
    failpoint("repair_after_segment")
    return f"{new.path} was begun right after the checkpoint."


def _move(directory: BrokerDirectory, cut: Cut) -> str:
    files = OsFiles()
    kept = free_name(directory.quarantine, cut.path.name)
    files.rename(cut.path, kept)
    sync_directory(files, directory.quarantine)
    sync_directory(files, cut.path.parent)
    failpoint("repair_after_move")
    return f"{cut.path} was moved to {kept}."


def _cut(directory: BrokerDirectory, cut: Cut) -> str:
    tail = Tail(cut.path, cut.position, cut.size, cut.reason, whole=False)
    torn = cut_tail(OsFiles(), tail, directory.quarantine)
    return f"{cut.path} was cut at byte {cut.position}; its last {cut.size} bytes are kept in {torn.quarantine}."


def _mark(directory: BrokerDirectory, plan: Plan) -> str:
    """Make the durable marker name the last batch that is left; what it named before is kept."""
    assert plan.marker is not None, "asked for by the caller"
    assert plan.durable is not None, "only a marker that is there can be wrong"
    files = OsFiles()
    path = directory.journal / DURABLE
    for segment in plan.found.segments[-1:]:
        sync_path(files, segment.path)
    failpoint("repair_before_marker")
    kept = free_name(directory.quarantine, DURABLE)
    write_new(files, kept, encode_marker(plan.durable))
    sync_directory(files, directory.quarantine)
    replace_file(files, path, encode_marker(plan.marker))
    failpoint("repair_after_marker")
    return f"{path} now names batch {plan.marker.number}; the marker before it is kept in {kept}."
