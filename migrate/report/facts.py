"""The facts of a report as plain data: what JSON shows, and what text and HTML are written from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, overload

from migrate.known_problems import CARED_FOR, KNOWN
from migrate.ledger import Fate, Reason, Verdict, left_by_choice
from migrate.outcome import outcome_of
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan
from migrate.report import trees
from migrate.target import Target
from rfh2.captured import iso

EXAMPLES = 20


def facts(plan: MigrationPlan, target: Target) -> dict[str, Any]:
    """Everything that a report says of *plan*: values of JSON, ``fates`` as a sequence of such."""
    counts = plan.counts
    by_kind: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Verdict), 0))
    for fate in plan.fates:
        by_kind[fate.key[0]][fate.verdict] += 1
    return {
        "tool": str(plan.tool),
        "phase": str(plan.phase),
        "broker": plan.state.broker_name,
        "qmgr": plan.qmgr,
        "at": iso(plan.now),
        "options": list(plan.options),
        "fingerprint": plan.fingerprint,
        "outcome": str(outcome_of(plan)),
        "items": sum(counts.values()),
        "counts": {str(verdict): number for verdict, number in counts.items()},
        "left_by_choice": left_by_choice(plan.fates),
        "by_kind": dict(by_kind),
        "steps": {
            "definitions": len(plan.definitions),
            "subscriptions": sum(isinstance(s, AddSubscription) for s in plan.steps),
            "retained": sum(isinstance(s, KeepRetained) for s in plan.steps),
        },
        "warnings": [_reason(reason) for reason in plan.warnings],
        "problems": _problems(plan),
        "visibility": [
            {
                "subscription": view.key[1],
                "pattern": view.pattern,
                "gained": list(view.gained),
                "gained_count": view.gained_count,
                "lost": list(view.lost),
                "lost_count": view.lost_count,
            }
            for view in plan.visibility
        ],
        "collisions": [
            {"topic_string": found.topic_string, "topics": [list(each) for each in found.each]}
            for found in plan.collisions
        ],
        "tree": {"before": trees.before(plan), "after": trees.after(plan, target)},
        "security": list(plan.security),
        "fates": FateFacts(plan.fates),
    }


class FateFacts(Sequence[dict[str, Any]]):
    """The fates as data, each made when it is asked for: all of them at once would need several times the memory."""

    def __init__(self, fates: Sequence[Fate]) -> None:
        self._fates = fates

    def __len__(self) -> int:
        return len(self._fates)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> FateFacts: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | FateFacts:
        if isinstance(index, slice):
            return FateFacts(self._fates[index])
        return _fate(self._fates[index])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(_fate, self._fates)


def _fate(fate: Fate) -> dict[str, Any]:
    return {
        "kind": fate.key[0],
        "number": fate.key[1],
        "label": fate.label,
        "source": fate.source,
        "verdict": str(fate.verdict),
        "becomes": fate.becomes,
        "reasons": [_reason(reason) for reason in fate.reasons],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"severity": str(reason.severity), "text": reason.text, "ids": list(reason.ids)}


def _problems(plan: MigrationPlan) -> list[dict[str, Any]]:
    """The known problems that the plan names, with whom they concern; those that its order keeps away, at the end."""
    concerned: dict[str, list[str]] = defaultdict(list)
    for fate in plan.fates:
        for reason in fate.reasons:
            for known in reason.ids:
                if len(concerned[known]) < EXAMPLES:
                    concerned[known].append(fate.label)
    found = [
        {
            "id": known,
            "title": KNOWN[known].title,
            "advice": KNOWN[known].advice,
            "count": count,
            "items": concerned[known],
            "cared_for": False,
        }
        for known, count in sorted(plan.problem_counts().items(), key=lambda item: (item[0][0] != "P", item[0]))
    ]
    named = {entry["id"] for entry in found}
    for known in CARED_FOR:
        if known not in named:
            entry = KNOWN[known]
            found.append(
                {
                    "id": known,
                    "title": entry.title,
                    "advice": entry.advice,
                    "count": 0,
                    "items": [],
                    "cared_for": True,
                }
            )
    return found
