"""The report of a window of time as a page that stands on its own. Pure: what it tells was found before."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from offsetd.pipeline.history.report import Curve, Findings, Question, Rows
from offsetd.pipeline.page import Cell, Page
from offsetd.pipeline.plots import Mark, lines
from offsetd.pipeline.quantity import in_seconds, short

#: A legend of longer names would take the room of its plot.
_NAME_MAX: Final = 28
#: More lines across a plot hide its curves.
_MARKS_MAX: Final = 6
_REST: Final = "all others"
_UNITS: Final = (
    (timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"),
    (timedelta(seconds=1), "second"),
)  # fmt: skip


def render(found: Findings, question: Question, source: Path) -> str:
    """Return the page."""
    window = f"{_time(question.start)} to {_time(question.end)} UTC"
    page = Page("Offsets: what happened", f"{source}, {window}")
    _headline(page, found, question)
    _commits(page, found, question)
    _lag(page, found)
    _moves(page, found, question)
    _gaps(page, found, question)
    _owners(page, found)
    _removals(page, found)
    _expiring(page, found, question)
    return page.render()


def _headline(page: Page, found: Findings, question: Question) -> None:
    page.figures(
        [
            ("offsets committed", short(found.commits)),
            ("groups that committed", found.groups),
            ("rewinds", found.rewinds),
            ("jumps", found.jumps),
            ("silences", found.gaps.total),
            ("takeovers", found.takeovers),
            ("offsets removed", found.removed),
            ("groups at the end", found.held_groups),
            ("offsets at the end", found.held_offsets),
        ]
    )
    if found.first is None:
        page.note("The history holds no record before the end of this time.", "warn")
    elif found.first > question.start:
        page.note(
            f"The history begins at {_time(found.first)} UTC: what was before is not known, and an offset's first "
            "commit in it is not taken for a move.",
            "warn",
        )


def _commits(page: Page, found: Findings, question: Question) -> None:
    page.section(
        "Commits",
        f"Offsets committed per second, each partition of a request counted, in steps of {_span(question.width)}.",
    )
    if not found.rate:
        page.note("Nothing was committed in this time.")
        return
    curves = _named(found.rate)
    if found.rest:
        curves[_REST] = found.rest
    page.plot(lines(curves, y="offsets per second", marks=_marks(found), filled=len(curves) == 1), _marks_said(found))
    if found.repeats:
        page.text(
            f"{found.repeats:,} more were the same offset again, which is written down once a minute at most for each."
        )


def _marks(found: Findings) -> list[Mark]:
    rewinds = [row for row in found.moves.shown if row[2] == "rewind"]
    return [Mark(row[0], "rewind") for row in rewinds] if len(rewinds) <= _MARKS_MAX else []


def _marks_said(found: Findings) -> str:
    return "Each line across is a rewind, told below." if _marks(found) else ""


def _lag(page: Page, found: Findings) -> None:
    page.section(
        "Lag",
        "Records that could be read and were not yet committed, over all partitions of a group, whenever the ends of "
        "the logs were sampled. Lost are records that retention took before they were committed.",
    )
    if found.lag is None:
        page.note("No samples were given: `offsetd pipeline sample` takes them, and --samples reads them.")
        return
    if not found.lags.total:
        page.note("Nothing was sampled in this time of which a group had an offset.")
        return
    page.plot(lines(_named(found.lag), y="records behind", filled=len(found.lag) == 1))
    _table(page, ("group", "at first", "at most", "in the end", "lost"), found.lags)
    page.text(f"{found.samples:,} samples.")


def _moves(page: Page, found: Findings, question: Question) -> None:
    page.section(
        "Rewinds and jumps",
        f"Where a commit went back, or ahead by {question.jump_min:,} records or more: a row for each request.",
    )
    rows = []
    for time, group, kind, partitions, records, farthest, client, host, said in found.moves.shown:
        topic, partition, start, to = farthest
        where = f"{topic}/{partition}: {start:,} → {to:,}"
        rows.append((time, kind, group, partitions, records, where, _who(client, host), said or None))
    _table(
        page,
        ("time", "what", "group", "partitions", "records", "the farthest", "by", "it said"),
        Rows(tuple(rows), found.moves.total),
        empty="No group went back, and none jumped ahead.",
    )


def _gaps(page: Page, found: Findings, question: Question) -> None:
    page.section(
        "Silent groups",
        f"Times of more than {_span(question.silence)} in which a group that had offsets "
        "committed nothing, the longest first. A group that has nothing to read is silent too.",
    )
    ended = {"commit": "it committed", "removal": "its last offset was removed", None: None}
    rows = [
        (group, start, to or "still silent", in_seconds(seconds), ended[how])
        for group, start, to, seconds, how in found.gaps.shown
    ]
    _table(
        page,
        ("group", "last commit before", "until", "how long", "then"),
        Rows(tuple(rows), found.gaps.total),
        empty="No group was silent for so long.",
    )


def _owners(page: Page, found: Findings) -> None:
    page.section(
        "Owners taking turns",
        "A takeover is a partition's commit by another member, client or host than the one before. It is a return if "
        "that one had had the partition: where there are many, two consumers may believe that it is theirs.",
    )
    rows = [
        (group, topic, partitions, owners, takeovers, returns, last)
        for group, topic, partitions, takeovers, returns, owners, last in found.owners.shown
    ]
    _table(
        page,
        ("group", "topic", "partitions", "owners", "takeovers", "returns", "last"),
        Rows(tuple(rows), found.owners.total),
        empty="Every partition was committed by one owner all the time.",
    )


def _removals(page: Page, found: Findings) -> None:
    page.section("Removed", "Offsets that were deleted or expired, and by whom. The newest are first.")
    rows = [
        (time, group, topics, offsets, "yes" if whole else "no", reason, _who(client, host))
        for time, group, topics, offsets, reason, whole, client, host in found.removals.shown
    ]
    _table(
        page,
        ("time", "group", "topics", "offsets", "whole group", "why", "by"),
        Rows(tuple(rows), found.removals.total),
        empty="Nothing was removed.",
    )


def _expiring(page: Page, found: Findings, question: Question) -> None:
    page.section(
        "About to expire",
        f"Groups that lose offsets within {_span(question.ahead)} after this time, if nobody commits and the "
        f"retention is {_span(question.retention)}.",
    )
    _table(
        page,
        ("group", "the first expires", "offsets lost", "of", "newest commit", "last member left"),
        found.expiring,
        empty="Nothing expires by then.",
    )


def _table(page: Page, columns: tuple[str, ...], rows: Rows, *, empty: str = "Nothing.") -> None:
    # All times here are UTC, as the page's head says.
    shown = [[_time(value) if isinstance(value, datetime) else value for value in row] for row in rows.shown]
    page.table(columns, shown, empty=empty)
    if rows.total > len(rows.shown):
        page.note(f"{rows.total - len(rows.shown):,} more are left off; `offsetd pipeline history` tells all.")


def _named(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return curves by names that a legend can hold, which stay different."""
    named: dict[str, Curve] = {}
    for name, points in curves.items():
        brief = name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX // 2]}…{name[-_NAME_MAX // 2 + 1 :]}"
        brief = brief or "(no name)"
        number = 2
        while brief in named:
            brief = f"{brief} ({number})"
            number += 1
        named[brief] = points
    return named


def _who(client: str | None, host: str | None) -> Cell:
    return " ".join(part for part in (client, host) if part) or None


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _span(span: timedelta) -> str:
    """Return a span of time as somebody asked for it: 90 seconds, 7 days."""
    for unit, name in _UNITS:
        if span >= unit and not span % unit:
            number = span // unit
            return f"{number:,} {name}{'' if number == 1 else 's'}"
    return in_seconds(span.total_seconds())
