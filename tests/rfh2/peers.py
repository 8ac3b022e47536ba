"""Other people's codecs: the pure Python structures of ``ibmmq`` and ``pymqi``, where they are to be had.

Neither needs the MQ client library for that: a stand-in takes the place of its C extension. A peer that is not
installed is skipped; ``pymqi`` cannot be installed without the library's headers, but its unpacked source on the path
will do.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from types import ModuleType
from typing import Any

import pytest


class StandIn(ModuleType):
    """A C extension that is not there: whatever is called does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def peer(name: str, extension: str) -> Any:
    """The peer's module, or None."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    added = {each: StandIn(each) for each in (extension, f"{name}.{extension}") if each not in sys.modules}
    for module in added.values():
        module.__dict__.update(__version__=version, __cmdlevel__="", __mqbuild__="", __mqlevels__="")
    sys.modules.update(added)
    try:
        return importlib.import_module(name)
    except ImportError:
        for each in added:
            del sys.modules[each]
        return None


IBMMQ = peer("ibmmq", "ibmmqc")
PYMQI = peer("pymqi", "pymqe")

needs_ibmmq = pytest.mark.skipif(IBMMQ is None, reason="ibmmq is not installed")
needs_pymqi = pytest.mark.skipif(PYMQI is None, reason="pymqi is not on the path")
PEERS = [pytest.param(IBMMQ, id="ibmmq", marks=needs_ibmmq), pytest.param(PYMQI, id="pymqi", marks=needs_pymqi)]
