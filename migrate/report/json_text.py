"""The report as JSON: one object, with each item on a line of its own, last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

_EMPTY: Final = "[]\n}"


def json_lines(facts: dict[str, Any]) -> Iterator[str]:
    """The lines with their ends. facts: of ``migrate.report.facts``."""
    rest = {name: value for name, value in facts.items() if name != "fates"}
    head = json.dumps(rest | {"fates": []}, ensure_ascii=False, indent=1)
    yield head.removesuffix(_EMPTY) + "["
    before = "\n  "
    for fate in facts["fates"]:
        yield before + json.dumps(fate, ensure_ascii=False)
        before = ",\n  "
    yield "\n ]\n}\n"


def json_object(facts: dict[str, Any]) -> str:
    """The same on one line."""
    rest = {name: value for name, value in facts.items() if name != "fates"}
    fates = ", ".join(json.dumps(fate, ensure_ascii=False) for fate in facts["fates"])
    return f'{json.dumps(rest, ensure_ascii=False).removesuffix("}")}, "fates": [{fates}]}}'
