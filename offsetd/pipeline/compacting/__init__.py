"""Compaction of a table of plain Parquet files: the small files of a load are folded into fewer, larger ones.

A folded twin of a load's directory is written beside the table, held against the load row by row, and put in its place
by one atomic exchange of two names. Whoever lists the table sees the load before or after, never both, never neither.
Loads are not folded into one another: that would need two directories to change in the same instant.
"""
