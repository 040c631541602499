"""How fast: a load generator in a process of its own, servers to hold it against, and honest arithmetic.

Nothing of the daemon imports this room; it sees the daemon only as clients do, and through /proc.
"""
