"""Settings of Spark under which small tests take less time: nothing runs long enough to be worth compiling."""

from __future__ import annotations

from typing import Final

QUICK_SESSION: Final = {
    "spark__driver__defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__codegen__factoryMode": "NO_CODEGEN",
    "spark__sql__adaptive__enabled": "false",
}
