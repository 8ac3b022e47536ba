"""Figures as Markdown tables, and what went wrong beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Table:
    """One table. rows: cells as they are printed. broken: a line for each rule that did not hold."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    broken: Sequence[str] = ()

    def markdown(self) -> str:
        """The table, with its title above it and what was broken below."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"### {self.title}\n"
        yield _row(self.columns)
        yield _row("---" for _ in self.columns)
        for row in self.rows:
            yield _row(row)
        yield ""
        yield from (f"- BROKEN: {line}" for line in self.broken)


def _row(cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"  # type: ignore[attr-defined]


def counted(outcomes: dict[str, int]) -> str:
    """``refused 17, done 4``: the outcomes, the most frequent first."""
    return ", ".join(f"{what} {count:,}" for what, count in sorted(outcomes.items(), key=lambda item: -item[1]))


def median_and_longest(seconds: Sequence[float]) -> tuple[float, float]:
    """Of several times, to a hundredth; 0 for none."""
    return round(median(seconds or [0.0]), 2), round(max(seconds, default=0.0), 2)
