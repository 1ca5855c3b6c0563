"""The source of the program, read for laws about it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tradepost

ROOT = Path(tradepost.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)


@dataclass(frozen=True)
class Module:
    """One file, by its path below the package."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def docstrings(self) -> list[ast.expr]:
        bodies = (
            node.body for node in self.nodes if isinstance(node, _DOCUMENTED) and ast.get_docstring(node)
        )
        return [body[0].value for body in bodies if isinstance(body[0], ast.Expr)]

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in self.nodes if isinstance(node, FUNCTIONS))

    @property
    def imports(self) -> set[str]:
        """The modules of the program that are imported anywhere in this one, by their paths."""
        return {path for node in self.nodes if isinstance(node, ast.ImportFrom) for path in imported(node)}

    @property
    def identifiers(self) -> set[str]:
        fields = ("id", "attr", "arg", "name", "module")
        found = (getattr(node, field, None) for node in self.nodes for field in fields)
        return {name for name in found if isinstance(name, str)}

    def is_below(self, *places: str) -> bool:
        """Whether it is one of these modules, or in one of these packages."""
        return any(self.path == place or self.path.startswith(f"{place}/") for place in places)


MODULES = [
    Module(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))
]
PATHS = {module.path for module in MODULES}


def imported(node: ast.ImportFrom) -> set[str]:
    """The modules of the program that an import names; a package is not a module."""
    start = (node.module or "").replace(".", "/").removeprefix(f"{ROOT.name}/")
    return {f"{start}.py", *(f"{start}/{each.name}.py" for each in node.names)} & PATHS


def lines_of_code(module: Module) -> int:
    """Lines that are neither blank, nor a comment, nor part of a docstring; in other strings all lines count."""
    lines = dict(enumerate(map(str.strip, module.text.splitlines()), 1))
    found = {number for number, line in lines.items() if line and not line.startswith("#")}
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(number for number in span(node) if lines[number] in node.value)
    for docstring in module.docstrings:
        found.difference_update(span(docstring))
    return len(found)


def span(node: ast.expr | ast.stmt) -> range:
    """The numbers of its lines."""
    return range(node.lineno, (node.end_lineno or 0) + 1)


def words(name: str) -> tuple[str, ...]:
    """`lineItems`, `line-items` and `LineItems` are `line`, `items`."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))
