"""Without its library an adapter says in one line what to install."""

import subprocess
import sys

import pytest

EXTRAS = {"pymanopt": "adapters", "geoopt": "adapters", "pykeen": "kge"}
SCRIPT = """
import importlib, sys, traceback
for library in sys.argv[1:]:
    sys.modules[library] = None
    try:
        importlib.import_module(f"jorth.adapters.{library}")
    except ImportError:
        traceback.print_exc()
    print("--", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def shown():
    """What Python prints for each of them where it is not installed."""
    command = [sys.executable, "-c", SCRIPT, *EXTRAS]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(EXTRAS, run.stderr.split("--\n"), strict=False))


@pytest.mark.parametrize("library", EXTRAS)
def test_the_error_names_the_extra(library, shown):
    remedy = f'pip install "jorth[{EXTRAS[library]}]"'
    message = f"ImportError: jorth.adapters.{library} needs {library}; install it with: {remedy}"
    assert shown[library].splitlines()[-1] == message
    assert "During handling" not in shown[library]  # the failed import behind it is not shown
