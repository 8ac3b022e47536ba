"""Captures as tables: the columns of Spark's decoded, in pyarrow and pandas."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from commands import CapturedMessage, captures_to_arrow, captures_to_pandas
from rfh2.errors import CaptureError
from rfh2.folders import Folder
from rfh2.rfh2 import Rfh2

pytest.importorskip("pandas")
RESULTS = "fixtures/results-service/capture.jsonl"


def capture(path: Path, *usr: str) -> Path:
    lines = []
    for seq, folder in enumerate(usr, 1):
        folders = tuple(map(Folder.of, ("<psc><Command>Publish</Command><Topic>T</Topic></psc>", folder)))
        header = Rfh2(folders, coded_char_set_id=1208, format="MQSTR")
        body = header.encode() + b"data"
        lines.append(CapturedMessage(seq=seq, queue="Q", body_hex=body.hex()).model_dump_json())
    path.write_text("\n".join([*lines, "{}"]) + "\n")
    return path


def test_a_row_for_each_record_those_that_cannot_be_read_too(tmp_path: Path) -> None:
    frame = captures_to_pandas(capture(tmp_path / "c.jsonl", "<usr><a>1</a></usr>"))
    assert frame.seq.tolist()[0] == 1
    assert frame.seq.isna().tolist() == [False, True]
    assert (frame.command[0], frame.topics[0].tolist(), frame.body_text[0]) == ("Publish", ["T"], "data")
    assert [problem["code"] for problem in frame.problems[1]] == ["unreadable-record"]
    assert "line 2" in frame.problems[1][0]["message"]


@pytest.mark.parametrize(
    ("folder", "properties"),
    [
        ("<usr><Colour>red</Colour></usr>", {"Colour": "red"}),
        ("<usr><n dt='i4'>7</n><b dt='boolean'>1</b></usr>", {"n": "7", "b": "true"}),
        ("<usr><x dt='bin.hex'>0aFF</x></usr>", {"x": "0aff"}),
        ("<usr><a>1</a><a>2</a><g><h>3</h></g></usr>", {"a": "1", "g.h": "3"}),
        ("<usr><a xsi:nil='true'></a></usr>", {"a": None}),
        ("<mcd><Msd>jms_text</Msd></mcd>", {}),
        ("<usr><a>1</usr>", {}),
    ],
    ids=["text", "typed", "binary", "twice-and-nested", "null", "no-usr", "damaged"],
)
def test_properties(tmp_path: Path, folder: str, properties: dict[str, str | None]) -> None:
    assert captures_to_pandas(capture(tmp_path / "c.jsonl", folder)).properties[0] == properties


def test_thorough_finds_warnings_too() -> None:
    plain, thorough = (captures_to_arrow(RESULTS, thorough=more) for more in (False, True))
    assert plain.schema == thorough.schema
    count = [sum(map(len, table["problems"].to_pylist())) for table in (plain, thorough)]
    assert count[0] < count[1]


def test_columns_and_types_are_the_same_where_nothing_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert captures_to_pandas(tmp_path / "empty").dtypes.equals(captures_to_pandas(RESULTS).dtypes)
    assert len(captures_to_pandas(RESULTS)) == len(Path(RESULTS).read_text().splitlines())


@pytest.mark.parametrize(("missing", "extra"), [("pandas", "pandas"), ("pyarrow", "parquet")])
def test_a_missing_library_is_named_with_its_extra(missing: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "commands.replay.decoded_columns", raising=False)
    with pytest.raises(CaptureError, match=rf"the package {missing}: .* -m pip install '\.\[{extra}\]'"):
        (captures_to_pandas if missing == "pandas" else captures_to_arrow)(RESULTS)


def test_values_are_those_of_the_capture() -> None:
    given = [json.loads(line) for line in Path(RESULTS).read_text().splitlines()]
    rows = captures_to_arrow(RESULTS).to_pylist()
    assert [(row["seq"], row["queue"], row["user"]) for row in rows] == [
        (one["seq"], one["queue"], one["user"]) for one in given
    ]
