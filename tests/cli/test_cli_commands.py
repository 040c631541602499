"""The command line: what it lists, what it prints, how it fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsetd import __version__
from offsetd.cli import COMMANDS, commands
from offsetd.settings import TABLE
from offsetd.settings.page import settings_page


def run(*arguments: str, **environment: str) -> Result:
    cleared = {name: None for name in os.environ if name.startswith("OFFSETD_")}
    return CliRunner().invoke(commands, arguments, env={**cleared, **environment})


def test_help_lists_every_command_without_importing_it() -> None:
    """A health check must not pay for what only the broker needs."""
    script = (
        "import sys\n"
        "from offsetd.cli import commands\n"
        "commands.main(['--help'], standalone_mode=False)\n"
        "print([name for name in ('uvloop', 'plyvel', 'structlog', 'prometheus_client') if name in sys.modules])\n"
    )
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout

    assert all(f"  {name} " in output for name in COMMANDS)
    assert output.endswith("[]\n")


def test_a_health_check_imports_only_what_it_needs() -> None:
    script = (
        "import sys, offsetd.cli.healthcheck\n"
        "print([name for name in ('uvloop', 'plyvel', 'structlog', 'prometheus_client', 'asyncio', 'protocol')"
        " if name in sys.modules])\n"
    )
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout

    assert output == "[]\n"


def test_the_version_is_the_package_s() -> None:
    assert run("version").output.startswith(f"offsetd {__version__} ")


def test_show_prints_each_value_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("broker.id = 5\n")

    result = run("config", "show", "--config", str(file), "--listen", "127.0.0.1:7", OFFSETD_NUM_PARTITIONS="3")

    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in result.output.splitlines()}
    assert len(lines) == len(TABLE)
    assert lines["broker.id"] == ["5", "file my.toml"]
    assert lines["num.partitions"] == ["3", "environment OFFSETD_NUM_PARTITIONS"]
    assert lines["listeners"] == ["127.0.0.1:7", "flag --listen"]
    assert lines["cluster.id"] == ["-", "default"]


def test_show_can_print_json() -> None:
    values = json.loads(run("config", "show", "--json", "--http", "").output)

    assert values["http.listeners"] == {"value": "", "source": "flag --http"}
    assert set(values) == {about.name for about in TABLE}


def test_the_file_can_be_named_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("broker.id = 5\n")

    assert '"file my.toml"' in run("config", "show", "--json", OFFSETD_CONFIG=str(file)).output


def test_check_says_that_the_settings_are_right() -> None:
    result = run("config", "check", OFFSETD_BROKER_ID="3")

    assert (result.exit_code, result.output) == (
        0,
        f"The settings are right: 1 given, {len(TABLE) - 1} by default.\n",
    )


@pytest.mark.parametrize("arguments", [("config", "check"), ("config", "show"), ("healthcheck",)])
def test_a_wrong_setting_is_one_sentence_and_exit_code_1(arguments: tuple[str, ...]) -> None:
    result = run(*arguments, OFFSETD_BROKR_ID="3")

    assert result.exit_code == 1
    assert result.output == (
        "Error: OFFSETD_BROKR_ID (from the environment) is not a setting; did you mean OFFSETD_BROKER_ID?\n"
    )


def test_docs_prints_the_settings_page() -> None:
    assert run("config", "docs").output == settings_page()


def test_an_unknown_command_is_a_usage_error() -> None:
    assert run("nope").exit_code == 2
