"""How many examples of a property are made where each takes long, beside what ``tests.conftest`` says."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

_MOST: Final = settings.default.max_examples  # type: ignore[union-attr]
FEW: Final = settings(max_examples=_MOST // 4)
FEWEST: Final = settings(max_examples=_MOST // 8)
