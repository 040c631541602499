"""What processes cost, from /proc: CPU of a server and its children, of the whole machine, and resident memory."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """CPU seconds so far."""

    user: float = 0.0
    system: float = 0.0
    # All processes below it, living or waited for: the sync helper, compaction.
    children: float = 0.0

    @property
    def total(self) -> float:
        """Return the CPU seconds of the process and all below it."""
        return self.user + self.system + self.children

    def __sub__(self, earlier: "CpuTimes") -> "CpuTimes":
        return CpuTimes(
            user=self.user - earlier.user,
            system=self.system - earlier.system,
            children=self.children - earlier.children,
        )


def cpu_of(pid: int) -> CpuTimes:
    """Return what a process and its descendants have used; nothing if there is no such process."""
    own = _stat(pid)
    if own is None:
        return CpuTimes()
    parents = _parents()
    children = own[2]
    below = [pid]
    while below:
        parent = below.pop()
        for child in parents.get(parent, ()):
            times = _stat(child)
            if times is not None:
                # A child that ends meanwhile moves from here to its parent's sum, so the total never jumps.
                children += sum(times[:3])
                below.append(child)
    return CpuTimes(user=own[0], system=own[1], children=children)


def machine_cpu() -> float:
    """Return the busy CPU seconds of the machine without niced work, which gives way."""
    line = (_PROC / "stat").read_text(encoding="ascii").partition("\n")[0]
    user, _, system, _, _, irq, softirq, steal = (int(field) for field in line.split()[1:9])
    return (user + system + irq + softirq + steal) / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process."""
    pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def directory_bytes(path: Path) -> int:
    """Return the bytes that the files below a directory take on disk."""
    total = 0
    for file in path.rglob("*"):
        try:
            if file.is_file():
                total += file.stat().st_blocks * 512
        except FileNotFoundError:
            continue  # compaction took it away while we looked
    return total


def _stat(pid: int) -> tuple[float, float, float, int] | None:
    """Return user, system and waited-for children's CPU seconds, and the parent."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold blanks and brackets, so fields are counted from behind its last bracket.
    fields = text.rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / _TICKS_PER_SECOND for field in fields[11:15])
    return user, system, children_user + children_system, int(fields[1])


def _parents() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            times = _stat(int(entry.name))
            if times is not None:
                children.setdefault(times[3], []).append(int(entry.name))
    return children
