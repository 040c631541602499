"""The Dockerfile, read by a parser: what it promises about user, health, settings and locked versions."""

import json
import re
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from offsetd.settings import load_settings

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
UID = "10001"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> DockerfileParser:
    # The parser may write to what it parses, so it gets a copy.
    copy = tmp_path_factory.mktemp("image") / "Dockerfile"
    copy.write_text((ROOT / "Dockerfile").read_text())
    return DockerfileParser(path=str(copy))


def values(image: DockerfileParser, instruction: str) -> list[str]:
    return [step["value"] for step in image.structure if step["instruction"] == instruction]


def last_stage(image: DockerfileParser) -> list[dict[str, str]]:
    steps = image.structure
    start = max(number for number, step in enumerate(steps) if step["instruction"] == "FROM")
    return list(steps[start:])


def test_there_are_two_stages_and_the_last_builds_nothing(image: DockerfileParser) -> None:
    assert [value.split()[0] for value in values(image, "FROM")] == ["python:3.12-slim"] * 2
    assert not any("pip" in step["value"] for step in last_stage(image) if step["instruction"] == "RUN")


def test_the_daemon_is_not_root(image: DockerfileParser) -> None:
    steps = [step["instruction"] for step in last_stage(image)]

    assert values(image, "USER") == [f"{UID}:{UID}"]
    assert steps.index("USER") < steps.index("ENTRYPOINT")
    assert "RUN" not in steps[steps.index("USER") :]


def test_signals_reach_the_daemon_itself(image: DockerfileParser) -> None:
    """The shell form would leave the shell as process 1, which does not pass SIGTERM on."""
    assert json.loads(values(image, "ENTRYPOINT")[0]) == ["offsetd"]
    assert json.loads(values(image, "CMD")[0]) == ["serve"]
    assert values(image, "HEALTHCHECK")[0].endswith('CMD ["offsetd", "healthcheck"]')


def test_the_settings_of_the_image_are_right(image: DockerfileParser) -> None:
    stated = {name: value for name, value in image.envs.items() if name.startswith("OFFSETD_")}

    settings = load_settings(None, stated, {})

    assert str(settings.data_dir) == values(image, "VOLUME")[0] == "/var/lib/offsetd"
    assert settings.http_listeners is not None
    ports = [str(settings.listeners.port), str(settings.http_listeners.port)]
    assert values(image, "EXPOSE")[0].split() == ports
    assert settings.listeners.is_wildcard


def test_what_is_installed_from_outside_is_locked(image: DockerfileParser) -> None:
    for step in values(image, "RUN"):
        for call in re.findall(r"pip (?:install|wheel) ([^&]*)", step):
            assert "--require-hashes" in call or "--no-deps" in call


def test_every_file_that_is_copied_is_let_through_to_the_builder(image: DockerfileParser) -> None:
    let_through = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = {
        source for value in values(image, "COPY") if not value.startswith("--from") for source in value.split()[:-1]
    }

    assert copied == let_through
    assert all((ROOT / source).exists() for source in copied)


def test_the_build_is_locked_to_what_development_uses() -> None:
    development = dict(PIN.findall((ROOT / "requirements/dev.txt").read_text()))
    build = dict(PIN.findall((ROOT / "requirements/build.txt").read_text()))

    assert "hatchling" in build
    assert build.items() <= development.items()
    for name in ("run.txt", "build.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert len(PIN.findall(text)) <= text.count("--hash=sha256:")
        assert "://" not in text
