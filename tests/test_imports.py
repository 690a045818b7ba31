"""Imports point one way, and the front door stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jorth

PACKAGE = Path(jorth.__file__).parent

# A room may import rooms of a lower level, and itself.
LEVELS = {
    "signature": 0,
    "clock": 0,
    "compiling": 0,
    "terminal": 0,
    "arrays": 1,
    "ranks": 2,
    "storage": 3,
    "group": 3,
    "plane": 4,
    "ultrahyperbolic": 4,
    "decompositions": 5,
    "kernels": 5,
    "objectives": 5,
    "nn": 6,
    "optim": 7,
    "solvers": 7,
    "stopping": 8,
    "datasets": 8,
    "estimators": 8,
    "kge": 8,
    "adapters": 9,
    "demo": 9,
    "bench": 9,
    "file_problems": 9,
    "cli": 10,
}
MODULES = sorted(
    path.relative_to(PACKAGE)
    for path in PACKAGE.rglob("*.py")
    if path.name != "__init__.py" or path.parent != PACKAGE
)


def room_of(path):
    return path.parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse((PACKAGE / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("jorth"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.split(".")[1] for alias in node.names if alias.name.startswith("jorth.")
            )


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_one_way(path):
    room = room_of(path)
    for other in imported_rooms(path):
        if other in LEVELS and other != room:
            assert LEVELS[other] < LEVELS[room], f"{room} must not import {other}"


def test_every_room_has_a_level():
    assert {room_of(path) for path in MODULES} == set(LEVELS)


def loaded_after(code):
    """The top-level packages that running ``code`` in a fresh interpreter has loaded."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    return set(output.splitlines()[-1].split())


HEAVY = {"numba", "matplotlib", "sklearn", "pykeen", "scipy", "rich", "pymanopt", "geoopt", "pooch"}


def test_import_is_light():
    assert not loaded_after("import jorth; jorth.adapters") & (HEAVY | {"torch"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["data", "--help"],
        ["data", "fetch", "--help"],
        ["solve", "eigen", "--help"],
        ["kge", "train", "--help"],
    ],
)
def test_help_does_not_import_torch(arguments):
    code = f"import jorth.cli\ntry: jorth.cli.main({arguments})\nexcept SystemExit as stop: assert stop.code == 0"
    assert not loaded_after(code) & (HEAVY | {"torch"})


def test_plane_and_group_do_not_load_numba():
    """The GPU path must run where numba is not installed."""
    assert (
        not loaded_after(
            "import jorth; jorth.solve_plane; jorth.polish; jorth.hyperbolic_qr; jorth.hsvd"
        )
        & HEAVY
    )


def test_training_of_graphs_needs_no_optional_package():
    """A machine that trains may have neither a terminal nor PyKEEN."""
    assert not loaded_after("import jorth.kge") & {
        "rich",
        "matplotlib",
        "pykeen",
        "pooch",
        "pandas",
    }


def test_public_names_load():
    for name in jorth.__all__:
        assert getattr(jorth, name) is not None
    assert set(jorth.__all__) <= set(dir(jorth))
    with pytest.raises(AttributeError, match="module 'jorth' has no attribute 'nothing'"):
        jorth.nothing  # noqa: B018
