"""How a pattern repeats a group and gives nothing back.

``(?:item)*+`` says it, and CPython before 3.11.5 reads it wrongly (gh-106052): where the last repetition breaks off in
the middle, the match goes on there, not where that repetition began. Debian 12 has 3.11.2. Of a single character or
class, ``[a-z]*+``, it is right in every version.
"""

from __future__ import annotations

from typing import Final

_LOT: Final = 256


def repeated(item: str) -> str:
    """The pattern of *item*, as often as it matches; what follows never gets a repetition back.

    The search takes linear time, as an atomic group does. Such a group remembers each repetition until its end, about
    180 bytes. So there is an inner one of at most 256 of them, and the outer one remembers only these.
    """
    return f"(?>(?>(?:{item}){{1,{_LOT}}})*)"
