"""Settings of Java for tests: none that one starts lives long enough for its code to be worth compiling well.

Nor is it worth verifying, which takes a tenth of Spark's start: javac and IBM have made it.
"""

from __future__ import annotations

from typing import Final

QUICK_JAVA: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
JAVA: Final = ("java", *QUICK_JAVA.split(), "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8")
JAVAC: Final = ("javac", *(f"-J{each}" for each in QUICK_JAVA.split()))
