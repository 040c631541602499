"""Everything that is sent, in one place."""

from typing import Final

from tests.conformance.scenario import Frames, Scenario
from tests.conformance.scenarios import (
    cluster,
    frames,
    group_admin,
    group_walk,
    joining,
    list_offsets,
    members,
    newer_protocol,
    offset_commit,
    offset_fetch,
    random_walk,
    records,
    topics,
)

SCENARIOS: Final[tuple[Scenario, ...]] = (
    *cluster.SCENARIOS,
    *topics.SCENARIOS,
    *offset_commit.SCENARIOS,
    *offset_fetch.SCENARIOS,
    *random_walk.SCENARIOS,
    *list_offsets.SCENARIOS,
    *records.SCENARIOS,
    *joining.SCENARIOS,
    *members.SCENARIOS,
    *group_admin.SCENARIOS,
    *group_walk.SCENARIOS,
    *newer_protocol.SCENARIOS,
)
FRAMES: Final[tuple[Frames, ...]] = frames.FRAMES
