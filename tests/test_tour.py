"""Every command that README, docs and help pages print runs as printed, on a package installed as the README says."""

from __future__ import annotations

import pytest

from tests.tour.__main__ import main
from tests.tour.pages import Block, blocks
