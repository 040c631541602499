"""Goes through a scenario with Kafka and with offsetd side by side, and notes where their answers part."""

from dataclasses import dataclass, field

from tests.conformance.comparison import Difference, differing, slug
from tests.conformance.line import Line, Outcome
from tests.conformance.party import Party
from tests.conformance.peers import Peers
from tests.conformance.scenario import Frames, Scenario


@dataclass(slots=True)
class Notes:
    """Which steps were compared, as (scenario, step, version), and what differed."""

    compared: list[tuple[str, str, int]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def compare(self, scenario: str, step: str, version: int, kafka: Outcome, ours: Outcome) -> None:
        """Note a step and all that differs in it."""
        self.compared.append((scenario, step, version))
        if kafka["connection"] != ours["connection"]:
            # Beside an answer that never came, every field of the other side would differ.
            kafka, ours = ({"connection": side["connection"]} for side in (kafka, ours))
        self.differences += (
            Difference(scenario, step, version, path, left, right) for path, left, right in differing(kafka, ours)
        )


async def go_through(scenario: Scenario, peers: Peers) -> Notes:
    """Put every step in every version to both peers."""
    notes = Notes()
    versions = [version for version in peers.versions(scenario.api) if scenario.speaks(version)]
    assert versions, "no version is served by both"
    for version in versions:
        run = slug(f"{scenario.name}-{version}")
        other = peers.strict if scenario.strict else peers.offsetd
        async with Party(peers.kafka, run) as kafka, Party(other, run) as ours:
            for step in scenario.steps:
                if step.takes_part(version):
                    left = await kafka.put(step, version)
                    right = await ours.put(step, version)
                    notes.compare(scenario.name, step.name, version, left, right)
    return notes


async def send(frames: Frames, peers: Peers) -> Notes:
    """Send every frame to both peers, each on a connection of its own."""
    notes = Notes()
    async with Line(peers.kafka) as kafka, Line(peers.offsetd) as ours:
        for frame in frames.frames:
            left = await kafka.put_frame(frame)
            right = await ours.put_frame(frame)
            notes.compare(frames.name, frame.name, 0 if frame.reads is None else frame.reads[1], left, right)
    return notes
