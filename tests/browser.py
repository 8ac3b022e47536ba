"""Headless Chromium for tests, driven through a pipe by the DevTools protocol: opens pages and takes screenshots."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_S

EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = Path(__file__).parents[1] / "build" / "screenshots"

needs_chromium = pytest.mark.skipif(EXECUTABLE is None, reason="chromium is not installed; see .ci/run")


class Browser:
    """One Chromium with one tab."""

    def __init__(self, profile: Path) -> None:
        assert EXECUTABLE is not None
        to_read, self._commands = os.pipe()
        self._answers, to_write = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to 4, each ended by a zero byte. Higher numbers
        # in between, so that neither of the two is replaced before it is moved.
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        # No look for a network: names lead nowhere, and only the address of this machine leads to a server.
        options += ["--disable-background-networking", "--no-first-run"]
        options += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                script,
                "bash",
                str(to_read),
                str(to_write),
                EXECUTABLE,
                *options,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._received = b""
        self._last = 0
        self._own = "file:"
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """What a method of the protocol gives. Raises RuntimeError with its error."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def open(
        self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False, media: str = "screen"
    ) -> None:
        """Show a page and wait until it is loaded. media: ``screen`` or ``print``."""
        self.visit(path.as_uri(), width=width, height=height, dark=dark, media=media)

    def visit(
        self, url: str, *, width: int = 1200, height: int = 900, dark: bool = False, media: str = "screen"
    ) -> None:
        """The same for a page of a server."""
        if self._own != "file:":
            # What the last page of a server still asks for must not count as this one's.
            self._go("about:blank")
        self.events, self._own = [], "/".join(url.split("/")[:3])
        self.look(width=width, height=height, dark=dark, media=media)
        self._go(url)

    def look(self, *, width: int = 1200, height: int = 900, dark: bool = False, media: str = "screen") -> None:
        """Show the page that is open in another window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])

    def _go(self, url: str) -> None:
        self.events = []
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self._receive()

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, a promise's once it is there. Raises RuntimeError where it throws."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key by its DOM name, in what has the focus."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def photograph(self, name: str, *, whole: bool = False) -> Path:
        """Write a screenshot of the window, or of the *whole* page, to SCREENSHOTS."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        path = SCREENSHOTS / f"{name}.png"
        path.write_bytes(base64.b64decode(picture["data"]))
        return path

    @property
    def complaints(self) -> list[str]:
        """What the page has logged or thrown since it was opened, and what it asked for elsewhere."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif event.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event.get("method") == "Network.requestWillBeSent":
                found += [url for url in [params["request"]["url"]] if not url.startswith(self._own)]
        return found

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        os.close(self._commands)
        os.close(self._answers)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            more = os.read(self._answers, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._received += more
        line, _, self._received = self._received.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        if "method" in answer:
            self.events.append(answer)
        return answer


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser that ends with the block."""
    browser = Browser(profile)
    try:
        yield browser
    finally:
        browser.close()
