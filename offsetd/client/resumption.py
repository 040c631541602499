"""Where an application goes on after a restart, and why: decided from what is known, and explained in words. Pure."""

from typing import NamedTuple

from offsetd.client.position import TopicPartition


class Resumption(NamedTuple):
    """The offset of the record to read next, and why it is this one."""

    offset: int
    reason: str


def resume_committed(partition: TopicPartition, committed: int | None, *, first_offset: int) -> Resumption:
    """Go on from what the broker holds."""
    if committed is None:
        return Resumption(first_offset, f"{partition}: nothing was committed, so reading begins at {first_offset}")
    return Resumption(committed, f"{partition}: reading goes on at {committed}, which was committed")


def resume_stored(
    partition: TopicPartition, stored: int | None, committed: int | None, *, first_offset: int
) -> Resumption:
    """Go on from the larger of two truths: what the application stored with its output, and what the broker holds.

    The application's own store is written first, so it is ahead after a crash between the two. It is behind only when
    somebody moved one of them by hand, and then going back would make output twice.
    """
    if stored is None and committed is None:
        return Resumption(
            first_offset, f"{partition}: nothing was stored or committed, so reading begins at {first_offset}"
        )
    if committed is None:
        assert stored is not None
        return Resumption(
            stored,
            f"{partition}: reading goes on at {stored}, which was stored with the output; the broker holds nothing and "
            "is told now",
        )
    if stored is None:
        return Resumption(
            committed,
            f"{partition}: reading goes on at {committed}, which the broker holds; nothing is stored with the output. "
            "Was the store emptied, or is it another one? To read from the start again, delete the committed offset",
        )
    if stored == committed:
        return Resumption(stored, f"{partition}: reading goes on at {stored}, which is stored and committed")
    if stored > committed:
        return Resumption(
            stored,
            f"{partition}: reading goes on at {stored}, which was stored with the output; the broker holds {committed} "
            "because it is told afterwards, and is told now. To read again from there, set the store back as well",
        )
    return Resumption(
        committed,
        f"{partition}: reading goes on at {committed}, which the broker holds; {stored} is stored with the output. "
        f"Either somebody moved the group forward, or the store was set back: {committed - stored} records are not "
        f"read here. To read them, commit {stored} before the next start",
    )
