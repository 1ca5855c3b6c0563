"""A member is its declaration, a column and its lines in the schema file: all else follows by existing."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.laws import coupon

ROOT = Path(__file__).parents[2]

LAST = 'a, "b"'
SHOWN = {
    "POST": "POSTED",
    "filter": [True],
    "filter by another": [],
    "fields": True,
    "PATCH": "PATCHED",
    "PATCH of another member": "PATCHED",
    "PATCH null": None,
    "PUT": "PUT, it's",
    "PUT too long": {"coupon": "must be a string of at most 20 characters or null"},
    "PUT without": None,
    "PATCHED": [[None, None], ["Royal Mail", None], *[["Royal Mail", "Ada"]] * 3],
    "PUT again": LAST,
    "events": ["order.placed", *["order.updated"] * 7],
    "GraphQL, created": "CREATED",
    "GraphQL, read": LAST,
    "jsonl": [["CREATED", None], [LAST, "Royal Mail"]],
    "csv": [["CREATED", None], [LAST, "Royal Mail"]],
}


@pytest.fixture(scope="module")
def with_coupons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of the program whose orders have a coupon."""
    return coupon.copied(tmp_path_factory.mktemp("coupons"))


def run(source: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Python on the path of a copy of the program."""
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_coupon_of_orders_is_there_by_being_declared(
    engine: str, new_database: Callable[[str], str], with_coupons: Path, tmp_path: Path
) -> None:
    """An optional member of orders lives in POST, PUT, PATCH, filters, fields, events, files and GraphQL."""
    databases = [new_database(engine) for _ in range(3)]
    ended = run(with_coupons, "-m", "tests.laws.coupon", tmp_path, *databases)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == SHOWN
