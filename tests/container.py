"""The image of deploy/Containerfile, built and tried without a container engine.

    python -m tests.container                 # minutes; as root, with buildah (Debian package)
    python -m tests.container --base IMAGE

Without --base, the base image is the one that the file names. Where its registry cannot be reached, one is made of
Debian's packages (mmdebstrap). Programs in the image run with buildah's isolation ``chroot``: they have the image's
files, user and variables, and the network and processes of this machine. So this shows that the image is complete and
that its own command works. It does not show what only an engine does: limits, a read-only root, ports, restarts.

Prints what was tried; the exit code is 1 where something failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

from rfh2.distribution import VERSION
from tests.commands.links.mosquitto import free_port

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "deploy" / "Containerfile"
PACKAGES: Final = "python3,python3-venv,ca-certificates"
_CERTIFICATES: Final = Path("/etc/ssl/certs")
_PATIENCE_S: Final = 90.0
PORT: Final = 9157
SUBSCRIBER: Final = "DEFINE QLOCAL(BOARD)\nDEFINE SUB(ALL) TOPICSTR('#') DEST(BOARD)\n"


class StepError(Exception):
    """A step that did not do what it should."""


@dataclass
class Builder:
    """buildah with a storage of its own in *directory*, and nothing in that of this machine."""

    directory: Path
    done: list[str] = field(default_factory=list)

    def __call__(self, *words: str, check: bool = True, timeout_s: float = 1500) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=timeout_s, check=False)
        if check and ran.returncode:
            raise StepError(f"buildah {' '.join(words)}: exit code {ran.returncode}\n{ran.stderr[-3000:]}")
        return ran

    def command(self, *words: str) -> list[str]:
        """The command line of buildah."""
        places = ("--root", str(self.directory / "storage"), "--runroot", str(self.directory / "run"))
        return ["buildah", "--storage-driver", "vfs", *places, *words]

    def tried(self, what: str) -> None:
        """Note, and print, a step that did what it should."""
        self.done.append(what)
        print(what, flush=True)


@dataclass(frozen=True)
class Container:
    """A container of the image. variables: beside those of the image."""

    buildah: Builder
    name: str
    variables: tuple[str, ...] = ()

    def words(self, *command: str) -> list[str]:
        """The command line that runs *command* in it."""
        given = [word for variable in self.variables for word in ("--env", variable)]
        return self.buildah.command("run", "--isolation", "chroot", *given, self.name, "--", *command)

    def run(self, *command: str, stdin: str = "") -> str:
        """What *command* prints. Raises StepError where it does not end in 0."""
        words = self.words(*command)
        ran = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=300, check=False)
        if ran.returncode:
            raise StepError(f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stdout[-500:]}{ran.stderr[-2000:]}")
        return ran.stdout


def base_image(buildah: Builder) -> str:
    """The base that the file names; one made of Debian's packages where its registry cannot be reached."""
    (named,) = re.findall(r"^ARG BASE=(\S+)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    pulled = buildah("pull", named, check=False, timeout_s=300)
    if pulled.returncode == 0:
        buildah.tried(f"base: {named}")
        return str(named)
    if shutil.which("mmdebstrap") is None:
        raise StepError(f"{named} cannot be pulled, and mmdebstrap is not installed:\n{pulled.stderr[-500:]}")
    archive = buildah.directory / "base.tar"
    options = ("--variant=minbase", f"--include={PACKAGES}", '--aptopt=Apt::Install-Recommends "false"')
    # That of this machine, of which its mirrors are known to be there.
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    made = subprocess.run(["mmdebstrap", *options, suite, str(archive)], capture_output=True, text=True, check=False)
    if made.returncode:
        raise StepError(f"mmdebstrap: exit code {made.returncode}\n{made.stderr[-2000:]}")
    container = buildah("from", "scratch").stdout.strip()
    buildah("add", container, str(archive), "/")
    buildah("commit", "--rm", container, "debian-with-python")
    archive.unlink()
    buildah.tried(f"base: {named} cannot be pulled; made of Debian's packages {PACKAGES}")
    return "localhost/debian-with-python"


def built(buildah: Builder, base: str) -> str:
    """Build the image; its name."""
    mounted = ("--volume", f"{_CERTIFICATES}:{_CERTIFICATES}:ro") if _CERTIFICATES.is_dir() else ()
    # Only docker's format has health checks.
    options = ("--format", "docker", "--isolation", "chroot", "--layers=false", "--build-arg", f"BASE={base}", *mounted)
    buildah("bud", *options, "--file", str(FILE), "--tag", "qpubsub", str(ROOT))
    buildah.tried("built")
    return "localhost/qpubsub"


def about(buildah: Builder, image: str) -> dict[str, Any]:
    """What the image says of itself: its command, user, ports and volumes."""
    found: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", image).stdout)["Docker"]["config"]
    return found


def answer(port: int, path: str) -> dict[str, Any]:
    """What a probe answers, with its ``status``; empty while nobody does."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as found:
            return {**json.load(found), "status": found.status}
    except URLError as error:
        body = error.read() if hasattr(error, "read") else b"{}"
        return {**json.loads(body), "status": getattr(error, "code", 0)}
    except OSError:
        return {"status": 0}


def until(ready: Callable[[], bool], what: str) -> None:
    """Wait until *ready* says so. Raises StepError."""
    end = time.monotonic() + _PATIENCE_S
    while not ready():
        if time.monotonic() > end:
            raise StepError(f"waited in vain for {what}")
        time.sleep(0.1)


@contextmanager
def started(container: Container, command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """*command* in the container, in a session of its own, ended with all of its processes."""
    with log.open("wb") as talk:
        process = subprocess.Popen(container.words(*command), stdout=talk, stderr=talk, start_new_session=True)
    try:
        yield process
    except StepError as failed:
        raise StepError(f"{failed}\n{log.read_text(errors='replace')[-2000:]}") from failed
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def instances(container: Container) -> dict[str, int]:
    """Mode and process id of the instances of QM1."""
    found = json.loads(container.run("qpubsub", "status", "-m", "QM1", "--json"))
    return {each["mode"]: each["pid"] for each in found["processor"]["instances"]}


def try_verbs(container: Container, config: dict[str, Any]) -> None:
    """The verbs that need nothing, as the user of the image."""
    buildah = container.buildah
    user = container.run("id", "-u").strip()
    if user != config["User"] or user == "0":
        raise StepError(f"programs run as user {user}, not as {config['User']}")
    version = container.run("qpubsub", "--version")
    if VERSION not in version:
        raise StepError(f"--version prints {version!r}, not {VERSION}")
    buildah.tried(f"qpubsub --version, as user {user}: {version.strip()}")
    lines = container.run("qpubsub", "demo").splitlines()
    if not lines:
        raise StepError("demo prints nothing")
    buildah.tried(f"qpubsub demo: {len(lines)} lines")
    container.run("qpubsub", "config", "check", "/etc/qpubsub/qpubsub.toml")
    buildah.tried("qpubsub config check /etc/qpubsub/qpubsub.toml")


def try_run(container: Container, config: dict[str, Any]) -> None:
    """The command of the image: it is killed, and another container goes on."""
    buildah, scratch = container.buildah, container.buildah.directory
    ports = free_port(), free_port()
    first, second = (Container(buildah, container.name, (f"QPUBSUB_RUN_METRICS=127.0.0.1:{port}",)) for port in ports)
    with ExitStack() as stack:
        active = stack.enter_context(started(first, config["Cmd"], scratch / "first.log"))
        until(lambda: answer(ports[0], "/readyz")["status"] == 200, "/readyz of the command of the image")
        buildah.tried("the command of the image: makes QM1, and /readyz is 200")
        first.run(*(word.replace(f":{PORT}/", f":{ports[0]}/") for word in config["Healthcheck"]["Test"][1:]))
        buildah.tried("the health check of the image")
        container.run("qpubsub", "mqsc", "-m", "QM1", stdin=SUBSCRIBER)
        container.run("qpubsub", "pub", "-m", "QM1", "sport/goals", "one")
        until(lambda: b"one".hex() in container.run("qpubsub", "browse", "-m", "QM1", "BOARD"), "a delivery")
        buildah.tried("a publication is delivered")
        os.kill(instances(container)["active"], signal.SIGKILL)
        active.wait(_PATIENCE_S)
        again = stack.enter_context(started(second, config["Cmd"], scratch / "second.log"))
        until(lambda: answer(ports[1], "/readyz")["status"] == 200, "the second one to work")
        buildah.tried("a second container goes on when the first one was killed")
        os.kill(instances(container)["active"], config_stop_signal(config))
        if (code := again.wait(_PATIENCE_S)) != 0:
            raise StepError(f"the stop signal ends it with exit code {code}")
        buildah.tried(f"{config['StopSignal']} ends it with exit code 0")


def config_stop_signal(config: dict[str, Any]) -> signal.Signals:
    """The signal with which an engine ends the container."""
    return signal.Signals[config["StopSignal"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and try the image."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="an image with Python 3.11 or later, its venv, and useradd")
    asked = parser.parse_args(arguments)
    if os.geteuid() != 0 or shutil.which("buildah") is None:
        print("this needs root, and buildah (apt-get install buildah)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="qpubsub-image-") as scratch:
        buildah = Builder(Path(scratch))
        try:
            image = built(buildah, asked.base or base_image(buildah))
            config = about(buildah, image)
            container = Container(buildah, buildah("from", image).stdout.strip())
            try_verbs(container, config)
            try_run(container, config)
        except (StepError, subprocess.TimeoutExpired) as failed:
            print(f"failed: {failed}", file=sys.stderr)
            return 1
        finally:
            buildah("rm", "--all", check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
