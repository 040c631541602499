"""The history of offsets as tables in Spark: what was committed, when and by whom."""
