"""The count of a whole run: one that compared nothing must not look like one that found nothing."""

from dataclasses import dataclass

from offsetd.bench.kafka import VERSION
from tests.conformance.comparison import Verdict


@dataclass(slots=True)
class Tally:
    """What has been compared so far."""

    steps: int = 0
    on_purpose: int = 0
    otherwise: int = 0

    def count(self, steps: int, verdict: Verdict) -> None:
        """Add one scenario."""
        self.steps += steps
        self.on_purpose += verdict.explained
        self.otherwise += len(verdict.unexplained)

    def __str__(self) -> str:
        return (
            f"conformance: {self.steps} steps compared with Kafka {VERSION}, "
            f"{self.on_purpose} fields differ on purpose, {self.otherwise} otherwise"
        )
