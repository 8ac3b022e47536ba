"""Random numbers that depend only on a seed and a position, so that any part of a workload can be made separately.

The digits come from BLAKE2b: the same on every machine and in every version of Python.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from typing import Final, TypeVar

_PLACE: Final = Struct("<qqq")
_MANTISSA: Final = (1 << 52) - 1
_WORDS: Final = Struct("<8Q")
_SCALE: Final = 2.0**-52

T = TypeVar("T")


def draws(seed: int, kind: int, number: int) -> tuple[float, ...]:
    """Eight numbers from 0 up to, not including, 1, for the thing of this *kind* and *number*."""
    digest = blake2b(_PLACE.pack(seed, kind, number)).digest()
    return tuple((word & _MANTISSA) * _SCALE for word in _WORDS.unpack(digest))


def pick(of: Sequence[T], draw: float) -> T:
    """One of *of*, each as likely as the next."""
    return of[int(draw * len(of))]


class Zipf:
    """Popularity: number *n* from 0 has the weight 1 / (n + 1) ** exponent."""

    __slots__ = ("_cumulated", "_total")

    def __init__(self, size: int, exponent: float) -> None:
        # Ten million topics are 80 MB, not 320.
        self._cumulated = array("d", accumulate((n + 1) ** -exponent for n in range(size)))
        self._total = self._cumulated[-1]

    def __call__(self, draw: float) -> int:
        """The number that *draw* falls on."""
        return min(bisect_right(self._cumulated, draw * self._total), len(self._cumulated) - 1)
