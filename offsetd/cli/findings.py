"""The words in which findings about a journal are told; one line each, for people at three in the morning."""

from collections.abc import Iterator

from offsetd.group import Offset
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.dump import iso
from offsetd.journal.loss import Loss, LostOffset
from offsetd.journal.plan import Plan
from offsetd.journal.survey import Survey
from offsetd.journal.verify import Verification
from offsetd.logs import escaped


def verification_lines(done: Verification, directory: BrokerDirectory, identity: Identity) -> Iterator[str]:
    """Yield what was found, and what a start would do."""
    yield f"{directory.path}: cluster {identity.cluster_id}, {identity.slots} slots"
    yield _checkpoint_line(done)
    yield f"journal: {_counted(len(done.segments), 'segment')}"
    for survey in done.segments:
        yield f"  {survey.path.name}: {_segment_words(survey)}"
    if done.marker_harmed:
        yield "durable marker: not whole, so it is ignored"
    elif done.durable is not None:
        yield f"durable marker: batch {done.durable.number}"
    kept = _counted(done.history_segments, "segment")
    if done.sealed_files:
        kept += f" and {_counted(done.sealed_files, 'sealed file')}"
    yield f"history: {kept}; {_bridge_words(done)}"
    yield from _start_lines(done)


def _checkpoint_line(done: Verification) -> str:
    if done.place is None:
        return "checkpoint: none yet" if done.new else "checkpoint: not usable, see below"
    words = f"checkpoint: whole, holds the journal up to batch {done.place.number}"
    return f"{words} ({iso(done.place.time_ms)})" if done.place.number else words


def _segment_words(survey: Survey) -> str:
    whole = "no batches"
    if survey.batches:
        whole = f"{_numbers(survey.number, survey.last_number)} ({iso(survey.newest_ms or 0)})"
    if survey.defect is None:
        return f"whole, {whole}, {survey.size} bytes"
    words = (
        f"not whole from byte {survey.defect.position} of {survey.size} on: {survey.defect.reason}; before it {whole}"
    )
    if survey.behind:
        words += f", behind it {_counted(len(survey.behind), 'whole one')} "
        words += f"({_numbers(min(survey.behind), max(survey.behind))})"
    return words


def _bridge_words(done: Verification) -> str:
    if done.bridge.obstacle is None and not done.bridge.segments:
        return "the journal itself reaches back to batch 1, so the checkpoint could be made anew"
    if done.bridge.obstacle is None:
        return f"the checkpoint could be made anew from it, up to batch {done.bridge.place.number}"
    return f"the checkpoint could not be made anew from it: {done.bridge.obstacle}"


def _start_lines(done: Verification) -> Iterator[str]:
    for refusal in done.refusals:
        yield f"a start would be refused: {refusal}"
    if done.refusals:
        return
    if done.new:
        yield "a start would begin a new journal"
        return
    assert done.found is not None, "neither new nor refused"
    tail = done.found.tail
    if tail is not None and tail.whole:
        yield f"a start would put {tail.path} into quarantine, a segment that was never used: {tail.reason}"
    elif tail is not None:
        yield f"a start would cut {tail.path} at byte {tail.position}, {tail.size} bytes that were never acknowledged "
        yield f"  or are a damaged last batch, which cannot be told apart: {tail.reason}"
    for survey in done.damaged:
        yield f"{survey.path.name} is held by the checkpoint, so a start would not miss it, but compaction stops there;"
        yield "  `offsetd journal repair` puts what is damaged into quarantine"
    yield (
        f"a start would load {_counted(done.offsets, 'offset')} of {_counted(done.groups, 'group')} "
        f"and go on after batch {done.found.chain.number}"
    )


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield why a start is refused, and what a repair does about it."""
    for refusal in plan.refusals:
        yield f"a start is refused: {refusal}"
    if plan.bridge is not None:
        how = "made anew" if plan.renew else "carried on"
        what = _counted(len(plan.bridge.segments), "segment")
        yield f"repair: the checkpoint is {how} from {what} of history, up to batch {plan.place.number}"
    for _, cut in sorted(plan.files.cuts.items()):
        if cut.whole:
            yield f"repair: {cut.path} goes into quarantine, {cut.size} bytes: {cut.reason}"
        else:
            yield f"repair: {cut.path} is cut at byte {cut.position}, {cut.size} bytes go into quarantine: {cut.reason}"
    new = plan.files.new
    if new is not None:
        what = "" if new.source is None else f", with the batches in {new.source.name} that follow it"
        yield f"repair: {new.path} is begun right after the checkpoint{what}"
    if plan.marker is not None and plan.durable is not None:
        yield f"repair: the durable marker names batch {plan.marker.number} and no longer batch {plan.durable.number}"


def loss_lines(loss: Loss) -> Iterator[str]:
    """Yield everything that a repair loses, and what it falls back to."""
    if loss.nothing:
        yield "lost: nothing"
        return
    for batch in loss.batches:
        entries = _counted(batch.entries, "entry", "entries")
        yield f"lost: batch {batch.number} in {batch.path.name}, {iso(batch.time_ms)}, {entries}"
    for numbers in loss.unreadable:
        yield f"lost: {_numbers(numbers[0], numbers[-1])}, not readable any more, content not known"
    if loss.untraced:
        yield f"lost: the journal's end; whether more followed batch {loss.kept_number} than is said cannot be told"
    for offset in loss.offsets:
        yield f"lost: {_offset_words(offset)}"


def _offset_words(offset: LostOffset) -> str:
    where = f"group {escaped(offset.group)}, topic {escaped(offset.topic)}, partition {offset.partition}"
    if offset.lost is None:
        return f"{where}: its removal; it comes back as {_value(offset.kept)}"
    return f"{where}: {_value(offset.lost)} falls back to {_value(offset.kept)}"


def _value(offset: Offset | None) -> str:
    if offset is None:
        return "no offset"
    metadata = f", metadata {escaped(offset.metadata)!r}" if offset.metadata else ""
    return f"offset {offset.offset} (of {iso(offset.time_ms)}{metadata})"


def _numbers(first: int, last: int) -> str:
    return f"batch {first}" if first == last else f"batches {first} to {last}"


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
