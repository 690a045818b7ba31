"""Without its library an adapter says in one line what to install."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("library", "extra"), [("pymanopt", "adapters"), ("geoopt", "adapters"), ("pykeen", "kge")]
)
def test_the_error_names_the_extra(library, extra):
    script = f"import sys\nsys.modules[{library!r}] = None\nimport jorth.adapters.{library}"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    message = f"ImportError: jorth.adapters.{library} needs {library}: pip install 'jorth[{extra}]'"
    assert run.stderr.splitlines()[-1] == message
    assert "During handling" not in run.stderr  # the failed import behind it is not shown
