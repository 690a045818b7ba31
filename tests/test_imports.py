"""Imports point one way, and the front door stays light."""

import subprocess
import sys

import pytest

import jorth
from scripts import public_names
from tests import rooms

IMPORTS = rooms.imports()


def test_imports_point_one_way():
    upwards = [
        f"{module} imports {target}"
        for module, targets in IMPORTS.items()
        for target in targets
        if level(target) >= level(module) and rooms.room_of(target) != rooms.room_of(module)
    ]
    assert not upwards


def level(module):
    """That of ``jorth/__init__.py``, which everybody may import, is below all others."""
    room = rooms.room_of(module)
    return rooms.LEVEL[room] if room else -1


def test_no_imports_in_a_circle():
    assert not rooms.cycle(IMPORTS)
    assert rooms.cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]


def test_every_room_has_its_place():
    assert {rooms.room_of(module) for module in IMPORTS} - {""} <= set(rooms.LEVEL)


def test_solvers_have_one_door():
    found = {
        module
        for module, targets in IMPORTS.items()
        if rooms.room_of(module) != "solvers"
        and any(target.startswith("jorth.solvers.") for target in targets)
    }
    assert not found


def test_the_stub_lists_the_public_names():
    """`python scripts/public_names.py` writes it."""
    assert public_names.STUB.read_text() == public_names.stub()


def loaded_after(code):
    """The modules, and the packages they are in, that ``code`` loads in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    return set(output.splitlines()[-1].split())


HEAVY = {"numba", "matplotlib", "sklearn", "pykeen", "scipy", "rich", "pymanopt", "geoopt", "pooch"}


def test_import_is_light():
    assert not loaded_after("import jorth; jorth.adapters") & (HEAVY | {"torch"})


@pytest.mark.parametrize(
    "arguments", [["--help"], ["solve", "eigen", "--help"], ["kge", "train", "--help"]]
)
def test_help_does_not_import_torch(arguments):
    code = (
        f"import jorth.cli\ntry: jorth.cli.main({arguments})\n"
        "except SystemExit as stop: assert stop.code == 0"
    )
    assert not loaded_after(code) & (HEAVY | {"torch"})


def test_plane_and_group_do_not_load_numba():
    """The GPU path must run where numba is not installed."""
    names = "jorth.solve_plane; jorth.polish; jorth.hyperbolic_qr; jorth.hsvd"
    assert not loaded_after(f"import jorth; {names}") & HEAVY


def test_torch_optimisers_load_no_solver():
    assert "jorth.solvers" not in loaded_after("import jorth.optim")


def test_training_of_graphs_needs_no_optional_package():
    """A machine that trains may have neither a terminal nor PyKEEN."""
    optional = {"rich", "matplotlib", "pykeen", "pooch", "pandas"}
    assert not loaded_after("import jorth.kge") & optional


def test_public_names_load():
    for name in jorth.__all__:
        assert getattr(jorth, name) is not None
    assert set(jorth.__all__) <= set(dir(jorth))
    with pytest.raises(AttributeError, match="module 'jorth' has no attribute 'nothing'"):
        jorth.nothing  # noqa: B018
