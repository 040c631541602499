"""Sealed history: released segments of the journal as Parquet, which any reader of Parquet reads without ours."""
