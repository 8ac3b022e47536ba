"""The user who runs the program, and the groups of a user, for authority records."""

from __future__ import annotations

import getpass
import os
from typing import Final

try:
    import grp
    import pwd
except ImportError:  # Windows
    _HAS_GROUPS = False
else:
    _HAS_GROUPS = True

_USER_LENGTH: Final = 12


def current_user() -> str:
    """The user id, cut to the length of the MQMD field; "" if the system does not give it."""
    try:
        return getpass.getuser()[:_USER_LENGTH]
    except (KeyError, OSError, ImportError):
        # ImportError: Windows, where the environment has no user either.
        return ""


def groups_of(user: str) -> tuple[str, ...]:
    """The names of a user's groups on this machine; none for a user whom it does not know, and none on Windows."""
    if not _HAS_GROUPS:
        return ()
    try:
        own = pwd.getpwnam(user).pw_gid
        return tuple(grp.getgrgid(number).gr_name for number in os.getgrouplist(user, own))
    except (KeyError, OSError):
        return ()
