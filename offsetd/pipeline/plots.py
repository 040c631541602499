"""Plots as SVG text for a `Page`: lines and steps over time, bars, bars stacked.

Colours are the page's own variables, so that one plot is right in light and in dark; words stay words, so that they can
be searched, and take the page's font. No display, no global state of matplotlib's is touched.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any, Final, TypeAlias

from offsetd.pipeline.quantity import short

#: Points of a curve, in the order of x: a time or a number, and a value.
Points: TypeAlias = Sequence[tuple[datetime | float, float]]

#: Of more bars than these the largest are drawn: names could not be read any more.
BARS_MAX: Final = 40
#: Colours there are; a plot of more curves repeats them.
COLOURS: Final = 8

_WIDTH_INCHES: Final = 9.6
_INK: Final = "#0b0b01"
_SOFT: Final = "#0b0b02"
_LINE: Final = "#0b0b03"
_SHEET: Final = "#0b0b04"
# What matplotlib is told, and what the page reads.
_VARIABLES: Final = {
    _INK: "var(--ink)",
    _SOFT: "var(--soft)",
    _LINE: "var(--line)",
    _SHEET: "var(--sheet)",
    **{f"#0c0c{at:02x}": f"var(--series-{at})" for at in range(1, COLOURS + 1)},
}
_SETTINGS: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "offsetd",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.facecolor": "none",
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _SOFT,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.7,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _SOFT,
    "ytick.labelcolor": _SOFT,
    "legend.frameon": False,
    "legend.labelcolor": _INK,
}
_NOISE: Final = re.compile(
    r"<metadata>.*?</metadata>\s*|<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|\s+xmlns:xlink=\"[^\"]*\"", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment to be marked with a line across a plot."""

    at: datetime | float
    label: str


def lines(
    curves: Mapping[str, Points], *, y: str, x: str = "", marks: Sequence[Mark] = (), filled: bool = False
) -> str:
    """Draw curves that go straight from point to point.

    Args:
        curves: points by name; a single curve has no legend.
        y: what the values are, with their unit.
        x: what the points are ordered by; nothing for times.
        filled: colour what lies below the curves.
    """

    def draw(axes: Any) -> None:
        for at, (name, points) in enumerate(curves.items()):
            across, up = [point[0] for point in points], [point[1] for point in points]
            # A single point would not be seen as a line.
            axes.plot(
                across,
                up,
                color=_colour(at),
                label=_entry(name),
                linewidth=1.8,
                marker="o" if len(points) < 2 else None,
            )
            if filled:
                axes.fill_between(across, up, color=_colour(at), alpha=0.15, linewidth=0)
        _finish_curves(axes, curves, x=x, y=y, marks=marks)

    return _svg(draw, height_inches=3.0)


def steps(curves: Mapping[str, Points], *, y: str, x: str = "", marks: Sequence[Mark] = ()) -> str:
    """Draw values that hold until the next point, as committed offsets do; else as `lines`."""

    def draw(axes: Any) -> None:
        for at, (name, points) in enumerate(curves.items()):
            axes.step(
                [point[0] for point in points],
                [point[1] for point in points],
                where="post",
                color=_colour(at),
                label=_entry(name),
                linewidth=1.8,
                marker="o" if len(points) < 2 else None,
            )
        _finish_curves(axes, curves, x=x, y=y, marks=marks)

    return _svg(draw, height_inches=3.0)


def bars(values: Mapping[str, float], *, x: str) -> str:
    """Draw one bar for each name, in the order given, with its value beside it.

    Args:
        x: what the values are, with their unit.
    """
    return stacked({name: (value,) for name, value in values.items()}, (x,), x=x)


def stacked(values: Mapping[str, Sequence[float]], parts: Sequence[str], *, x: str) -> str:
    """Draw one bar for each name, made of parts one behind the other.

    Args:
        values: for each name as many values as there are parts.
        parts: what the parts are; a single one has no legend.
        x: what the values are, with their unit.
    """
    shown, left_off = _largest(values)
    names = list(shown)

    def draw(axes: Any) -> None:
        behind = [0.0] * len(names)
        for at, part in enumerate(parts):
            now = [shown[name][at] for name in names]
            axes.barh(range(len(names)), now, left=behind, color=_colour(at), label=part, height=0.68)
            behind = [before + value for before, value in zip(behind, now, strict=True)]
        for at, total in enumerate(behind):
            axes.annotate(short(total), (total, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set_yticks(range(len(names)), [_printable(name) for name in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="both", length=0)
        axes.spines["bottom"].set_visible(False)
        axes.margins(x=0.1)
        if not any(behind):
            axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.set_xlabel(x + left_off)
        if len(parts) > 1:
            _legend(axes, len(parts))

    return _svg(draw, height_inches=0.9 + 0.27 * max(len(names), 1) + (0.3 if len(parts) > 1 else 0))


def _largest(values: Mapping[str, Sequence[float]]) -> tuple[dict[str, Sequence[float]], str]:
    """Return the bars to draw, in their order, and a word on the others: one bar for all of them would dwarf these."""
    if len(values) <= BARS_MAX:
        return dict(values), ""
    kept = set(sorted(values, key=lambda name: sum(values[name]), reverse=True)[:BARS_MAX])
    others = sum(sum(value) for name, value in values.items() if name not in kept)
    shown = {name: value for name, value in values.items() if name in kept}
    return shown, f" (not drawn: {len(values) - BARS_MAX:,} smaller ones, {short(others)} together)"


def _finish_curves(axes: Any, curves: Mapping[str, Points], *, x: str, y: str, marks: Sequence[Mark]) -> None:
    for mark in marks:
        axes.axvline(mark.at, color=_SOFT, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            _printable(mark.label), (mark.at, 1), xycoords=("data", "axes fraction"), xytext=(4, -11),
            textcoords="offset points", fontsize=9, color=_SOFT,
        )  # fmt: skip
    lowest = min((point[1] for points in curves.values() for point in points), default=0)
    if lowest >= 0:
        axes.set_ylim(bottom=0)
    axes.tick_params(axis="both", length=0)
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.set_ylabel(y)
    if x:
        axes.set_xlabel(x)
    elif any(curves.values()):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415

        # Of few minutes it would count the seconds, and have no step for as many.
        locator = AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    if len(curves) > 1:
        _legend(axes, len(curves))


def _legend(axes: Any, entries: int) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(entries, 5), borderaxespad=0.2, handlelength=1.2)


def _colour(at: int) -> str:
    return f"#0c0c{at % COLOURS + 1:02x}"


def _svg(draw: Callable[[Any], None], *, height_inches: float) -> str:
    # Imported here: it takes most of a second, and is not there without the extra.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        draw(figure.subplots())
        text = StringIO()
        with warnings.catch_warnings():
            # The page's font has what ours lacks, and it is the page's that is seen.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return _for_a_page(text.getvalue())


def _for_a_page(svg: str) -> str:
    svg = _NOISE.sub("", svg).replace("xlink:href", "href")
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg.strip()


def _entry(name: str) -> str:
    # What begins with an underscore, matplotlib leaves out of a legend; a space of no width is not seen.
    return f"\u200b{_printable(name)}" if name.startswith("_") else _printable(name)


def _printable(name: str) -> str:
    # Dollars begin a formula for matplotlib, and what cannot be printed has no glyph.
    return "".join(each if each.isprintable() else "?" for each in name).replace("$", r"\$")
