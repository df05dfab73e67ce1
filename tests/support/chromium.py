"""Headless Chromium, driven over its DevTools protocol, for pictures of the viewer."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dyn_core.errors import DynError, UnsupportedError
from dyn_core.reports.screenshot import BROWSERS

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--remote-debugging-port=0", "--remote-allow-origins=*", "--hide-scrollbars",
)  # fmt: skip
WAIT = 60.0  # timeout of the browser [s]


def chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class HeadlessBrowser:
    """A page in a Chromium process of its own; `close` ends the process.

    Args:
        url: Address of the page.
        width, height: Size of the page [pixels].

    Raises:
        UnsupportedError: Chromium is not installed.
        ImportError: The package websockets is not installed.
        DynError: It does not start within 60 s.
    """

    def __init__(self, url: str, width: int = 1280, height: int = 800) -> None:
        program = chromium()
        if program is None:
            raise UnsupportedError("Chromium is not installed: apt install chromium")
        from websockets.sync.client import connect

        self._folder = tempfile.mkdtemp(prefix="dyn_chromium_")
        command = [program, *FLAGS, f"--user-data-dir={self._folder}",
                   f"--window-size={width},{height}", "about:blank"]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._numbers = itertools.count(1)
        try:
            port = self._port()
            place = f"http://127.0.0.1:{port}/json/list"
            self._socket = connect(_page(place), max_size=None, proxy=None)
            self.call("Page.enable")
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
            self.call("Emulation.setDeviceMetricsOverride", **metrics, mobile=False)
            self.call("Page.navigate", url=url)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> HeadlessBrowser:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and delete its profile."""
        self._socket.close()
        self._end()

    def call(self, method: str, **parameters: Any) -> Any:
        """Return the result of a method of the DevTools protocol.

        Raises DynError if the method fails, TimeoutError after 60 s.
        """
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=WAIT))
            if answer.get("id") == number:
                if "error" in answer:
                    raise DynError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; None if it has none."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until a JavaScript expression is true.

        Raises:
            DynError: It is still false after 60 s.
        """
        until(lambda: bool(self.evaluate(expression)), f"the page: {expression}")

    def screenshot(self) -> bytes:
        """Return a picture of the page as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        return base64.b64decode(data)

    def press(self, key: str, code: int) -> None:
        """Press and release a key such as ArrowRight, 39, in the focused element."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
            )

    def _port(self) -> int:
        """Wait for the port that the browser has chosen, and return it."""
        file = Path(self._folder) / "DevToolsActivePort"
        until(lambda: file.exists() and file.read_text().strip(), "Chromium")
        return int(file.read_text().split()[0])

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def until(done: Callable[[], Any], what: str, seconds: float = WAIT) -> None:
    """Wait until `done` returns true.

    Args:
        done: Condition, tested every 50 ms.
        what: Subject of the error message.
        seconds: Timeout [s].

    Raises:
        DynError: It is still false after the timeout.
    """
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise DynError(f"{what} is not ready after {seconds:g} s")
        time.sleep(0.05)


def _page(address: str) -> str:
    """Return the WebSocket address of the first page of a browser."""
    from urllib.request import ProxyHandler, build_opener

    opener = build_opener(ProxyHandler({}))
    pages = json.loads(opener.open(address, timeout=WAIT).read())
    return str(next(x for x in pages if x["type"] == "page")["webSocketDebuggerUrl"])
