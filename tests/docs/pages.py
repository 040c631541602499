"""The pages of the documentation, and what is said in them as code."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The changelog is history: it may name what has been renamed since.
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")


def name(page: Path) -> str:
    """Return a page's name for a test's name."""
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", page.read_text())


def spans(page: Path) -> Iterator[str]:
    """Yield each piece of code within the prose."""
    for match in _SPAN.finditer(prose(page)):
        yield match[1]


def shell_lines(page: Path) -> Iterator[str]:
    """Yield the lines of shell blocks, continued ones joined, comments left out."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        joined = re.sub(r"\\\n\s*", " ", block)
        # What is fed to another program is that program's business.
        joined = re.sub(r"<<'(\w+)'\n.*?^\1$", "", joined, flags=re.MULTILINE | re.DOTALL)
        yield from (line for line in (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines()) if line)
