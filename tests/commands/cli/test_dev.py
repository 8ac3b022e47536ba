"""``qpubsub dev``: the developer defaults, where the queue manager is, what it says, what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commands.config.settings import Config
from commands.disk.lock import HolderLock
from commands.qmgr.store import QueueManagerStore
from commands.running import developer
from commands.running.developer import ADMIN, APP, Developer, groups_of_developer, passing_home
from commands.testing import DevError, DevQueueManager
from commands.listener.opening import listener_of
from commands.listener.passwords import in_users_file
from rfh2.constants import MQRC_NOT_AUTHORIZED
from tests.commands.cli_runs import run_cli
from tests.commands.listener.mqi_client import MqiClient

pytestmark = pytest.mark.servers


def test_objects_of_the_developer_defaults(tmp_path: Path) -> None:
    settings = Developer(passwords={}).settings(tmp_path, Config())
    with QueueManagerStore.open(tmp_path, "QM1") as store:
        objects = store.load_state()[0]
    queues = {name for name in objects.queues if name.startswith("DEV.")}
    assert queues == {"DEV.QUEUE.1", "DEV.QUEUE.2", "DEV.QUEUE.3", "DEV.DEAD.LETTER.QUEUE"}
