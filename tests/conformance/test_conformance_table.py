"""The script and the table of differences are well formed, and the page in docs/ says what the table says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from protocol.api import APIS, Request
from protocol.fetch import FetchRequest
from tests.conformance.purposes import NOT_SHOWN, TABLE
from tests.conformance.requests import commit, fetch, records, row, since
from tests.conformance.scenario import EMPTY, Scenario, spoken
from tests.conformance.script import FRAMES, SCENARIOS

PAGE: Final = Path(__file__).parents[2] / "docs" / "protocol.md"
HEADING: Final = "## Where offsetd differs from Kafka on purpose"


def versions(scenario: Scenario) -> list[int]:
    api = APIS[scenario.api]
    return [version for version in range(api.min_version, api.max_version + 1) if scenario.speaks(version)]


def steps() -> Iterator[tuple[str, str, int]]:
    """Every step that a run can compare."""
    for scenario in SCENARIOS:
        for version in versions(scenario):
            yield from ((scenario.name, step.name, version) for step in scenario.steps if step.takes_part(version))
    for frames in FRAMES:
        yield from ((frames.name, frame.name, frame.reads[1] if frame.reads else 0) for frame in frames.frames)


def matters() -> list[str]:
    """The first cells of the page's table."""
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    return [cell for cell in rows if cell not in {"matter", "---"}]


def test_names_tell_steps_apart() -> None:
    seen = list(steps())

    assert len(seen) == len(set(seen))


def test_every_row_of_the_table_speaks_of_a_step() -> None:
    """Else it would be neither used nor found outdated."""
    compared = list(steps())

    lost = [one for one in TABLE if not any(one.about(*step) for step in compared)]

    assert lost == []


def test_every_row_of_the_table_is_told_to_users_and_nothing_else_is() -> None:
    told = matters()

    assert sorted(told) == sorted({*(one.matter for one in TABLE), *NOT_SHOWN})
    assert len(told) == len(set(told))


def test_every_request_of_the_script_can_be_written_in_its_version() -> None:
    count = 0
    for scenario in SCENARIOS:
        for version in versions(scenario):
            for step in scenario.steps:
                if step.takes_part(version) and step.asked is not None:
                    assert isinstance(step.request(version if step.at is None else step.at), Request)
                    count += 1

    assert count > 1000


def test_names_of_a_run_and_ids_of_a_peer_are_put_in_when_spoken() -> None:
    asked = spoken(commit("@g", ("@topic", [row(0, 1, metadata="a@b")]), ("orders", [])), "run", {})
    read = spoken(records(EMPTY, since(0, 0))(13), "run", {EMPTY: b"e" * 16})

    assert asked == commit("run.g", ("run.topic", [row(0, 1, metadata="a@b")]), ("orders", []))
    assert isinstance(read, FetchRequest)
    assert [topic.topic_id for topic in read.topics] == [b"e" * 16]


def test_a_fetch_is_put_in_the_layout_of_its_version() -> None:
    old, new = fetch("g", ("orders", [1]))(7), fetch("g", ("orders", [1]))(8)

    assert (old.group_id, old.topics) == ("g", new.groups[0].topics)
    assert (new.group_id, new.groups[0].group_id) == ("", "g")
