"""The file in which `make run` stores an API key for development."""

import os
from pathlib import Path

KEY_FILE = Path("var/key")  # relative to the checkout, like the development database


def read() -> str:
    """The stored key; empty if there is none."""
    return KEY_FILE.read_text("utf-8").strip() if KEY_FILE.is_file() else ""


def write(key: str) -> None:
    """Stores a key in a new file that only its owner can read, even while it is being written."""
    KEY_FILE.parent.mkdir(parents=True, exist_ok=True)
    KEY_FILE.unlink(missing_ok=True)
    descriptor = os.open(KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{key}\n")
