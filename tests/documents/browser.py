"""A real Chromium, driven over its DevTools protocol: https://chromedevtools.github.io/devtools-protocol/."""

import http.client
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

SECONDS = 30
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ADDRESS = re.compile(r"DevTools listening on ws://[^:]+:(\d+)/")
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1440,900",
)
_UNTIL = """new Promise((done, failed) => {
  const end = performance.now() + %d000;
  const look = () => {
    const found = (() => %s)();
    if (found) done(found);
    else if (performance.now() > end) failed(new Error("never came: " + document.body.innerText));
    else setTimeout(look, 5);
  };
  look();
})"""
_KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), "ArrowDown": ("", 40), " ": (" ", 32)}
CONTROL = 2


def program() -> str | None:
    """Where a Chromium is, if there is one."""
    return os.environ.get("TRADEPOST_TEST_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


class Tab:
    """One page, and what became known of it: failures, complaints, and what it asked for."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.events: list[Any] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """A command of the protocol and its result; events that come before it are kept."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := self._heard()).get("id") != number:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, address: str) -> None:
        """Goes there and waits until all of it is loaded."""
        self.call("Page.navigate", url=address)
        self.evaluate("new Promise((done) => document.readyState === 'complete' ? done() : onload = done)")

    def evaluate(self, expression: str) -> Any:
        """What an expression comes to in the page; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until an expression is true, and gives what it then is."""
        return self.evaluate(_UNTIL % (SECONDS, expression))

    def text(self, selector: str) -> str:
        """What is to be read in the first element that a selector finds, as soon as there is one."""
        return str(self.until(f"document.querySelector({json.dumps(selector)})?.innerText"))

    def click(self, selector: str) -> None:
        self.until(f"(document.querySelector({json.dumps(selector)})?.click(), true)")

    def write(self, selector: str, text: str) -> None:
        """Fills in a field as a person does, in place of what was in it."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key: str, modifiers: int = 0) -> None:
        text, code = _KEYS[key]
        told = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text="" if modifiers else text, **told)
        self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def requested(self) -> list[str]:
        """The addresses that were asked for, sockets among them."""
        return [
            each["params"]["request"]["url"] if "request" in each["params"] else each["params"]["url"]
            for each in self.events
            if each["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated")
        ]

    def complaints(self) -> list[Any]:
        """Exceptions nobody caught, and what the browser held against the page."""
        return [
            each
            for each in self.events
            if each["method"] == "Runtime.exceptionThrown"
            or (each["method"] == "Log.entryAdded" and each["params"]["entry"]["level"] == "error")
        ]

    def _heard(self) -> Any:
        return json.loads(self._connection.recv(timeout=2 * SECONDS))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Tab]:
    """A browser of its own with one tab, closed at the end of the block."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [program, *_OPTIONS, *root, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        port = next((int(found[1]) for line in child.stderr if (found := _ADDRESS.search(line))), None)
        assert port, "the browser did not start"
        reader = threading.Thread(target=child.stderr.read, daemon=True)
        reader.start()
        try:
            with connect(_tab(port), max_size=None, proxy=None) as connection:
                tab = Tab(connection)
                yield tab
                tab.call("Browser.close")
                child.wait(timeout=SECONDS)
        finally:
            child.kill()
            reader.join(timeout=SECONDS)


def _tab(port: int) -> str:
    """The address at which the first page is driven."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/json/list")
        found = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return next(str(each["webSocketDebuggerUrl"]) for each in found if each["type"] == "page")
