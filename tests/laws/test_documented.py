"""What is there is documented by a test that fails when it is not."""

from pathlib import Path

import pytest

from tradepost import problems, settings
from tradepost.http.answers import STATUS, status_of

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path.relative_to(ROOT / "src/tradepost")
    for path in (ROOT / "src/tradepost").rglob("*.py")
    if path.name != "__init__.py" and "migrations" not in path.parts
)


@pytest.mark.parametrize("variable", [variable for variable, _, _ in settings.described()])
def test_every_setting_is_in_the_operating_manual(variable: str) -> None:
    """An operator finds every setting in docs/operating.md."""
    assert f"`{variable}`" in (ROOT / "docs/operating.md").read_text("utf-8")


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_is_on_the_tour(module: Path) -> None:
    """Who opens the repository for the first time finds every file of the house in docs/tour.md."""
    assert module.name in (ROOT / "docs/tour.md").read_text("utf-8")


def test_every_kind_of_problem_has_a_status_and_an_explanation() -> None:
    """A kind that a caller can meet has its status in the one table and a page's worth of words."""
    kinds = list(problems.kinds())
    assert len({kind.kind for kind in kinds}) == len(kinds)
    assert set(STATUS) <= set(kinds)
    for kind in kinds:
        assert 400 <= status_of(kind) < 600
        assert kind.__doc__
