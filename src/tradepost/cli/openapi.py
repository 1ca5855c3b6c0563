"""`tradepost openapi`: prints the contracts, writes them to files, or compares them with files."""

import difflib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tradepost import catalogue
from tradepost.documents import event_types, problem_kinds
from tradepost.rest.openapi.document import document
from tradepost.rest.shape import Shape
from tradepost.settings import Settings
from tradepost.versions.changes import VERSIONS, Version

BASE_URL = "https://api.example.com"  # the contracts belong to no particular service
_DIFF_LINES = 20


def openapi(*, version: str | None = None, write: Path | None = None, check: Path | None = None) -> None:
    """Print the OpenAPI document of the newest version.

    Parameters
    ----------
    version
        Print the document of another API version, such as v1.
    write
        Write all contracts to this folder instead: openapi.json, events.json, problems.md.
    check
        Compare a contract, or all contracts in a folder, with the code. The exit status is 1 if one differs.
    """
    if write is not None:
        for name, text in contracts().items():
            (write / name).write_text(text, "utf-8")
    elif check is not None:
        _check(check)
    else:
        print(_pretty(_document(_version(version))), end="")


def contracts() -> dict[str, str]:
    """The contracts by file name; openapi.json is the newest API version."""
    newest = _version(None)
    older = {f"openapi-{each.name}.json": each for each in VERSIONS if each is not newest}
    documents = {"openapi.json": newest, **older}
    return {
        **{name: _pretty(_document(each)) for name, each in documents.items()},
        "events.json": _pretty({"items": _events()}),
        "problems.md": problem_kinds.markdown(BASE_URL),
    }


def _version(name: str | None) -> Version:
    if name is None:
        return max(VERSIONS, key=lambda version: version.number)
    for version in VERSIONS:
        if version.name == name:
            return version
    sys.exit(f"tradepost: unknown version {name}; known: {', '.join(v.name for v in VERSIONS)}")


def _document(version: Version) -> dict[str, Any]:
    shapes = {each.record: Shape(each, version) for each in catalogue.RESOURCES}
    return document(version, shapes, BASE_URL, [each["type"] for each in _events()], Settings())


def _events() -> list[dict[str, Any]]:
    return event_types.catalogue(catalogue.event_types(), Settings().event_prefix, BASE_URL)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _check(path: Path) -> None:
    wanted = contracts()
    if path.is_dir():
        named = {path / name: text for name, text in wanted.items()}
    elif path.name in wanted:
        named = {path: wanted[path.name]}
    else:
        sys.exit(f"tradepost: {path} is not a contract; the contracts are {', '.join(wanted)}")
    differences = [line for file, text in named.items() for line in _difference(file, text)]
    if differences:
        print("\n".join(differences), file=sys.stderr)
        sys.exit(1)


def _difference(file: Path, wanted: str) -> Iterator[str]:
    """A line that names the file, and the beginning of the diff; nothing if the file is as wanted."""
    committed = file.read_text("utf-8") if file.exists() else ""
    if committed == wanted:
        return
    yield f"tradepost: {file} differs from the code; run `tradepost openapi --write {file.parent}`"
    diff = difflib.unified_diff(
        committed.splitlines(), wanted.splitlines(), "committed", "generated", "", "", 1, ""
    )
    lines = list(diff)
    yield from islice(lines, _DIFF_LINES)
    if len(lines) > _DIFF_LINES:
        yield f"… and {len(lines) - _DIFF_LINES} more lines"
