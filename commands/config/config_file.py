"""Reading the TOML file of ``--config``: what is wrong in it, by key and line, and secrets that others may read."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from commands.config.settings import NO_STANDBY, Config, ConfigError
from rfh2.errors import system_words

_TABLE: Final = re.compile(r"\s*\[([^\[\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w.\"'*-]+)\s*=")


def exposed_secrets(config: Config) -> tuple[str, ...]:
    """A warning for each file with a secret that others may read; none for a file that cannot be looked at.

    A group counts as others, except for a file of another user: an administrator may share it by its group.
    """
    tables = (config.queues, config.topics, config.admin, config.listener, config.console)
    files = dict.fromkeys(path for table in tables for path in table.secret_files)
    return tuple(warning for path in files if (warning := _exposed(path)) is not None)


def _exposed(path: Path) -> str | None:
    try:
        about = path.stat()
    except OSError:
        return None
    who = "everybody" if about.st_mode & stat.S_IROTH else ""
    if not who and about.st_mode & stat.S_IRGRP and about.st_uid == os.geteuid():
        who = "its group"
    return f"{path}: {who} may read this secret; run chmod 600 on it" if who else None


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """A fault in the file. key: dotted, "" where the file is no TOML. line: 1 for the first, None if it has none."""

    key: str
    why: str
    line: int | None = None


def read_config(path: Path | None) -> Config:
    """The configuration in the file at *path*; the defaults where there is none. Raises ConfigError."""
    if path is None:
        return Config()
    config, faults = config_of(path)
    if config is None:
        first = faults[0]
        raise ConfigError(f"{path}: {first.key}" if first.key else str(path), first.why)
    return config


def config_of(path: Path) -> tuple[Config | None, tuple[ConfigFault, ...]]:
    """The configuration in the file at *path*, or None and all of its faults."""
    try:
        text = path.read_text(encoding="utf-8")
        return Config.model_validate(tomllib.loads(text)), ()
    except OSError as error:
        return None, (ConfigFault("", system_words(error)),)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return None, (ConfigFault("", str(error)),)
    except ValidationError as error:
        faults = [_fault(text, each["loc"], each["type"], each["msg"]) for each in error.errors()]
        return None, tuple(sorted(faults, key=lambda fault: fault.line or 0))


def _fault(text: str, loc: tuple[int | str, ...], kind: str, message: str) -> ConfigFault:
    keys = [str(part) for part in loc]
    why = f"there is no such key{_suggestion(keys)}" if kind == "extra_forbidden" else message
    if keys == ["run", "standby"]:
        why = NO_STANDBY
    return ConfigFault(".".join(keys), why, _line_of(text, keys))


def _suggestion(keys: Sequence[str]) -> str:
    """The key that may be meant."""
    model: type[BaseModel] | None = Config
    for key in keys[:-1]:
        field = None if model is None else model.model_fields.get(key)
        model = field.annotation if field is not None and isinstance(field.annotation, type) else None
        model = model if model is not None and issubclass(model, BaseModel) else None
    there = {} if model is None else model.model_fields
    near = get_close_matches(keys[-1], [field.alias or name for name, field in there.items()], n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line of a key, or of its table, as far as the usual way to write them shows it."""
    table: list[str] = []
    found: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = [part.strip(" \"'") for part in header[1].split(".")]
            if table == list(keys[: len(table)]):
                found = found or number
        elif (key := _KEY.match(line)) and [*table, *(part.strip(" \"'") for part in key[1].split("."))] == list(
            keys[: len(table) + key[1].count(".") + 1]
        ):
            return number
    return found
