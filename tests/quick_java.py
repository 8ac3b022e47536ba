"""Settings of Java for tests: none that one starts lives long enough for its code to be worth compiling well."""

from __future__ import annotations

from typing import Final

QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
