"""The deploy files before the validators of their own worlds; one that is missing on a machine is skipped by name.

``.ci/run`` brings them from ``deploy/checks.txt``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where a command is looked for: beside our interpreter, where .ci/run puts them, and on the path.
PLACES = os.pathsep.join([*(str(Path(sys.prefix) / place) for place in ("bin", "checks/bin")), os.environ["PATH"]])


def run(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    found = shutil.which(command, path=PLACES)
    if found is None:
        pytest.skip(f"{command} is missing (deploy/checks.txt has it)")
    return subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    result = run("hadolint", "Dockerfile")

    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_the_compose_file_fits_the_compose_schema() -> None:
    result = run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml")

    assert result.returncode == 0, result.stdout


def test_the_kubernetes_manifest_fits_the_schemas_of_its_kinds() -> None:
    result = run("kubernetes-validate", "--strict", "deploy/kubernetes/offsetd.yaml")

    assert result.returncode == 0, result.stdout + result.stderr
    assert (result.stdout + result.stderr).count(" passed ") == 3


def test_shellcheck_finds_nothing_in_the_scripts() -> None:
    result = run("shellcheck", ".ci/run", "deploy/setup.sh", "deploy/lock.sh")

    assert (result.returncode, result.stdout) == (0, "")
