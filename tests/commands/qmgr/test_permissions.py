"""Whose a queue manager's files are: their owner's alone, or a prepared directory's group's, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.disk.files import make_directory, open_to_others, private
from commands.qmgr.store import QueueManagerStore
from tests.commands.cli_runs import run
from tests.commands.qmgr.test_store_retained import publish


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=lambda umask: f"umask {umask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where a home may be prepared: others can go there."""
    for directory in (tmp_path, *tmp_path.parents[:-1]):
        if directory.stat().st_uid == os.getuid() and not directory.stat().st_mode & stat.S_IXOTH:
            directory.chmod(directory.stat().st_mode | stat.S_IXOTH)
    return tmp_path / "home"


def modes(directory: Path) -> dict[str, str]:
    found = {path.name: f"{path.stat().st_mode & 0o7777:04o}" for path in directory.rglob("*")}
    return found | {"": f"{directory.stat().st_mode & 0o7777:04o}"}


def work(home: Path) -> dict[str, str]:
    """Everything that a queue manager's directory can hold; the modes, while the database is open."""
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        message = publish("a")
        with store.unit_of_work() as unit:
            unit.put(message.queue, message.md, message.body)
        outputs = ("--log", str(home / "log"), "--record", str(home / "record"))
        assert run("run", "-m", "QM1", "--home", str(home), "--once", *outputs).code == 0
        return modes(store.directory) | {name: mode for name, mode in modes(home).items() if name in ("log", "record")}


DATABASE_FILES = {"qmgr.sqlite3", "qmgr.sqlite3-wal", "qmgr.sqlite3-shm"}
FILES = DATABASE_FILES | {"run.lock", "turn.lock", "run.status", "log", "record"}


def test_files_are_their_owners(home: Path, umask: int) -> None:
    found = work(home)
    assert found.pop("") == "0700"
    assert found == dict.fromkeys(FILES, "0600")


@pytest.mark.parametrize("prepared", ["home", "queue manager"])
def test_a_directory_that_was_prepared_for_a_group_gives_it_all(home: Path, umask: int, prepared: str) -> None:
    directory = home if prepared == "home" else home / "QM1"
    directory.mkdir(parents=True)
    directory.chmod(0o2770)
    found = work(home)
    of_home = {name: found.pop(name) for name in ("log", "record")}
    assert found.pop("") == "2770"
    assert found == dict.fromkeys(FILES - set(of_home), "0660")
    assert set(of_home.values()) == {"0660" if prepared == "home" else "0600"}


@pytest.mark.parametrize(("mode", "kept"), [(0o755, "0600"), (0o770, "0600"), (0o1777, "0600"), (0o2770, "0660")])
def test_group_rights_alone_are_no_preparation(tmp_path: Path, mode: int, kept: str) -> None:
    directory = tmp_path / "D"
    directory.mkdir()
    directory.chmod(mode)
    with open(directory / "file", "w", opener=private) as file:
        file.write("x")
    assert modes(directory)["file"] == kept


def test_a_file_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before ")
    path.chmod(0o640)
    with open(path, "a", opener=private) as file:
        file.write("after")
    assert (path.read_text(), modes(tmp_path)["file"]) == ("before after", "0640")


def test_a_directory_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "D").mkdir()
    (tmp_path / "D").chmod(0o755)
    make_directory(tmp_path / "D")
    assert modes(tmp_path)["D"] == "0755"
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_directory(tmp_path / "file")


OPEN = [
    # the directory, the file in it, whether others get at it
    (0o700, 0o644, False),
    (0o750, 0o644, False),
    (0o755, 0o600, False),
    (0o755, 0o640, False),
    (0o755, 0o644, True),
    (0o711, 0o644, True),
    (0o755, 0o602, True),
]


@pytest.mark.parametrize(("directory_mode", "file_mode", "found"), OPEN)
def test_what_is_open_to_others(home: Path, directory_mode: int, file_mode: int, found: bool) -> None:
    directory = home / "QM1"
    below = directory / "migration"
    below.mkdir(parents=True)
    (below / "backup").touch()
    (below / "backup").chmod(file_mode)
    home.chmod(0o755)
    below.chmod(0o755)
    directory.chmod(directory_mode)
    assert open_to_others(directory) == found
    home.chmod(0o700)
    assert not open_to_others(directory)


@pytest.mark.parametrize("arguments", [("status",), ("status", "--json"), ("check",), ("run", "--once")], ids=" ".join)
def test_verbs_warn_of_what_an_earlier_version_left_open(home: Path, arguments: tuple[str, ...]) -> None:
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    given = [arguments[0], "-m", "QM1", "--home", str(home), *arguments[1:]]
    closed = CliRunner().invoke(main, given)
    (home / "QM1").chmod(0o755)
    (home / "QM1" / "qmgr.sqlite3").chmod(0o644)
    opened = CliRunner().invoke(main, given)

    assert "chmod -R o-rwx" not in closed.output
    assert f"chmod -R o-rwx {home / 'QM1'}" in opened.output
    assert (closed.exit_code, opened.exit_code) == (0, 1 if arguments == ("check",) else 0)
    assert modes(home / "QM1")["qmgr.sqlite3"] == "0644"
