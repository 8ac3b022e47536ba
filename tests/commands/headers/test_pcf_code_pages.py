"""PCF strings that name no code page are in that of the message (wire formats 5.1)."""

from __future__ import annotations

import pytest

from commands import parse
from rfh2 import DecodeError, Message, Mqmd, Pcf
from rfh2.pcf import Cfst
from rfh2.pcf_names import MQCACF_TOPIC, MQCMD_PUBLISH


@pytest.mark.parametrize(
    ("ccsid", "charset"), [(500, "cp500"), (1140, "cp1140"), (1208, "utf-8"), (850, "cp850"), (819, "latin-1")]
)
def test_a_topic_without_a_code_page_of_its_own(ccsid: int, charset: str) -> None:
    pcf = Pcf(MQCMD_PUBLISH, (Cfst(MQCACF_TOPIC, "Straße/IBM".encode(charset)),))
    message = Message(Mqmd(format="MQPCF", coded_char_set_id=ccsid), (), pcf.encode())
    assert parse(message).topics == ("Straße/IBM",)


def test_a_fault_is_found_where_it_is() -> None:
    data = Pcf(MQCMD_PUBLISH, (Cfst(MQCACF_TOPIC, b"abcd"),)).encode()
    cut = Message(Mqmd(format="MQPCF", coded_char_set_id=500), (), data[:-1])
    with pytest.raises(DecodeError) as caught:
        parse(cut)
    assert caught.value.offset == 40
