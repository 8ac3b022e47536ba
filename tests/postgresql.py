"""A server of PostgreSQL of the tests' own: a new cluster in a temporary directory, on a Unix socket alone."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from commands.config.home import PostgresqlHome

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]

_DEBIAN: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
_PROGRAMS: Final = (*_DEBIAN, Path(shutil.which("initdb") or "/").resolve().parent)
PROGRAMS: Final = next((each for each in _PROGRAMS if (each / "initdb").exists() and (each / "pg_ctl").exists()), None)
needs_postgresql = pytest.mark.skipif(
    PROGRAMS is None or psycopg is None, reason="needs PostgreSQL (Debian's package postgresql) and psycopg"
)
_SETTINGS: Final = {
    "listen_addresses": "''",
    "max_connections": "100",
    # Nothing here outlives the machine; what a crash of the server itself loses is the same without it.
    "fsync": "off",
}


class PostgresqlServer:
    """One that can be stopped, killed and started again. directory: a new one, which is the server's alone.

    copy_of: a server of which it is a copy, by streaming replication. log: an empty directory for its write-ahead log.
    """

    def __init__(
        self, directory: Path, copy_of: PostgresqlServer | None = None, log: Path | None = None, **settings: str
    ) -> None:
        assert PROGRAMS is not None
        self.data = directory / "data"
        self._sockets = directory
        # It refuses to work for root.
        self._user = "postgres" if _is_user("postgres") else "nobody"
        self.give(directory)
        if copy_of is not None:
            self.copy(copy_of)
            return
        options = ["-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        if log is not None:
            self.give(log)
            options += ["--waldir", str(log), "--wal-segsize=1"]
        self._run("initdb", "-D", str(self.data), *options)
        with (self.data / "postgresql.auto.conf").open("a") as conf:
            wanted = {**_SETTINGS, "unix_socket_directories": f"'{directory}'", **settings}
            conf.writelines(f"{name} = {value}\n" for name, value in wanted.items())
        self.start()

    def give(self, directory: Path) -> None:
        """Have *directory* belong to the server."""
        if os.getuid() == 0:
            shutil.chown(directory, self._user)
            directory.chmod(0o711)

    def home(self, database: str = "postgres") -> PostgresqlHome:
        """A database of it as a home."""
        return PostgresqlHome(f"postgresql://tester@/{database}?host={self._sockets}")

    def copy(self, server: PostgresqlServer) -> None:
        """Be a copy of *server* from now on; what was here before is gone."""
        shutil.rmtree(self.data, ignore_errors=True)
        where = f"host={server.data.parent} user=tester"
        self._run("pg_basebackup", "-D", str(self.data), "-d", where, "-R", "-X", "stream", "-c", "fast", "-N")
        with (self.data / "postgresql.auto.conf").open("a") as conf:
            conf.write(f"unix_socket_directories = '{self._sockets}'\n")
        self.start()

    def promote(self) -> None:
        """Be a copy no more, and take writers."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-l", str(self._sockets / "log"), "start")

    @property
    def is_running(self) -> bool:
        """Whether it takes connections, or will soon."""
        assert PROGRAMS is not None
        command = [str(PROGRAMS / "pg_ctl"), "-D", str(self.data), "status"]
        options = {"user": self._user} if os.getuid() == 0 else {}
        done = subprocess.run(command, stdout=subprocess.DEVNULL, cwd="/", check=False, **options)  # type: ignore[call-overload]
        return bool(done.returncode == 0)

    def stop(self, mode: str = "fast") -> None:
        """Stop it. mode: of pg_ctl."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """Kill it with SIGKILL, and all its processes with it."""
        head = int((self.data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["pgrep", "-P", str(head)], capture_output=True, text=True, check=False).stdout
        for pid in (head, *map(int, children.split())):
            with suppress(ProcessLookupError):  # its end may be quicker
                os.kill(pid, signal.SIGKILL)
        # Until the last one has gone, the server does not start again.
        while any(_works(pid) for pid in (head, *map(int, children.split()))):
            time.sleep(0.01)
        # One that nobody has waited for still has its number, by which the next one would take it for alive.
        for left in (self.data / "postmaster.pid", *self._sockets.glob(".s.PGSQL.*.lock")):
            left.unlink()

    def _run(self, program: str, *arguments: str) -> None:
        assert PROGRAMS is not None
        options = {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid} if os.getuid() == 0 else {}
        done = subprocess.run(
            [str(PROGRAMS / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            text=True,
            check=False,
            **options,  # type: ignore[arg-type]
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"


def _works(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextmanager
def postgresql_server(
    copy_of: PostgresqlServer | None = None, log: Path | None = None, **settings: str
) -> Iterator[PostgresqlServer]:
    """A server, gone at the end. copy_of, log: as ``PostgresqlServer`` has it."""
    place = Path(tempfile.mkdtemp(prefix="qpubsub-postgresql-"))
    server = PostgresqlServer(place, copy_of, log, **settings)
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(place)


def empty(home: PostgresqlHome) -> None:
    """Delete all queue managers of *home*."""
    with psycopg.connect(home.url, autocommit=True) as session:
        session.execute(
            """DO $$ DECLARE found TEXT; BEGIN
            FOR found IN SELECT nspname FROM pg_namespace WHERE nspname LIKE 'qmgr\\_%' LOOP
                EXECUTE format('DROP SCHEMA %I CASCADE', found); END LOOP; END $$"""
        )
