"""The Broker stanza of qm.ini becomes five attributes of the queue manager (guide 7.3, 6.5.1).

    MaxMsgRetryCount                PSRTYCNT
    DiscardNonPersistentInputMsg    PSNPMSG   yes: DISCARD, no: KEEP
    DLQNonPersistentResponse     \\  PSNPRES   table below
    DiscardNonPersistentResponse /
    SyncPointIfPersistent           PSSYNCPT  yes: IFPER, no: YES

    PSNPRES                               DLQ yes or not set   DLQ no
    Discard yes                           NORMAL               DISCARD
    Discard no                            SAFE                 KEEP
    not set, SyncPointIfPersistent no     SAFE                 KEEP
    not set, otherwise                    NORMAL               DISCARD

The fifth is PSMODE, which the migration itself sets at its end (guide 7.4.1). Where none of the three that decide
PSNPRES is set, it stays as it is.

Neighbours in the broker hierarchy: the parent becomes PARENT; children keep the relation themselves (guide 7.4.1).

Each child's own queue manager names this one as its parent. A hierarchy of version 6 and version 7 queue managers works
while it is migrated one by one; what cannot work is reported: two parents, a neighbour that is both parent and child, a
queue manager that is its own neighbour, names alike in their first 12 characters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.broker.objects import QueueManager, is_object_name
from migrate.ledger import Ledger, Severity
from migrate.legacy_state import Key, LegacyState, Relation, StanzaAttribute
from migrate.target import Draft
from rfh2.errors import MigrationError

_MAX_RETRIES: Final = 999_999_999
_YES: Final = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
_RESPONSE: Final = ("DLQNonPersistentResponse", "DiscardNonPersistentResponse")
_SWITCHES: Final = ("DiscardNonPersistentInputMsg", "SyncPointIfPersistent", *_RESPONSE)
_EXIT_WORDS: Final = "RoutingExit"
_GONE: Final = {
    "StreamsPerProcess": "streams are not processes any more",
    "OpenCacheSize": "the queue manager itself keeps queues open",
    "OpenCacheExpiry": "the queue manager itself keeps queues open",
    "PublishBatchSize": "publications are batched by the queue manager",
    "GroupId": "the queue manager has no broker process whose group could be set",
    "ChkPtMsgSize": "the queue manager itself checkpoints",
    "ChkPtActiveCount": "the queue manager itself checkpoints",
    "ChkPtRestartCount": "the queue manager itself checkpoints",
}


def migrated_attributes(state: LegacyState, qmgr: QueueManager, ledger: Ledger) -> QueueManager:
    """*qmgr* with what the stanza says; the fate of every attribute is in *ledger*."""
    last: dict[str, tuple[Key, StanzaAttribute]] = {}
    for number, item in enumerate(state.attributes, 1):
        key = (item.kind, number)
        if item.name in last:
            earlier = last[item.name][0]
            ledger.report(earlier, f"given again in {item.source}; the later one is used")
        last[item.name] = (key, item)
    switches: dict[str, bool] = {}
    for name, (key, item) in last.items():
        if name == "MaxMsgRetryCount":
            qmgr = _retries(key, item, qmgr, ledger)
        elif name in _SWITCHES:
            value = _YES.get(item.value.lower())
            if value is None:
                ledger.report(key, "neither yes nor no; set the queue manager attribute by hand")
            else:
                switches[name] = value
        elif name.startswith(_EXIT_WORDS):
            why = "routing exits are gone: rewrite it as a publish exit, or intercept with SUBLEVEL (guide 7.5)"
            ledger.report(key, why, "D07", severity=Severity.ERROR)
        else:
            ledger.report(key, _GONE.get(name, "no attribute of version 7 corresponds to it"), severity=Severity.INFO)
    return _switched(qmgr, switches, last, ledger)


def non_persistent_response(dlq: bool | None, discard: bool | None, sync_point: bool | None) -> str:
    """PSNPRES for the three switches that decide it; None is not set."""
    if discard is None:
        discard = sync_point is not False
    if dlq is False:
        return "DISCARD" if discard else "KEEP"
    return "NORMAL" if discard else "SAFE"


def _retries(key: Key, item: StanzaAttribute, qmgr: QueueManager, ledger: Ledger) -> QueueManager:
    if not (item.value.isascii() and item.value.isdecimal()) or int(item.value) > _MAX_RETRIES:
        ledger.report(key, "not a number of retries; set PSRTYCNT by hand")
        return qmgr
    ledger.becomes(key, f"PSRTYCNT({int(item.value)})")
    return replace(qmgr, psrtycnt=int(item.value))


def _switched(
    qmgr: QueueManager, switches: dict[str, bool], last: dict[str, tuple[Key, StanzaAttribute]], ledger: Ledger
) -> QueueManager:
    discard_input = switches.get("DiscardNonPersistentInputMsg")
    if discard_input is not None:
        qmgr = replace(qmgr, psnpmsg="DISCARD" if discard_input else "KEEP")
        ledger.becomes(last["DiscardNonPersistentInputMsg"][0], f"PSNPMSG({qmgr.psnpmsg})")
    sync_point = switches.get("SyncPointIfPersistent")
    if sync_point is not None:
        qmgr = replace(qmgr, pssyncpt="IFPER" if sync_point else "YES")
        ledger.becomes(last["SyncPointIfPersistent"][0], f"PSSYNCPT({qmgr.pssyncpt})")
    dlq, discard = (switches.get(name) for name in _RESPONSE)
    if (dlq, discard, sync_point) != (None, None, None):
        qmgr = replace(qmgr, psnpres=non_persistent_response(dlq, discard, sync_point))
    for name in _RESPONSE:
        if name in switches:
            ledger.becomes(last[name][0], f"PSNPRES({qmgr.psnpres})")
    return qmgr


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
            draft.ledger.note(key, "two sources name it")
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
