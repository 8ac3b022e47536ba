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
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.broker.objects import QueueManager
from migrate.ledger import Ledger, Severity
from migrate.legacy_state import Key, LegacyState, StanzaAttribute

_MAX_RETRIES: Final = 999_999_999
_YES: Final = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
_RESPONSE: Final = ("DLQNonPersistentResponse", "DiscardNonPersistentResponse")
_SWITCHES: Final = ("DiscardNonPersistentInputMsg", "SyncPointIfPersistent", *_RESPONSE)
_EXIT_WORDS: Final = "RoutingExit"
_GONE: Final = {
    "StreamsPerProcess": "streams are no processes any more",
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
        ledger.report(key, "no number of retries; set PSRTYCNT by hand")
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
