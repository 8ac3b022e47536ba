"""The declared structures: their offsets (wire formats, sections 1 to 5), and that what is derived from them agrees."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rfh2 import layouts
from rfh2.ccsid import ByteOrder
from rfh2.errors import EncodeError
from rfh2.layouts import ALL, Layout
from tests.examples import FEW

OFFSETS = [
    ("MQMD1", layouts.MQMD1, 324, {"Encoding": 24, "Format": 32, "MsgId": 48, "ReplyToQ": 100, "UserIdentifier": 196}),
    ("MQMD2", layouts.MQMD2, 364, {"PutDate": 304, "ApplOriginData": 320, "GroupId": 324, "OriginalLength": 360}),
    ("MQRFH", layouts.MQRFH, 32, {"StrucLength": 8, "Encoding": 12, "Format": 20, "Flags": 28}),
    ("MQRFH2", layouts.MQRFH2, 36, {"StrucLength": 8, "CodedCharSetId": 16, "NameValueCCSID": 32}),
    ("MQDLH", layouts.MQDLH, 172, {"Reason": 8, "DestQMgrName": 60, "Encoding": 108, "Format": 116, "PutTime": 164}),
    ("MQXQH", layouts.MQXQH, 104, {"RemoteQName": 8, "RemoteQMgrName": 56}),
    ("MQMDE", layouts.MQMDE, 72, {"GroupId": 32, "MsgSeqNumber": 56, "OriginalLength": 68}),
    ("MQCFH", layouts.MQCFH, 36, {"Version": 8, "Command": 12, "Reason": 28, "ParameterCount": 32}),
    ("MQCFIN", layouts.MQCFIN, 16, {"Value": 12}),
    ("MQCFST", layouts.MQCFST, 20, {"CodedCharSetId": 12, "StringLength": 16}),
    ("MQCFIL", layouts.MQCFIL, 16, {"Count": 12}),
    ("MQCFSL", layouts.MQCFSL, 24, {"CodedCharSetId": 12, "Count": 16, "StringLength": 20}),
    ("MQCFBS", layouts.MQCFBS, 16, {"StringLength": 12}),
    ("MQCFIF", layouts.MQCFIF, 20, {"Operator": 12, "FilterValue": 16}),
    ("MQCFSF", layouts.MQCFSF, 24, {"Operator": 12, "CodedCharSetId": 16, "FilterValueLength": 20}),
    ("MQCFBF", layouts.MQCFBF, 20, {"Operator": 12, "FilterValueLength": 16}),
    ("MQCFGR", layouts.MQCFGR, 16, {"ParameterCount": 12}),
    ("MQCFIN64", layouts.MQCFIN64, 24, {"Reserved": 12, "Value": 16}),
    ("MQCFIL64", layouts.MQCFIL64, 16, {"Count": 12}),
    ("parameter", layouts.PARAMETER, 12, {"Type": 0, "StrucLength": 4, "Parameter": 8}),
]


@pytest.mark.parametrize(("layout", "size", "offsets"), [pytest.param(*row[1:], id=row[0]) for row in OFFSETS])
def test_offsets_are_the_published_ones(layout: Layout, size: int, offsets: dict[str, int]) -> None:
    assert layout.size == size
    found = {name: offset for name, offset, _ in layout.spans()}
    assert {name: found[name] for name in offsets} == offsets


def test_no_layout_is_without_a_row_here() -> None:
    assert {id(row[1]) for row in OFFSETS} == {id(layout) for layout in ALL}


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("layout", ALL, ids=[f"{layout.name}-{layout.size}" for layout in ALL])
@FEW
@given(data=st.data())
def test_the_compiled_struct_reads_and_writes_as_the_declaration_does(
    layout: Layout, order: ByteOrder, data: st.DataObject
) -> None:
    raw = data.draw(st.binary(min_size=layout.size, max_size=layout.size))
    declared = layout.declared[order].parse(raw)
    fast = layout.fast[order].unpack(raw)
    assert tuple(declared[name] for name in layout.names) == fast
    assert layout.declared[order].build(dict(zip(layout.names, fast, strict=True))) == raw
    assert layout.pack(order, *fast) == raw


def test_a_number_too_big_for_its_field_is_an_encode_error() -> None:
    with pytest.raises(EncodeError, match="MQCFIN"):
        layouts.MQCFIN.pack("big", 3, 16, 1, 1 << 31)
