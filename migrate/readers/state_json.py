"""States as JSON: what this program writes, and what a person may write by hand (docs/migration.md)."""

from __future__ import annotations

import json

from pydantic import ValidationError

from migrate.legacy_state import STATE_FORMAT, LegacyState, Source, StateJson, Unread


def looks_like(text: str) -> bool:
    """Whether *text* is a state file: its first keys say so."""
    return text.lstrip().startswith("{") and f'"{STATE_FORMAT}"' in text[:4096]


def read(text: str, file: str) -> tuple[list[LegacyState], list[Unread]]:
    """The states of *text*, one object or several under ``states``; what cannot be read, with its line."""
    whole = Source(file=file)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        source = Source(file=file, position=error.lineno)
        return [], [Unread(source=source, text=text[:80], why=f"no JSON: {error.msg}")]
    try:
        if isinstance(value, dict) and "states" in value:
            return list(StateJson.model_validate_json(text).states), []
        return [LegacyState.model_validate_json(text)], []
    except ValidationError as error:
        problems = []
        for found in error.errors():
            where = ".".join(str(part) for part in found["loc"])
            problems.append(Unread(source=whole, text=where, why=found["msg"]))
        return [], problems


def write(states: list[LegacyState]) -> str:
    """*states* as one JSON text; what has its default is left out."""
    bodies = [state.model_dump(mode="json", exclude_defaults=True) for state in states]
    for body, state in zip(bodies, states, strict=True):
        body |= {"format": state.format, "version": state.version}
    ordered = [{"format": body["format"], **body} for body in bodies]
    value = ordered[0] if len(ordered) == 1 else {"states": ordered}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
