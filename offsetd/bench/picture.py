"""The figures as a picture. matplotlib is there for developers only, so its absence is said and nothing more."""

from collections.abc import Sequence
from pathlib import Path

from offsetd.bench.cell import Runs
from offsetd.bench.report import OURS, Report

_COLOURS = ("#1f6f8b", "#c8553d", "#8a8a8a")


def draw(report: Report, path: Path) -> str | None:
    """Write the picture; return why not, if not."""
    try:
        import matplotlib as mpl  # noqa: PLC0415
        from matplotlib import pyplot as plt  # noqa: PLC0415
    except ImportError:
        return "no picture: matplotlib is not installed (it comes with `make setup`)"
    if not report.runs:
        return "no picture: nothing was run"
    mpl.use("Agg")
    names = list(dict.fromkeys(runs.server for runs in report.runs))
    figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    figures = (
        ("requests_per_second", "requests per second", "commit"),
        ("requests_per_second", "requests per second", "fetch"),
        ("server_us", "server CPU per request, µs", ""),
        ("p99_ms", "p99, ms", ""),
    )
    for axis, (name, title, operation) in zip(axes.flat, figures, strict=True):
        runs = [one for one in report.runs if not operation or one.cell.operation == operation]
        labels = list(dict.fromkeys(one.cell.label.replace("90 % commits, 10 % fetches", "mix") for one in runs))
        for place, server in enumerate(names):
            _bars(axis, [one for one in runs if one.server == server], name, place, len(names))
        axis.set_xticks(range(len(labels)), [label.replace(", ", "\n") for label in labels], fontsize=7)
        axis.set_title(f"{operation + 's: ' if operation else ''}{title}".replace("fetchs", "fetches"), fontsize=10)
        axis.grid(axis="y", alpha=0.3)
        if len(names) > 1:
            axis.legend(fontsize=8)
    promises = "; ".join(dict.fromkeys(f"{runs.server}: {runs.promise}" for runs in report.runs))
    figure.suptitle(
        f"{report.rounds} rounds of {report.seconds:g} s, median, lines from lowest to highest. "
        f"Acknowledged commits are, with {promises}",
        fontsize=9,
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return None


def _bars(axis: object, runs: Sequence[Runs], name: str, place: int, servers: int) -> None:
    width = 0.8 / servers
    spreads = [one.spread(name) for one in runs]
    middle = [spread.median for spread in spreads]
    axis.bar(  # type: ignore[attr-defined]  # matplotlib may be missing when types are checked
        [number + (place - (servers - 1) / 2) * width for number in range(len(runs))],
        middle,
        width,
        yerr=[
            [spread.median - spread.low for spread in spreads],
            [spread.high - spread.median for spread in spreads],
        ],
        label=runs[0].server if runs else OURS,
        color=_COLOURS[place % len(_COLOURS)],
        error_kw={"linewidth": 0.8},
    )
