"""The fixtures that pytest has where this package is installed.

    def test_invoice(qpubsub_queue_manager):
        qpubsub_queue_manager.put("DEV.QUEUE.1", "order 1")
        invoice("localhost", qpubsub_queue_manager.port)
        assert qpubsub_queue_manager.get("DEV.QUEUE.2").body_text == "invoice 1"

``qpubsub_queue_manager_session`` starts a queue manager for the session, when a test first asks for it;
``qpubsub_queue_manager`` is the same one, emptied before the test. In pytest.ini, ``qpubsub_qmgr`` names it, and
``qpubsub_mqsc`` is a directory of MQSC scripts, relative to that file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from commands import DevQueueManager


def pytest_addoption(parser: pytest.Parser) -> None:
    """The settings of pytest.ini."""
    parser.addini("qpubsub_qmgr", "the name of the queue manager", default="QM1")
    parser.addini("qpubsub_mqsc", "a directory of MQSC scripts that the queue manager applies at its start")


@pytest.fixture(scope="session")
def qpubsub_queue_manager_session(pytestconfig: pytest.Config) -> Iterator[DevQueueManager]:
    """A queue manager for all tests of the session, with IBM's developer defaults, on a port of its own."""
    try:
        from mq_qpubsub import DevQueueManager  # noqa: PLC0415 - slow to load
    except ImportError as error:
        why = "a package of this project may hide rfh2, streams, commands or migrate of mq-qpubsub"
        pytest.fail(f"qpubsub: {error}; {why}", pytrace=False)

    scripts = pytestconfig.getini("qpubsub_mqsc")
    directory = pytestconfig.rootpath / scripts if scripts else None
    with DevQueueManager.start(pytestconfig.getini("qpubsub_qmgr"), directory) as manager:
        yield manager


@pytest.fixture
def qpubsub_queue_manager(qpubsub_queue_manager_session: DevQueueManager) -> DevQueueManager:
    """The session's queue manager, without messages and retained publications. What tests define stays."""
    qpubsub_queue_manager_session.clear()
    return qpubsub_queue_manager_session
