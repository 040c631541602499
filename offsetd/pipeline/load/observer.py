"""Who is told how a load goes on: whoever draws it. The loader tells, and waits for nobody."""

from typing import Protocol

from offsetd.pipeline.load.plan import Plan
from offsetd.pipeline.load.summary import Summary


class Observer(Protocol):
    """Told, in this order, what a load does. `noted` may come at any time."""

    def planned(self, plan: Plan) -> None:
        """The plan stands; a dry run ends here."""

    def stage(self, name: str, total_records: int | None) -> None:
        """A stage begins; None where it is not counted in records."""

    def progressed(self, records: int) -> None:
        """This many records of the stage are done, of all that it has. May come from another thread."""

    def finished(self, summary: Summary) -> None:
        """All is done."""

    def noted(self, sentence: str) -> None:
        """Something that people should know: a repair, a sweep."""


class Silent:
    """Tells nobody; others that want to hear of some things alone begin with it."""

    def planned(self, plan: Plan) -> None:
        """Do nothing."""

    def stage(self, name: str, total_records: int | None) -> None:
        """Do nothing."""

    def progressed(self, records: int) -> None:
        """Do nothing."""

    def finished(self, summary: Summary) -> None:
        """Do nothing."""

    def noted(self, sentence: str) -> None:
        """Do nothing."""
