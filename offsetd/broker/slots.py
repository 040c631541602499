"""The slots that this broker leads: a table each, and whether it may be shown yet."""

from collections.abc import Callable, Iterator
from enum import Enum

from offsetd.coordinator.limits import GROUP_ID_BYTES_MAX
from offsetd.coordinator.slot import slot_of
from offsetd.failpoint import held
from offsetd.group import Group
from offsetd.log import Log
from offsetd.table import SlotTable, TopicIndex
from protocol.errors import Code


class SlotState(Enum):
    """Whether a slot's table is whole."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Slots:
    """All tables. While one is not whole it refuses: saying "no offset" would make consumers start over."""

    def __init__(self, count: int) -> None:
        self.index = TopicIndex()
        self.tables = [SlotTable(slot, self.index) for slot in range(count)]
        self.states = [SlotState.LOADING] * count

    def of(self, group_id: str) -> int:
        """Return the slot of a group."""
        return slot_of(group_id, len(self.tables))

    def table_of(self, group_id: str) -> SlotTable:
        """Return the table of a group's slot."""
        return self.tables[self.of(group_id)]

    def lookup(self, group_id: str) -> tuple[Code, Group | None]:
        """Find a group: the code that refuses it while its slot is not whole, and the group if there is one."""
        if len(group_id) > GROUP_ID_BYTES_MAX:
            # No commit could make it; and to find the slot of so long a name would take long.
            return Code.NONE, None
        slot = slot_of(group_id, len(self.tables))
        if self.states[slot] is not SlotState.READY:
            return Code.COORDINATOR_LOAD_IN_PROGRESS, None
        return Code.NONE, self.tables[slot].groups.get(group_id)

    def load(self, log: Log, on_ready: Callable[[int], None]) -> Iterator[int]:
        """Fill the tables slot by slot, in slices; each slot answers as soon as it is whole. Yields offsets so far."""
        loaded = 0
        for slot, table in enumerate(self.tables):
            while held("load_slot", slot + 1):
                yield loaded
            for count in log.load(table):
                yield loaded + count
            loaded += table.live
            self.states[slot] = SlotState.READY
            on_ready(slot)
            yield loaded
        log.loaded()

    def fail_loading(self) -> None:
        """Refuse, until a restart, every slot that did not become whole."""
        self.states = [SlotState.FAILED if state is SlotState.LOADING else state for state in self.states]

    def are_whole(self) -> bool:
        """Tell whether every slot is loaded, so that what no table knows is unknown."""
        return self.states.count(SlotState.READY) == len(self.states)

    def live(self) -> int:
        """Return the number of live offsets."""
        return sum(table.live for table in self.tables)

    def newest_ms(self) -> int:
        """Return the newest time that the log has shown."""
        return max(table.newest_ms for table in self.tables)

    def count(self) -> dict[str, int]:
        """Return the number of slots in each state."""
        return {state.value: self.states.count(state) for state in SlotState}
