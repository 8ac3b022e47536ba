"""Against codecs that this project did not write: the pure Python structures of ``ibmmq`` and ``pymqi``."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import given, strategies as st

from rfh2 import (
    Mqmd,
    constants,
    options,
    pcf_names,
)
from rfh2.ccsid import ByteOrder
from rfh2.mqmd import name_of
from tests.rfh2.peers import IBMMQ, needs_ibmmq

LONGS = st.integers(-(2**31), 2**31 - 1)


NATIVE: ByteOrder = sys.byteorder


TEXTS = st.text("ABCXYZ./_%019", max_size=8)


def binary(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


PUT: dict[str, st.SearchStrategy[Any]] = {
    "PutApplType": LONGS,
    "PutApplName": TEXTS,
    "PutDate": TEXTS,
    "PutTime": TEXTS,
}
EXTENSION: dict[str, st.SearchStrategy[Any]] = {
    "GroupId": binary(24),
    "MsgSeqNumber": LONGS,
    "Offset": LONGS,
    "MsgFlags": LONGS,
    "OriginalLength": LONGS,
}
DESCRIPTOR: dict[str, st.SearchStrategy[Any]] = {
    "Report": LONGS,
    "MsgType": LONGS,
    "Expiry": LONGS,
    "Feedback": LONGS,
    "Encoding": LONGS,
    "CodedCharSetId": LONGS,
    "Format": TEXTS,
    "Priority": LONGS,
    "Persistence": LONGS,
    "MsgId": binary(24),
    "CorrelId": binary(24),
    "BackoutCount": LONGS,
    "ReplyToQ": TEXTS,
    "ReplyToQMgr": TEXTS,
    "UserIdentifier": TEXTS,
    "AccountingToken": binary(32),
    "ApplIdentityData": TEXTS,
    **PUT,
}


def fill(structure: Any, fields: dict[str, st.SearchStrategy[Any]], data: st.DataObject) -> dict[str, Any]:
    """The peer's structure with values drawn for *fields*; the values."""
    values = {name: data.draw(strategy, name) for name, strategy in fields.items()}
    structure.set(**values)
    return values


def agree(ours: object, theirs: dict[str, Any]) -> None:
    """Our fields hold their values; they fill text up with nulls, so it is names that are compared."""
    for name, value in theirs.items():
        # ReplyToQMgr is reply_to_qmgr here, ReplyToQ reply_to_q
        words = name.replace("QMgr", "Qmgr")
        found = getattr(ours, "".join(f"_{c.lower()}" if c.isupper() else c for c in words).lstrip("_"))
        assert (name_of(found) if isinstance(found, str) else found) == value, name


@needs_ibmmq
@given(data=st.data())
def test_descriptors(data: st.DataObject) -> None:
    theirs = IBMMQ.MD()
    values = fill(theirs, DESCRIPTOR | EXTENSION, data)
    raw = theirs.pack()
    ours = Mqmd.decode(raw)
    agree(ours, values)
    assert (ours.version, ours.order, ours.encode()) == (2, NATIVE, raw)


@needs_ibmmq
def test_constants_are_theirs() -> None:
    ours = {name: value for module in (constants, pcf_names) for name, value in vars(module).items()}
    for each in (options.REGISTRATION, options.PUBLICATION, options.DELETE):
        ours |= {each.constant(word): bit for word, (bit, _) in each.bits.items()}
    theirs = vars(IBMMQ.CMQC) | vars(IBMMQ.CMQCFC)
    numbers = {name: value for name, value in ours.items() if name.startswith("MQ") and isinstance(value, int)}
    # The native encoding is the machine's; the guide's limit (6.7.4) is not the header file's.
    elsewhere = {"MQENC_NATIVE", "MQ_SUB_IDENTITY_LENGTH"}
    assert len(numbers) > 150
    assert {name: theirs.get(name) for name in numbers.keys() - elsewhere} == {
        name: numbers[name] for name in numbers.keys() - elsewhere
    }
