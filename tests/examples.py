"""How many examples of a property are made where each takes long: a quarter of what ``tests.conftest`` says."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

FEW: Final = settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
