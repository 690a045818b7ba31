"""Who imports whom in the package, read from its source.

A room is a folder or a file directly under ``src/jorth``. `ORDER` lists the rooms from the bottom
to the top of the house; a room may import itself and the rooms in the rows before its own.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib as tomllib
else:
    pass

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "jorth"

ORDER = (
    ("terminal",),
    ("signature", "_triton", "_files", "_numba", "derivatives", "extras"),
    ("_inputs",),
    ("_matrices",),
    ("_distributed",),
    ("group",),
    ("plane",),
    ("ultrahyperbolic", "linalg"),
    ("nn", "objectives"),
    ("optim", "solvers"),
    ("stopping", "datasets", "estimators", "kge"),
    ("adapters",),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

Imports = dict[str, set[str]]
"""For each module of the package, the modules of the package that it imports."""


def modules() -> dict[str, Path]:
    """The files of the package by dotted name, packages under the name of their folder."""
    return {_dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of a dotted name; that of ``jorth`` itself is empty."""
    return module.partition(".")[2].partition(".")[0]


def imports() -> Imports:
    """What each module imports, wherever in the file; what only type checkers read is left out."""
    trees = {name: ast.parse(path.read_text()) for name, path in modules().items()}
    bound = {name: set(_names_bound(tree)) for name, tree in trees.items()}
    return {name: set(_targets(tree, bound)) - {name} for name, tree in trees.items()}


def _names_bound(tree: ast.Module) -> Iterator[str]:
    """The names that a module imports at its top: `minimize` is a function of `jorth.solvers`."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _targets(tree: ast.AST, bound: dict[str, set[str]]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module in bound:
            for alias in node.names:
                file = f"{node.module}.{alias.name}"
                is_file = file in bound and alias.name not in bound[node.module]
                yield file if is_file else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in bound)
        yield from _targets(node, bound)


def cycle(graph: Imports) -> list[str]:
    """The modules of one cycle of imports; empty where there is none."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(graph[module]):
            if found := visit(target, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in graph if (found := visit(module, []))), [])
