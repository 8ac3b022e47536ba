"""A newcomer's way: install as the README says, write the files of the demo, run every command that is printed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.documents import written_pages
from tests.tour.examples import BEFORE, ENDLESS, EXITS, NOT_RUN, PROVOKED, SPARK, UNSEEN, codes_of, examples
from tests.tour.pages import Block, blocks

ROOT = Path(__file__).parents[2]
PACKAGES = ("rfh2", "streams", "commands", "migrate", "mq_qpubsub")
_LONGEST_S = 240
# Half a minute each on a machine that does nothing else.
_LONGEST_WITH_SPARK_S = 900
_STOPPED_AFTER_S = 6
_AT_ONCE = 2
_ENDED = re.compile(r"\n?@@(\d+)@@(\d+)@@([\d.]+)@@([\d.]+)\n")
_KEPT = re.compile(
    r"LANG|LC_ALL|TERM|JAVA_HOME|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|SPARK_SUBMIT_OPTS|PIP_\w+|(?i:https?_proxy|no_proxy)"
)
_WANTS = {"jq": "jq", "mosquitto": "mosquitto", "mosquitto_sub": "mosquitto_sub", "mosquitto_pub": "mosquitto_pub"}
_PREPARED = """\
qpubsub create QM1
qpubsub mqsc -m QM1 streams.mqsc
qpubsub encode --command Publish --topic Sport/Soccer --data '1 0' | qpubsub put -m QM1 SYSTEM.BROKER.DEFAULT.STREAM
qpubsub run -m QM1 --once
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One command and how it ended. failure: what went otherwise than it should. not_run: why it was not run."""

    where: str
    number: int
    command: str
    code: int | None = None
    seconds: float = 0.0
    failure: str | None = None
    not_run: str | None = None

    def __str__(self) -> str:
        command = self.command if "\n" not in self.command else f"{self.command.splitlines()[0]} ..."
        if self.not_run is not None:
            return f"{self.where}: not run: {self.not_run}: {command}"
        ended = f"{self.where}: exit {self.code}, {self.seconds:.1f} s: {command}"
        return ended if self.failure is None else f"{ended}\n    FAILED: {self.failure}"


class Journey:
    """All of it, in one scratch directory."""

    def __init__(self, scratch: Path, *, spark: bool, cached: bool = True) -> None:
        self._scratch, self._spark, self._cached = scratch, spark, cached
        self._home = scratch / "home"
        self._checkout = scratch / "checkout"
        self._programs = self._home / "qpubsub" / "bin"

    def make(self, chosen: list[str]) -> list[Step]:
        """The steps, in no order."""
        self._copy_the_checkout()
        pages = {str(path.relative_to(ROOT)): path for path in _pages()}
        readme = list(blocks(ROOT / "README.md", "README.md"))
        steps = self._install(readme)
        if any(step.failure for step in steps):
            return steps
        self._lend_libraries()
        steps += self._prepare()
        work = []
        for name, path in pages.items():
            if not chosen or any(one in name for one in chosen):
                found = [block for block in blocks(path, name) if not self._is_of_install(block)]
                if self._spark:
                    found = [block for block in found if any(SPARK.search(line) for line, _ in block.commands)]
                work.append((self._page, name, found))
        verbs: dict[str, list[str]] = {}
        for verb, line in examples():
            if (not chosen or verb in chosen) and (not self._spark or SPARK.search(line)):
                verbs.setdefault(verb, []).append(line)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done = [pool.submit(self._page, name, found) for _, name, found in work]
            done += [pool.submit(self._verb, verb, lines) for verb, lines in verbs.items()]
            for each in done:
                steps += each.result()
        return steps

    def _copy_the_checkout(self) -> None:
        self._checkout.mkdir()
        self._home.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self._checkout)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, self._checkout / package, ignore=shutil.ignore_patterns("__pycache__"))

    @staticmethod
    def _is_of_install(block: Block) -> bool:
        return block.page == "README.md" and any(re.search(r"\bpip install \.$", line) for line, _ in block.commands)

    def _install(self, readme: list[Block]) -> list[Step]:
        (block,) = filter(self._is_of_install, readme)
        return self._shell(block, self._checkout, "README.md install")

    def _lend_libraries(self) -> None:
        """Spark and the other extras are those of this environment: a gigabyte less to install."""
        (site,) = (self._home / "qpubsub" / "lib").glob("python*/site-packages")
        lent = [path for path in sys.path if path.endswith("site-packages")]
        (site / "lent.pth").write_text("\n".join(lent) + "\n")

    def _prepare(self) -> list[Step]:
        copy = self._shell(_block("demo files", "qpubsub demo --copy plain"), self._scratch, "demo files")
        (self._scratch / "plain" / "fixtures").symlink_to(ROOT / "fixtures")
        # Each place has queue managers of its own.
        (self._scratch / "plain" / "qmgrs").mkdir()
        shutil.copytree(self._scratch / "plain", self._scratch / "prepared", symlinks=True)
        made = _block("QM1", *_PREPARED.splitlines())
        return copy + self._shell(made, self._scratch / "prepared", "QM1")

    def _workplace(self, name: str, commands: list[str]) -> Path:
        makes_it = any("qpubsub create QM1" in command for command in commands)
        place = self._scratch / "work" / re.sub(r"\W+", "-", name)
        return shutil.copytree(self._scratch / ("plain" if makes_it else "prepared"), place, symlinks=True)

    def _page(self, name: str, found: list[Block]) -> list[Step]:
        steps: list[Step] = []
        runnable = [block for block in found if block.not_run is None]
        place = self._workplace(name, [line for block in runnable for line, _ in block.commands]) if runnable else None
        for block in found:
            where, not_run = f"{name}:{block.line}", block.not_run
            if any(line.startswith("mosquitto -p 1883") for line, _ in block.commands) and _is_taken(1883):
                not_run = "port 1883 is in use"
            if not_run is not None or place is None:
                steps += [Step(where, n, line, not_run=not_run) for n, (line, _) in enumerate(block.commands)]
            elif block.language == "python":
                steps.append(self._python(block, place, where))
            else:
                steps += self._shell(block, place, where)
        return steps

    def _verb(self, verb: str, lines: list[str]) -> list[Step]:
        place = self._workplace(f"help {verb}", lines)
        where = f"qpubsub {verb} --help"
        if before := BEFORE.get(verb) or BEFORE.get(verb.split(maxsplit=1)[0]):
            self._shell(_block(where, *before), place, where)
        steps = []
        for line in lines:
            exits = next((code for part, (code, _) in EXITS.items() if re.search(part, line)), 0)
            steps += self._shell(_block(where, line, exits=exits), place, where)
        provoked = {} if self._spark else PROVOKED.get(verb, {})
        for code, line in provoked.items():
            steps += self._shell(_block(where, line, exits=code), place, f"{where}, exit code {code}")
        shown = {step.code for step in steps} | UNSEEN.get(verb, set())
        missing = set() if self._spark else codes_of(verb) - shown
        if missing:
            steps.append(Step(where, 99, f"exit codes {sorted(missing)}", failure="no command here ends in them"))
        return steps

    def _python(self, block: Block, place: Path, where: str) -> Step:
        began = time.monotonic()
        ((program, _),) = block.commands
        if reason := self._why_not(program):
            return Step(where, 0, program, not_run=reason)
        code, printed = self._ended([self._programs / "python", "-c", program], place)
        failure = None if code == block.exits else printed[-1500:]
        return Step(where, 0, program, code, time.monotonic() - began, failure)

    def _shell(self, block: Block, place: Path, where: str) -> list[Step]:
        """Run the lines of a block in one shell; each has its own exit code."""
        steps: list[Step] = []
        script = ["set -o pipefail"]
        running: dict[int, tuple[str, str | None]] = {}
        for number, (line, output) in enumerate(block.commands):
            if reason := self._why_not(line):
                steps.append(Step(where, number, line, not_run=reason))
                continue
            running[number] = line, output
            script += ["_began=$EPOCHREALTIME", self._until_stopped(line), "_code=$?"]
            script.append(f'printf "\\n@@{number}@@%s@@%s@@%s\\n" $_code $_began $EPOCHREALTIME')
        code, printed = self._ended(["bash", "-c", "\n".join(script)], place)
        pieces = _ENDED.split(printed)
        ended = {
            int(number): (shown, int(exit_code), float(until) - float(since))
            for shown, number, exit_code, since, until in zip(*(pieces[n::5] for n in range(5)), strict=False)
        }
        for at, (line, output) in running.items():
            if at not in ended:
                steps.append(Step(where, at, line, code, failure=f"did not end: {pieces[-1][-1500:]}"))
                continue
            shown, exit_code, seconds = ended[at]
            steps.append(Step(where, at, line, exit_code, seconds, _judge(block, line, output, shown, exit_code)))
        return steps

    def _why_not(self, line: str) -> str | None:
        for part, reason in NOT_RUN.items():
            if re.search(part, line):
                return reason
        if SPARK.search(line) and not self._spark:
            return "starts Spark: python -m tests.tour --spark"
        if re.search(r"pip install '\.\[", line):
            return "the environment has the libraries already"
        for library in re.findall(r"^import (duckdb|polars)$", line, re.MULTILINE):
            if find_spec(library) is None:
                return f"{library} is not installed"
        for program, needed in _WANTS.items():
            if re.search(rf"(?:^|\| ){program}\b", line) and shutil.which(needed) is None:
                return f"{needed} is not installed"
        return None

    @staticmethod
    def _until_stopped(line: str) -> str:
        if line.rstrip().endswith("&") or not ENDLESS.search(line):
            return line
        command = line.split(" #", maxsplit=1)[0].rstrip()
        quoted = command.replace("'", "'\\''")
        return f"timeout --signal=INT --preserve-status {_STOPPED_AFTER_S} bash -c '{quoted}'"

    def _ended(self, command: list[Path | str], place: Path) -> tuple[int, str]:
        """Run it with what it starts in a group of its own, which ends with it; exit code, and all that was printed."""
        environment = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        path = [str(self._programs), str(Path(sys.base_prefix) / "bin"), os.environ.get("PATH", os.defpath)]
        environment |= {"HOME": str(self._home), "PATH": os.pathsep.join(path), "SPARK_LOCAL_IP": "127.0.0.1"}
        if self._cached:
            environment.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
        else:
            environment["PIP_NO_CACHE_DIR"] = "1"
        with (self._scratch / f"printed-{place.name}").open("w+b") as printed:
            process = subprocess.Popen(
                list(map(str, command)),
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            try:
                code = process.wait(_LONGEST_WITH_SPARK_S if self._spark else _LONGEST_S)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                # What was started in the background, as a page's own broker.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            printed.seek(0)
            return code, printed.read().decode("utf-8", "replace")


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _pages() -> Iterator[Path]:
    """README and the pages of docs; tests/tutorials runs the tutorials, whole and in their order."""
    yield ROOT / "README.md"
    yield from (page for page in written_pages(".md") if "tutorials" not in page.parts)


def _block(where: str, *lines: str, exits: int = 0) -> Block:
    return Block(where, 0, "sh", tuple((line, None) for line in lines), None, exits)


def _judge(block: Block, line: str, output: str | None, shown: str, code: int) -> str | None:
    """What is wrong with how a command ended; None for nothing."""
    allowed = {0, block.exits} if block.line else {block.exits}
    if ENDLESS.search(line):
        allowed |= {0, 130}
    if code not in allowed:
        return f"should end in {' or '.join(map(str, sorted(allowed)))}; it printed: {shown.strip()[-1200:]}"
    if output is not None and (lost := not_printed(output, shown)):
        return f"the page says that it prints {lost!r}; it printed: {shown.strip()[:1500]}"
    return None


def not_printed(output: str, shown: str) -> str | None:
    """The first piece of *output*, between lines "...", that was not printed; None for none."""
    printed = "\n".join(line.rstrip() for line in shown.split("\n"))
    for piece in re.split(r"^\.\.\.$", output, flags=re.MULTILINE):
        wanted = "\n".join(line.rstrip() for line in piece.strip("\n").split("\n"))
        if wanted.strip() and wanted not in printed:
            return wanted
    return None
