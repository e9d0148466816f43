"""The layers of the package: who imports whom, and that names of classes are unique."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import aniso

PACKAGE = Path(aniso.__file__).parent
FRONT_ENDS = ("aniso.cli", "aniso.explorer", "aniso.napari")
# Each engine has a class of this name, which is how it is found.
SHARED_NAMES = {"Evolution"}


def _modules():
    """Names and syntax trees of all modules."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), ast.parse(path.read_text("utf-8"))


def _imports(name, tree, known):
    """Modules of the package that a module imports anywhere, except for types only."""
    ignored = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.dump(test.test)
        for node in ast.walk(test)
    }
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((one if one in known else node.module) for one in found)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _graph():
    trees = dict(_modules())
    return {
        name: {one for one in _imports(name, tree, trees) if one in trees and one != name}
        for name, tree in trees.items()
    }


def _cycles(graph):
    """Modules from which an import leads back to themselves."""
    reached = {name: set(targets) for name, targets in graph.items()}
    for middle in graph:
        for name in graph:
            if middle in reached[name]:
                reached[name] |= reached[middle]
    return sorted(name for name in graph if name in reached[name])


GRAPH = _graph()


def test_imports_have_no_cycles():
    assert _cycles(GRAPH) == []


def test_cycles_would_be_found():
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]
    assert any("aniso.engines" in targets for targets in GRAPH.values())


def _is_in(module, packages):
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _imports_between(sources, targets):
    return [
        f"{name} imports {one}"
        for name, found in GRAPH.items()
        if sources(name)
        for one in sorted(found)
        if _is_in(one, targets)
    ]


def test_the_library_imports_no_front_end():
    outside = (*FRONT_ENDS, "aniso.__main__")
    assert _imports_between(lambda name: not _is_in(name, outside), FRONT_ENDS) == []


@pytest.mark.parametrize("target", ["aniso.cli", "aniso.engines"])
def test_the_explorer_imports_neither_the_command_line_nor_engines(target):
    assert _imports_between(lambda name: _is_in(name, ("aniso.explorer",)), (target,)) == []


def test_the_plugin_uses_what_the_explorer_chooses_and_computes_and_not_its_page():
    parts = (
        "aniso.cli",
        "aniso.engines",
        "aniso.explorer.page",
        "aniso.explorer.server",
        "aniso.explorer.showing",
    )
    assert _imports_between(lambda name: _is_in(name, ("aniso.napari",)), parts) == []


def test_names_of_classes_are_unique():
    homes = defaultdict(list)
    for name, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert len(homes) > 100
    shared = {name: places for name, places in homes.items() if len(places) > 1 and name not in SHARED_NAMES}
    assert shared == {}


def test_no_file_is_longer_than_500_lines():
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 500} == {}
