"""Who reads which partition: pure functions from members and partitions to plans.

The leader of a group runs one of them for all members, whatever library each of them uses.
"""
