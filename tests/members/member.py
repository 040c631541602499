"""A member, whatever it is made of."""

from pathlib import Path
from typing import TypeAlias

import pytest

from tests.members.kcat import KcatProcess
from tests.members.process import MemberProcess, Options
from tests.members.toolchains import KCAT, ToolchainMissing, command

Member: TypeAlias = MemberProcess | KcatProcess


def make_member(library: str, address: str, options: Options, log_path: Path) -> Member:
    """Start a member; where its library cannot be had, the test is skipped."""
    try:
        words = command(library)
    except ToolchainMissing as reason:
        pytest.skip(f"no member in {library}: {reason}")
    if library == KCAT:
        return KcatProcess(words, address, options, log_path)
    return MemberProcess(library, words, address, options, log_path)
