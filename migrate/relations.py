"""Neighbours in the broker hierarchy: the parent becomes PARENT; children keep the relation themselves (guide 7.4.1).

Each child's own queue manager names this one as its parent. A hierarchy of version 6 and version 7 queue managers works
while it is migrated one by one; what cannot work is reported: two parents, a neighbour that is both parent and child, a
queue manager that is its own neighbour, names alike in their first 12 characters.
"""

from __future__ import annotations

from typing import Final

from commands.broker.objects import is_object_name
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import Key, LegacyState, Relation
from rfh2.errors import MigrationError

_SIGNIFICANT: Final = 12


def recorded_parent(state: LegacyState) -> str:
    """The queue manager that the broker has as its parent; "" for none."""
    return next((r.qmgr for r in state.relations if r.role == "parent"), "")


def check_parent(draft: Draft) -> None:
    """-p against the parent that is recorded: the same is a warning, another one is an error (guide 7.1).

    Raises MigrationError: the migration is not performed.
    """
    asked, recorded = draft.options.parent, recorded_parent(draft.state)
    if asked is None:
        return
    if asked != recorded:
        known = f"its parent is {recorded}" if recorded else "it has no parent"
        raise MigrationError(f"-p {asked}: {known}; nothing was migrated. Leave -p out: the parent migrates by itself")
    draft.warn(f"-p {asked} is deprecated and not needed: the parent migrates by itself")


def plan_relations(draft: Draft) -> None:
    """The fate of every neighbour, and the step that sets PARENT."""
    parent: tuple[Key, Relation] | None = None
    children: set[str] = set()
    for number, relation in enumerate(draft.state.relations, 1):
        key = (relation.kind, number)
        if not is_object_name(relation.qmgr):
            draft.ledger.report(key, f"{relation.qmgr!r} cannot name a queue manager", severity=Severity.ERROR)
        elif relation.qmgr == draft.state.qmgr:
            draft.ledger.report(key, "a queue manager cannot be its own neighbour", "P25", severity=Severity.ERROR)
        elif relation.role == "child":
            children.add(relation.qmgr)
            draft.ledger.becomes(
                key, f"itself: {relation.qmgr} has PARENT({draft.qmgr}), or gets it when it is migrated"
            )
        elif parent is None:
            parent = (key, relation)
        elif parent[1].qmgr == relation.qmgr:
            draft.ledger.becomes(key, f"PARENT({relation.qmgr})")
            draft.ledger.note(key, "two sources tell of it")
        else:
            why = f"{parent[1].qmgr} is the parent already, and there can be only one"
            draft.ledger.report(key, why, "P25", severity=Severity.ERROR)
    if parent is not None:
        _set_parent(draft, *parent, children)
    _check_names(draft)


def _set_parent(draft: Draft, key: Key, relation: Relation, children: set[str]) -> None:
    if relation.qmgr in children:
        why = f"{relation.qmgr} is a child as well: a loop; look at both queue managers before you set PARENT"
        draft.ledger.report(key, why, "P25", severity=Severity.ERROR)
        return
    before = draft.objects.qmgr.parent
    if before not in ("", relation.qmgr):
        if not draft.options.overwrite:
            draft.ledger.report(key, f"the queue manager has PARENT({before}); it was not replaced", "P08")
            return
        draft.ledger.change(key, f"PARENT({before}) was replaced", "P08", severity=Severity.WARNING)
    draft.ledger.becomes(key, f"PARENT({relation.qmgr})")


def _check_names(draft: Draft) -> None:
    first: dict[str, str] = {draft.qmgr[:_SIGNIFICANT]: draft.qmgr}
    for number, relation in enumerate(draft.state.relations, 1):
        other = first.setdefault(relation.qmgr[:_SIGNIFICANT], relation.qmgr)
        if other != relation.qmgr:
            why = f"{relation.qmgr} and {other} have their first {_SIGNIFICANT} characters in common"
            draft.ledger.note((relation.kind, number), why, "P24", severity=Severity.WARNING)


def planned_parent(draft: Draft) -> str:
    """PARENT as it is to be when all is done."""
    for number, relation in enumerate(draft.state.relations, 1):
        key = (relation.kind, number)
        if relation.role == "parent" and not draft.ledger.is_reported(key):
            return relation.qmgr
    return draft.objects.qmgr.parent
