"""The rules of the house, checked in the source: small pieces, each class name once, generic floors without nouns.

The `KNOWN` lists say where a rule does not hold yet. They only shrink: an exception that no longer occurs fails
its test until it leaves the list.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from tests.laws.source import FUNCTIONS, MODULES, PATHS, Module, imported, lines_of_code, span, words
from tradepost import catalogue

# Lower this bound when the source gets smaller.
LINES_OF_CODE = 17_300

LINES_OF_A_MODULE = 400
KNOWN_LONG_MODULES: set[str] = set()
LINES_OF_A_FUNCTION = 60
KNOWN_LONG_FUNCTIONS: set[str] = set()
KNOWN_SHARED_CLASS_NAMES: set[str] = set()

# Floors that may not name a record, except in the modules that are named after one.
GENERIC = (
    *("rest", "graphql", "http", "transfer", "perform.py", "resource.py"),
    *("domain/input.py", "domain/record.py", "storage/record_statements.py", "storage/tables.py"),
)
NAMED_AFTER_RECORDS = {
    *("graphql/products.py", "graphql/order_status.py", "graphql/mutations.py"),
    *("transfer/addresses.py", "transfer/orders.py", "transfer/order_lookups.py"),
}
# Outside its functions, this module is a list of tables.
LISTS_TABLES = "storage/tables.py"
KNOWN_NOUNS = {
    # The fields of the schema that have rules of their own.
    "graphql/complexity.py": {"product"},
    "graphql/schema.py": {"order", "product", "user"},
    "graphql/surface.py": {"order"},
    # The module of that name authenticates.
    "http/access_control.py": {"api_key"},
    # Words with another sense, and what the document shows as an example.
    "rest/openapi/document.py": {"address", "order"},
    "rest/openapi/examples.py": {"event", "order", "webhook_endpoint"},
    "rest/openapi/links.py": {"address"},
    "rest/openapi/operations.py": {"address", "api_key"},
    "rest/openapi/schemas.py": {"event", "webhook_delivery"},
    "rest/openapi/webhooks.py": {"event", "webhook_endpoint"},
    # The kinds of entities that files have.
    "transfer/csv_table.py": {"line_item"},
    "transfer/exports.py": {"address", "line_item", "order", "product", "user"},
    "transfer/owners.py": {"user"},
    "transfer/row.py": {"address", "line_item", "order", "product", "user"},
    "transfer/simple.py": {"product", "user"},
}

# Floors that may not speak of the interfaces above them.
BELOW_THE_INTERFACES = (
    *("domain", "storage", "actions", "access", "events"),
    *("perform.py", "resource.py", "catalogue.py", "problems.py", "clock.py"),
)
WORDS_OF_INTERFACES = {
    "http",
    "header",
    "headers",
    "etag",
    "cookie",
    "asgi",
    "uvicorn",
    "websocket",
    "graphql",
}
KNOWN_WORDS_OF_INTERFACES = {
    "access/idempotency.py": {"header"},
    "clock.py": {"http"},
}

RECORDS = [resource.record for resource in catalogue.RESOURCES]
CLASSES = {record.__name__: record.kind for record in RECORDS}
NOUNS = {words(name): record.kind for record in RECORDS for name in (record.kind, record.plural)}


def nouns(name: str) -> set[str]:
    """The kinds of the records that a name has in it: `orderId` has `order`."""
    found = words(name)
    parts = (found[start:end] for end in range(len(found) + 1) for start in range(end))
    return {NOUNS[part] for part in parts if part in NOUNS}


def kinds_named(module: Module) -> set[str]:
    """Records that are named by a string (prose and constants aside), an imported class or its module."""
    found: set[str] = set()
    for node in judged(module):
        if isinstance(node, ast.ImportFrom):
            found |= {CLASSES[each.name] for each in node.names if each.name in CLASSES}
            found |= set().union(*(nouns(Path(path).stem) for path in imported(node)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in module.docstrings:
            is_name = not re.search(r"\s", node.value) and not node.value.isupper()
            found |= nouns(node.value) if is_name else set()
    return found


def judged(module: Module) -> Iterator[ast.AST]:
    if module.path != LISTS_TABLES:
        yield from module.nodes
        return
    for node in module.tree.body:
        if isinstance(node, FUNCTIONS):
            yield from ast.walk(node)


def test_the_source_does_not_grow() -> None:
    """The source has no more lines of code than the bound; blank lines, comments and docstrings do not count."""
    assert sum(map(lines_of_code, MODULES)) <= LINES_OF_CODE


def test_modules_are_short() -> None:
    """No module has more than 400 lines of any kind."""
    long = {module.path for module in MODULES if len(module.text.splitlines()) > LINES_OF_A_MODULE}
    assert long == KNOWN_LONG_MODULES


def test_functions_are_short() -> None:
    """No function has more than 60 lines of any kind."""
    functions = [(module.path, function) for module in MODULES for function in module.functions]
    long = {f"{path} {each.name}" for path, each in functions if len(span(each)) > LINES_OF_A_FUNCTION}
    assert long == KNOWN_LONG_FUNCTIONS


def test_no_two_classes_share_a_name() -> None:
    """The name of a class leads to one class."""
    classes = (node.name for module in MODULES for node in module.nodes if isinstance(node, ast.ClassDef))
    shared = {name for name, times in Counter(classes).items() if times > 1}
    assert shared == KNOWN_SHARED_CLASS_NAMES


def test_generic_floors_name_no_record() -> None:
    """Code that is written for every record names none of them, in a string or an import."""
    generic = [module for module in MODULES if module.is_below(*GENERIC)]
    found = {module.path: kinds_named(module) for module in generic if module.path not in NAMED_AFTER_RECORDS}
    assert {path: kinds for path, kinds in found.items() if kinds} == KNOWN_NOUNS


def test_floors_below_the_interfaces_do_not_speak_of_them() -> None:
    """No identifier below REST and GraphQL has a word of HTTP, GraphQL or the server in it."""
    below = [module for module in MODULES if module.is_below(*BELOW_THE_INTERFACES)]
    found = {module.path: {word for name in module.identifiers for word in words(name)} for module in below}
    spoken = {path: said & WORDS_OF_INTERFACES for path, said in found.items()}
    assert {path: said for path, said in spoken.items() if said} == KNOWN_WORDS_OF_INTERFACES


def test_imports_have_no_cycles() -> None:
    """No module imports itself through others, even inside a function."""
    graph = {module.path: module.imports for module in MODULES}
    assert set(TopologicalSorter(graph).static_order()) == PATHS


def test_rules_name_modules_that_exist() -> None:
    """A module that moves takes the rules about it along."""
    assert NAMED_AFTER_RECORDS | {LISTS_TABLES} <= PATHS
    for place in (*GENERIC, *BELOW_THE_INTERFACES):
        assert any(module.is_below(place) for module in MODULES), place
