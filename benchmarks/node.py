"""A peer in Node: copied under `var/`, with its locked packages, which npm installs when they are needed."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.servers import ROOT

_INSTALL_LIMIT = 900.0


class UnavailableError(Exception):
    """Why a peer cannot run here."""


def installed(peer: Path) -> Path:
    """The folder it runs from; UnavailableError if there is no Node or its packages cannot be had."""
    node, npm = _found("node"), _found("npm")
    folder = ROOT / "var" / peer.name
    shutil.copytree(peer, folder, dirs_exist_ok=True)
    # Native modules are compiled for one version of Node.
    wanted = _output([node, "--version"], folder) + (peer / "package-lock.json").read_text()
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        _output([npm, "ci", "--no-audit", "--no-fund"], folder)
        stamp.write_text(wanted)
    return folder


def _found(command: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise UnavailableError(f"there is no {command} here")
    return path


def _output(command: Sequence[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_INSTALL_LIMIT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)} failed:\n{done.stderr[-1_000:]}")
    return done.stdout
