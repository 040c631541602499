"""What people read of a load, as rows of words and numbers: on the terminal, in plain text and on the page. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from offsetd.pipeline.load.plan import Check, Plan, Range, Reason
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.quantity import in_bytes, in_seconds, per_second

PLAN_COLUMNS: Final = ("partition", "from", "to", "records", "why it starts there")

#: What each check says of a topic's rows.
CHECK_WORDS: Final = {
    Check.EXACT: "every offset of the plan is a row, once",
    Check.BOUNDS: "no row outside the plan, none twice; some offsets hold no record",
}


def plan_rows(ranges: Iterable[Range]) -> list[tuple[str, int, int, int, str]]:
    """Return a row for each range."""
    return [(str(item.key), item.start, item.end, item.records, item.reason.value) for item in ranges]


def plan_title(plan: Plan) -> str:
    """Return the plan in a line."""
    whose = f"group {plan.group!r}" if plan.group is not None else "no group"
    return f"load {plan.number} of {whose} into {plan.out}"


def plan_sentences(plan: Plan) -> list[str]:
    """Return what a table of ranges does not say."""
    said = [
        f"{_count(plan.records, 'record')} of {_count(len(plan.ranges), 'partition')} to load."
        if plan.ranges
        else "Nothing to load: no partition has news."
    ]
    if plan.idle and plan.ranges:
        said.append(f"{_count(len(plan.idle), 'partition')} without news left out.")
    behind = sum(max(plan.ends[item.key] - item.end, 0) for item in (*plan.ranges, *plan.idle) if item.key in plan.ends)
    if behind:
        said.append(f"{_count(behind, 'record')} stay for the next load.")
    said += [
        f"Left out, as accepted: {item.key} from {item.start} to {item.end}, {_count(item.records, 'offset')}."
        for item in plan.skipped
    ]
    if plan.supersedes:
        said.append(f"Replaces {', '.join(f'load {number}' for number in plan.supersedes)}.")
    return said


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return what a load did, name and value."""
    reading = [
        ("records", f"{summary.total_rows:,}"),
        ("files", f"{summary.files:,}"),
        ("bytes", in_bytes(summary.bytes)),
        ("time", _time(summary)),
        ("rate", _rate(summary)),
        ("lag before", f"{sum(summary.lag_before.values()):,}"),
        ("lag after", f"{sum(summary.lag_after.values()):,}"),
        ("offsetd", commit_words(summary)),
    ]
    if summary.empty_offsets:
        reading.insert(1, ("offsets without a record", f"{summary.empty_offsets:,}"))
    if summary.unparsed:
        reading.insert(1, ("values kept as they came", f"{summary.unparsed:,}"))
    return reading


def _time(summary: Summary) -> str:
    start = dict(summary.stages).get("start", 0.0)
    return in_seconds(summary.seconds) + (f", of it {in_seconds(start)} for Spark to start" if start >= 1 else "")


def _rate(summary: Summary) -> str:
    """Return the rate of all, and of the writing alone: a small load is mostly the start of Spark."""
    in_all = per_second(summary.total_rows, summary.seconds)
    if not summary.write_seconds:
        return in_all
    return f"{per_second(summary.total_rows, summary.write_seconds)} while writing, {in_all} in all"


def commit_words(summary: Summary) -> str:
    """Return what offsetd knows of the load."""
    if summary.plan.group is None:
        return "not told: the table belongs to no group"
    if not summary.plan.ranges:
        return "knows where the table ends" if summary.committed else "not told; the next run tells it"
    return f"committed, load:{summary.plan.number}" if summary.committed else "not told; the next run tells it"


def plan_text(plan: Plan, *, rows_max: int) -> str:
    """Return a plan as plain text.

    Args:
        rows_max: the most ranges to write; how many are left off is said.
    """
    parts = [plan_title(plan)]
    if plan.ranges:
        parts.append(columns(PLAN_COLUMNS, plan_rows(plan.ranges[:rows_max])))
    if len(plan.ranges) > rows_max:
        parts.append(left_off(plan, rows_max))
    return "\n".join((*parts, *plan_sentences(plan)))


def left_off(plan: Plan, rows_max: int) -> str:
    """Return what a table of the first ranges does not show."""
    others = plan.ranges[rows_max:]
    return f"... and {_count(len(others), 'partition')} with {_count(sum(item.records for item in others), 'record')}"


def summary_text(summary: Summary) -> str:
    """Return a summary as plain text."""
    rows = summary_rows(summary)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def reasons(ranges: Iterable[Range]) -> dict[Reason, int]:
    """Return how many ranges start where they do for which reason."""
    found: dict[Reason, int] = {}
    for item in ranges:
        found[item.reason] = found.get(item.reason, 0) + 1
    return found


def columns(names: Sequence[str], rows: Sequence[Sequence[str | int]]) -> str:
    """Return rows as lines of aligned columns; numbers stand to the right."""
    words = [[f"{value:,}" if isinstance(value, int) else value for value in row] for row in rows]
    numeric = [bool(rows) and all(isinstance(row[at], int) for row in rows) for at in range(len(names))]
    widths = [max(len(line[at]) for line in (list(names), *words)) for at in range(len(names))]
    lines = (
        "  ".join(
            word.rjust(width) if right else word.ljust(width)
            for word, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in (list(names), *words)
    )
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
