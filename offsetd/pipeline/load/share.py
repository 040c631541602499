"""Sharing a limited number of records among partitions: small ones get all they have, big ones the same each."""

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def share(wanted: Mapping[K, int], limit: int) -> dict[K, int]:
    """Return how many each gets: at most what it wants, together at most `limit`, and as evenly as that allows."""
    left = max(limit, 0)
    given: dict[K, int] = {}
    # From the smallest on: what it leaves of its equal part goes to the bigger ones.
    smallest_first = sorted(wanted.items(), key=lambda item: item[1])
    for count, (key, amount) in enumerate(smallest_first):
        waiting = len(smallest_first) - count
        given[key] = min(amount, left // waiting)
        left -= given[key]
    return given
