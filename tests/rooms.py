"""The rooms of the package, read from its source: the map in CONTRIBUTING, the stub of its names.

    python -m tests.rooms    # writes both; tests/test_imports.py fails where they are out of date

A room is a folder or a file directly under ``src/jorth``. `ORDER` lists the rooms from the bottom
to the top of the house; a room may import itself and the rooms in the rows before its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "jorth"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
STUB = PACKAGE / "__init__.pyi"
WIDTH = 100

ORDER = (
    ("waiting",),
    ("signature", "clock", "compiling", "derivatives", "extras", "terminal", "messages"),
    ("inputs",),
    ("suggestions",),
    ("arrays", "tables"),
    ("ranks", "sharding"),
    ("storage",),
    ("group",),
    ("plane",),
    ("ultrahyperbolic", "decompositions", "kernels"),
    ("nn", "objectives"),
    ("optim", "solvers"),
    ("stopping", "datasets", "estimators", "kge"),
    ("adapters",),
    ("bench",),
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


def room_map() -> str:
    """Every module with the first sentence of its docstring, one line each, folder by folder."""
    lines = ["src/jorth/"]
    for name, path in sorted(modules().items(), key=lambda item: _place(item[1])):
        depth = len(path.relative_to(PACKAGE).parts)
        if path.name == "__init__.py":
            if name == "jorth":
                continue
            depth -= 1
            label = f"{path.parent.name}/"
        else:
            label = path.name
        label = "  " * depth + label
        lines.append(_shortened(f"{label:<26} {_summary(path)}"))
    return "\n".join(lines)


def _place(path: Path) -> tuple[object, ...]:
    """Files before folders at the top, rooms in their order, everything else by name."""
    parts = path.relative_to(PACKAGE).parts
    room = parts[0].removesuffix(".py")
    inner = [(len(parts) > depth + 2, part) for depth, part in enumerate(parts[1:])]
    if parts[-1] == "__init__.py":
        inner = inner[:-1]
    return (len(parts) > 1, LEVEL.get(room, -1), room, inner)


def _summary(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"\.(?:\s|$)", first)[0]


def _shortened(line: str) -> str:
    if len(line) <= WIDTH:
        return line.rstrip()
    return line[: WIDTH - 3].rpartition(" ")[0] + " ..."


def import_table(graph: Imports) -> str:
    """Which room imports which: rooms down and across in their order, so that marks stay left."""
    rooms = [room for row in ORDER for room in row if any(room_of(name) == room for name in graph)]
    rows = [" ".join([" " * 19, *(f"{number:>2}" for number in range(1, len(rooms) + 1))])]
    for number, room in enumerate(rooms, 1):
        used = {
            room_of(target)
            for name, targets in graph.items()
            if room_of(name) == room
            for target in targets
        }
        marks = [" x" if other in used and other != room else " ." for other in rooms[: number - 1]]
        rows.append(" ".join([f"{number:>2} {room:<16}", *marks]).rstrip())
    return "\n".join(rows)


def contributing() -> str:
    """CONTRIBUTING with its two generated parts, each between its markers, as they should be."""
    text = CONTRIBUTING.read_text()
    for name, content in (("map", room_map()), ("imports", import_table(imports()))):
        begin, end = (f"<!-- {edge} of the generated {name} -->\n" for edge in ("begin", "end"))
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        text = f"{before}{begin}```text\n{content}\n```\n{end}{after}"
    return text


def stub() -> str:
    """The public names for type checkers and editors, from the table in ``jorth/__init__.py``."""
    import jorth

    homes: dict[str, str] = vars(jorth)["_HOMES"]
    lines = ["# Generated from the table in __init__.py by `python -m tests.rooms`.", ""]
    for name in sorted(homes, key=lambda name: (homes[name], name)):
        lines.append(f"from {homes[name]} import {name} as {name}")
    return "\n".join([*lines, "", "__version__: str", ""])


if __name__ == "__main__":
    CONTRIBUTING.write_text(contributing())
    STUB.write_text(stub())
