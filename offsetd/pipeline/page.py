"""A page that stands on its own: one HTML file, its style and plots inside, nothing to be fetched, light or dark.

    page = Page("Load 000007", "group lake, 18 November 2026")
    page.figures([("records", 1_200_000), ("rate", "210 k/s")])
    page.section("Plan", "Where each partition starts, and why.")
    page.table(("partition", "from", "to"), [("orders-0", 0, 100)])
    page.plot(bars(...), "Records of each partition")
    path.write_text(page.render(), encoding="utf-8")

Everything that is given is text and is escaped; only `plot` takes markup, which `offsetd.pipeline.plots` makes.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Final, Literal, TypeAlias

#: What a table's cell may be: numbers stand to the right with their thousands set apart, None is a dash.
Cell: TypeAlias = "str | int | float | datetime | None"
#: How a sentence is meant: plain, as it should be, to be looked at, wrong.
Kind: TypeAlias = Literal["plain", "good", "warn", "bad"]

#: A browser opens a table of more rows slowly, and nobody reads it: what is left off is said below it.
TABLE_ROWS_MAX: Final = 2_000

#: What is no longer than a date and a time is not parted at a line's end.
_BRIEF_CHARACTERS: Final = 19

_IDS: Final = re.compile(r'(\bid="|url\(#|\bhref="#)')


class Page:
    """A page, filled from top to bottom."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self._title = title
        self._subtitle = subtitle
        self._parts: list[str] = []
        self._in_section = False
        self._plots = 0

    def section(self, heading: str, text: str = "") -> None:
        """Begin a section, which lasts until the next one."""
        self._end_section()
        self._parts.append(f"<section>\n<h2>{escape(heading)}</h2>")
        self._in_section = True
        if text:
            self.text(text)

    def text(self, text: str) -> None:
        """Add paragraphs; an empty line parts them."""
        self._parts.extend(f"<p>{escape(each.strip())}</p>" for each in text.split("\n\n") if each.strip())

    def note(self, text: str, kind: Kind = "plain") -> None:
        """Add a sentence that is to be seen."""
        self._parts.append(f'<p class="note {kind}">{escape(text)}</p>')

    def figures(self, figures: Iterable[tuple[str, Cell]]) -> None:
        """Add the few values that matter most, large."""
        tiles = "".join(
            f'<div class="figure"><dt>{escape(label)}</dt><dd>{escape(_words(value))}</dd></div>\n'
            for label, value in figures
        )
        self._parts.append(f'<dl class="figures">\n{tiles}</dl>')

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str = "Nothing.") -> None:
        """Add a table; columns of numbers stand to the right.

        Args:
            empty: what is said in place of a table without rows.
        """
        listed = list(rows)
        if not listed:
            self.note(empty)
            return
        shown = listed[:TABLE_ROWS_MAX]
        numeric = [all(isinstance(row[at], int | float | None) for row in shown) for at in range(len(columns))]
        head = "".join(_cell("th", name, right=right) for name, right in zip(columns, numeric, strict=True))
        body = "".join(
            "<tr>"
            + "".join(_cell("td", value, right=right) for value, right in zip(row, numeric, strict=True))
            + "</tr>\n"
            for row in shown
        )
        self._parts.append(
            f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>'
        )
        if len(listed) > len(shown):
            self.note(f"{len(listed) - len(shown):,} more rows are left off.")

    def plot(self, svg: str, caption: str = "") -> None:
        """Add a plot: an SVG element made by `offsetd.pipeline.plots`."""
        self._plots += 1
        # Ids are the whole page's, and matplotlib gives every plot the same ones.
        own = _IDS.sub(rf"\g<1>plot{self._plots}-", svg)
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        self._parts.append(f"<figure>\n{own}\n{below}</figure>")

    def render(self) -> str:
        """Return the whole page."""
        self._end_section()
        title, subtitle = escape(self._title), escape(self._subtitle)
        below = f"<p>{subtitle}</p>\n" if subtitle else ""
        body = "\n".join(self._parts)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{title}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
            f"<header>\n<h1>{title}</h1>\n{below}</header>\n{body}\n</main>\n</body>\n</html>\n"
        )

    def _end_section(self) -> None:
        if self._in_section:
            self._parts.append("</section>")
            self._in_section = False


def _cell(tag: str, value: Cell, *, right: bool) -> str:
    words = _words(value)
    brief = isinstance(value, datetime) or len(words) <= _BRIEF_CHARACTERS
    kind = ' class="number"' if right else ' class="brief"' if brief else ""
    return f"<{tag}{kind}>{escape(words)}</{tag}>"


def _words(value: Cell) -> str:
    if value is None:
        return "–"  # noqa: RUF001  # a dash that stands for nothing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return value


def _style() -> str:
    return files("offsetd.pipeline").joinpath("page.css").read_text(encoding="utf-8")
