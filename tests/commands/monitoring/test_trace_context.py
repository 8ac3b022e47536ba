"""The W3C trace context in folder usr: found where it is, and replaced without another byte changed."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commands.broker.reading import Reading
from commands.monitoring.trace_context import context_of, seems_sampled
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.monitoring.traffic import SAMPLED, TRACE_ID, UNSAMPLED, traced

OWN = f"00-{TRACE_ID}-1111111111111111-01"
PSC = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
MD = Mqmd(format="MQHRF2").encode()


def _body(*folders: str, charset: str = "utf-8", data: bytes = b"data") -> bytes:
    ccsid = 1208 if charset == "utf-8" else 1200
    made = tuple(Folder.of(text, charset) for text in folders)
    return Rfh2(made, format="MQSTR", name_value_ccsid=ccsid).encode() + data


# The message, and what its publisher says of its trace: a quick look, and what is in the folder.
MESSAGES: list[tuple[str, bytes, bool | None, str | None]] = [
    ("sampled", _body(PSC, f"<usr>{traced(SAMPLED)}</usr>"), True, SAMPLED),
    ("not sampled", _body(PSC, f"<usr>{traced(UNSAMPLED)}</usr>"), False, UNSAMPLED),
    ("typed", _body(PSC, f'<usr><traceparent dt="string">{SAMPLED}</traceparent></usr>'), True, SAMPLED),
    ("between others", _body(PSC, f"<usr><a>1</a>{traced(SAMPLED)}<b>2</b></usr>"), True, SAMPLED),
    ("none", _body(PSC), None, None),
    ("usr without it", _body(PSC, "<usr><a>1</a></usr>"), None, None),
    ("of another version", _body(PSC, f"<usr>{traced('cc' + SAMPLED[2:])}</usr>"), False, None),
    ("no trace context", _body(PSC, f"<usr>{traced('x')}</usr>"), False, None),
    ("in the data", _body(PSC, data=traced(SAMPLED).encode()), True, None),
    ("in another folder", _body(PSC, f"<mine>{traced(SAMPLED)}</mine>"), True, None),
    ("broken", _body(PSC, f"<usr>{traced(SAMPLED)}"), True, None),
    ("in UTF-16", _body(PSC, f"<usr>{traced(SAMPLED)}</usr>", charset="utf-16-le"), None, SAMPLED),
    ("no MQRFH2", b"data", None, None),
]


@pytest.mark.parametrize(("body", "seems", "value"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_what_the_publisher_says(body: bytes, seems: bool | None, value: str | None) -> None:
    assert seems_sampled(body) is seems
    found = context_of(Reading.of(MD, body))
    assert (None if found is None else found.traceparent) == value


@given(
    before=st.text("ab<&é", max_size=8).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    state=st.sampled_from(["", "<tracestate>congo=t61rcWkgMzE</tracestate>"]),
    data=st.binary(max_size=40),
    is_twice=st.booleans(),
    charset=st.sampled_from(["utf-8", "utf-16-le"]),
)
def test_only_the_value_is_replaced(before: str, state: str, data: bytes, is_twice: bool, charset: str) -> None:
    again = traced(SAMPLED).encode() if is_twice else b""
    usr = f"<usr><a>{before}{SAMPLED}</a>{traced(SAMPLED)}{state}</usr>"
    body = _body(PSC, usr, charset=charset, data=data + again)
    context = context_of(Reading.of(MD, body))
    assert context is not None
    replaced = context.replaced(body, OWN)
    expected = _body(PSC, usr.replace(traced(SAMPLED), traced(OWN)), charset=charset, data=data + again)
    assert replaced == expected
    assert context.tracestate == ("congo=t61rcWkgMzE" if state else "")
    folder = decode(replaced, MD).rfh2.folder("usr")  # type: ignore[union-attr]
    assert folder is not None
    assert folder.values()["traceparent"] == OWN
