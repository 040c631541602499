"""How long to pause before trying again: exponential, with full jitter.

A pause is drawn evenly from zero to its bound, so that clients which lost a broker at the same moment do not all come
back at the same moment.
"""

from random import Random

#: Past this many doublings every bound is the largest; a shift by more would only make large numbers.
_DOUBLINGS_MAX = 32


class Backoff:
    """The pauses of one call."""

    def __init__(self, *, first_s: float, max_s: float, random: Random) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._random = random
        self._failures = 0

    def next_s(self) -> float:
        """Return the seconds to pause after one more failure."""
        bound_s = min(self._max_s, self._first_s * (1 << min(self._failures, _DOUBLINGS_MAX)))
        self._failures += 1
        return self._random.uniform(0, bound_s)

    def reset(self) -> None:
        """Begin again: something has succeeded."""
        self._failures = 0
