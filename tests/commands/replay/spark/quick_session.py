"""Settings of Spark under which small tests take less time, beside those of Java (``tests.quick_java``)."""

from __future__ import annotations

from typing import Final

QUICK_SESSION: Final = {
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__codegen__factoryMode": "NO_CODEGEN",
    "spark__sql__adaptive__enabled": "false",
}
