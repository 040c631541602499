"""How a read of history can end other than well: words for people, which Spark shows with its own around them."""


class HistoryRefused(Exception):
    """What was asked for cannot be read; says what was wrong, where, and what to do."""


class BatchesGone(HistoryRefused):
    """Batches that should be there are not: retention has taken them, or a repair has left a hole."""
