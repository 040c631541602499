"""The history of offsets as tables in Spark: what was committed, when and by whom."""

from offsetd.pipeline.history.records import records, register

__all__ = ["records", "register"]
