"""Third parties that judge us in Node: the programs here, and their packages, which npm installs when first needed.

Where that cannot be done, the test that asks is skipped and says why.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_PACKAGES = ("package.json", "package-lock.json")
_VAR = HERE.parents[2] / "var"
_INSTALL = ("ci", "--engine-strict", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
_INSTALL_SECONDS = 180.0
_PROGRAM_SECONDS = 60.0


def output(program: str, *arguments: str) -> Any:
    """What a program prints, which is JSON."""
    with start(program, *arguments) as begun:
        try:
            said, complaint = begun.communicate(timeout=_PROGRAM_SECONDS)
        finally:
            begun.kill()
    assert begun.returncode == 0, complaint
    return json.loads(said)


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program with pipes to it; run from the folder of the packages, for that is where Node looks for them."""
    folder = _installed()
    if isinstance(folder, str):
        pytest.skip(folder)
    source = (HERE / program).read_text()
    return subprocess.Popen(
        ["node", "--input-type=module", "--eval", source, "--", *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@cache
def _installed() -> Path | str:
    """The folder of the packages, or why there is none."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "there is no Node with npm here"
    contents = b"".join((HERE / name).read_bytes() for name in _PACKAGES)
    folder = _VAR / f"third-parties-{hashlib.sha256(contents).hexdigest()[:12]}"
    if folder.exists():
        return folder
    _VAR.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_VAR) as place:
        made = Path(place) / "made"
        made.mkdir()
        for name in _PACKAGES:
            shutil.copy(HERE / name, made)
        try:
            subprocess.run(
                [npm, *_INSTALL],
                cwd=made,
                capture_output=True,
                text=True,
                check=True,
                timeout=_INSTALL_SECONDS,
            )
        except subprocess.CalledProcessError as failed:
            return f"npm ci failed: {failed.stderr[-500:]}"
        except (OSError, subprocess.TimeoutExpired) as failed:
            return f"npm ci failed: {failed}"
        with suppress(OSError):  # somebody else was first
            made.rename(folder)
    return folder
