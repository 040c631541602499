"""Commands: whatever a page tells a reader to type exists, with its flags."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from offsetd.cli import commands
from tests.docs.pages import PAGES, ROOT, name, shell_lines, spans

#: Where one command of a line ends and another begins.
PARTS = re.compile(r"&&|\|\||[;|]")


def told(page: Path, program: str) -> Iterator[list[str]]:
    """Yield the words behind a program's name, wherever it is called."""
    for line in (*shell_lines(page), *spans(page)):
        for part in PARTS.split(line):
            words = part.split()
            # The image's own name is not a call of the program in it.
            if words[:2] not in (["docker", "build"], ["docker", "run"]):
                places = [number for number, word in enumerate(words) if re.fullmatch(rf"(\S*/)?{program}", word)]
                yield from (words[number + 1 :] for number in places[-1:] if number == 0 or _prefixed(words[:number]))


def _prefixed(words: list[str]) -> bool:
    """Tell whether words before a command leave it one: variables, another user, another machine."""
    return all("=" in word for word in words) or words[0] in {"sudo", "kubectl"}


def check(words: list[str]) -> None:
    """Hold the words of a call against the command line."""
    found: click.Command = commands
    context = click.Context(found)
    for word in words:
        if isinstance(found, click.Group) and not word.startswith("-"):
            names = word.split("|")
            subcommands = [found.get_command(context, each) for each in names]
            assert all(subcommands), f"there is no command {word!r}"
            assert subcommands[0] is not None
            found = subcommands[0]
        elif word.startswith("--"):
            known = {flag for option in found.params for flag in option.opts} | {"--help"}
            assert word.partition("=")[0] in known, f"there is no flag {word!r}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_of_ours_exists(page: Path) -> None:
    for words in told(page, "offsetd"):
        check([re.sub(r"^\[|\]$", "", word) for word in words])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_target_of_make_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {word for words in told(page, "make") for word in words if re.fullmatch(r"[a-z][a-z-]*", word)}

    assert asked - targets == set()


def test_the_commands_are_found_at_all() -> None:
    """A page of ours that calls nothing would pass everything above."""
    operations = [" ".join(words) for words in told(ROOT / "docs/operations.md", "offsetd")]

    assert {"healthcheck --ready", "config show", "version"} <= set(operations)
    assert any(call.startswith("journal repair --config") and call.endswith("--execute") for call in operations)
