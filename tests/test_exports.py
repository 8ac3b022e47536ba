"""What packages export, and that a name is imported only when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from rfh2.distribution import VERSION

ROOT = Path(__file__).parents[1]
LAZY = ("rfh2", "streams", "commands")


def _typed(package: str) -> dict[str, str]:
    """The names that type checkers see, with their modules."""
    stub = ast.parse((ROOT / package / "__init__.pyi").read_text())
    return {
        alias.name: f"{package}.{node.module}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", LAZY)
def test_a_type_checker_sees_what_a_program_gets(package: str) -> None:
    module, typed = import_module(package), _typed(package)

    assert sorted(typed) == sorted(module.__all__)
    for name, home in typed.items():
        assert getattr(module, name) is getattr(import_module(home), name)
    assert set(module.__all__) <= set(dir(module))


def test_the_name_of_the_distribution_has_what_the_packages_export() -> None:
    packages = [import_module(package) for package in (*LAZY, "migrate")]
    module = import_module("mq_qpubsub")

    assert dir(module) == sorted({"__version__"}.union(*(package.__all__ for package in packages)))
    for package in packages:
        assert package.__version__ == module.__version__ == VERSION
        assert all(getattr(module, name) is getattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", LAZY)
def test_no_module_hides_an_exported_name(package: str) -> None:
    assert [name for name in import_module(package).__all__ if find_spec(f"{package}.{name}")] == []


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nosuch'"):
        import_module(package).nosuch  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nosuch'"):
        exec(f"from {package} import nosuch")


def _imported_by(*args: str) -> list[str]:
    """Modules that the command line imports, of ours and of other distributions."""
    program = f"""
import sys
first = set(sys.modules)
from commands.cli import main
try:
    main({list(args)!r})
except SystemExit:
    ours = set(sys.modules) - first
    print(*sorted(name for name in ours if name.split(".")[0] not in sys.stdlib_module_names), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1].split()


# The help is shown before anything of the broker is needed. A module that is added here must be as cheap as these.
_START = [
    *("commands", "commands.cli", "commands.disk", "commands.disk.files", "commands.options", "commands.options.verb"),
    *("commands.terminal", "commands.terminal.console", "commands.terminal.output_file"),
    "commands.terminal.stopping",
    *("rfh2", "rfh2.constants", "rfh2.distribution", "rfh2.errors", "rfh2.distribution", "rfh2.terminal_escape"),
]


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_start_imports_click_and_few_modules(option: str) -> None:
    assert [name for name in _imported_by(option) if name.split(".")[0] != "click"] == _START


# pydantic and lxml are most of the start of decode; another library would have to be worth its time.
_LIBRARIES = {
    *("annotated_types", "click", "construct", "lxml", "pydantic", "pydantic_core"),
    *("typing_extensions", "typing_inspection"),
}
_MOST_MODULES = 170
_NOT_OF_DECODE = (
    *("commands.links", "commands.mqsc", "commands.qmgr.store", "commands.replay"),
    *("migrate", "streams.selectors.parse"),
)


def test_decode_of_a_message_imports_few_modules_and_no_queue_manager() -> None:
    found = _imported_by("decode", "fixtures/captures/formats/stock.mqmd")
    ours = [name for name in found if name.split(".")[0] in (*LAZY, "migrate")]

    libraries = {name.split(".")[0] for name in found if not name.startswith(("_", "cython"))}
    assert libraries - _LIBRARIES - set(LAZY) == set()
    assert 50 < len(ours) <= _MOST_MODULES
    assert [name for name in ours if name.startswith(_NOT_OF_DECODE)] == []


# What pyproject.toml installs without an extra, and what that needs.
_BASE = {
    *("annotated_types", "click", "construct", "dpkt", "ebcdic", "inotify_simple", "jinja2", "lark", "lxml"),
    *("markupsafe", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"),
}


def test_every_verb_can_be_imported_without_an_extra() -> None:
    """An extra's package is imported where it is needed, so that whoever lacks it reads which extra to install."""
    program = f"""
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder

class Base(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        ours = top in {_BASE | {*LAZY, "migrate"}!r} or top.startswith("_sysconfigdata")
        if not ours and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Base())
from commands.cli import VERBS, module_of
for verb in VERBS:
    try:
        import_module(module_of(verb))
    except ImportError as error:
        print(verb, error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
