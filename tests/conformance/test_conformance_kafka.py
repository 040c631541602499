"""The same requests to a real Kafka and to a real daemon: every field of every answer is equal, or differs on purpose.

`make conformance` runs it. It needs Java, and Maven where Kafka's jars have not been brought yet.
"""

import os

import pytest

from offsetd.bench.kafka import missing_tools
from tests.conformance.comparison import judge
from tests.conformance.dialogue import Notes, go_through, send
from tests.conformance.peers import Peers, is_brought
from tests.conformance.purposes import TABLE
from tests.conformance.scenario import Frames, Scenario
from tests.conformance.script import FRAMES, SCENARIOS
from tests.conformance.tally import Tally

if os.environ.get("OFFSETD_CONFORMANCE") != "1":
    pytest.skip("OFFSETD_CONFORMANCE=1 compares with a real Kafka (make conformance)", allow_module_level=True)
# Maven is needed only to bring what has not been brought yet.
if missing := [tool for tool in missing_tools() if tool == "java" or not is_brought()]:
    pytest.skip(f"no Kafka to compare with: this machine has no {' and no '.join(missing)}", allow_module_level=True)

pytestmark = pytest.mark.integration


def test_every_version_that_both_serve_is_compared(peers: Peers) -> None:
    served = {(api, version) for api in peers.offsetd.served for version in peers.versions(api)}

    compared = {(one.api, version) for one in SCENARIOS for version in peers.versions(one.api) if one.speaks(version)}

    assert len(served) > 50
    assert compared == served


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_every_answer_is_kafkas_or_differs_on_purpose(scenario: Scenario, peers: Peers, tally: Tally) -> None:
    _judge(await go_through(scenario, peers), tally)


@pytest.mark.parametrize("frames", FRAMES, ids=lambda frames: frames.name)
async def test_every_frame_is_answered_or_closed_as_kafka_does(frames: Frames, peers: Peers, tally: Tally) -> None:
    _judge(await send(frames, peers), tally)


def _judge(notes: Notes, tally: Tally) -> None:
    verdict = judge(notes.compared, notes.differences, TABLE)
    tally.count(len(notes.compared), verdict)

    assert notes.compared, "nothing was compared"
    if str(verdict):
        pytest.fail(str(verdict), pytrace=False)
