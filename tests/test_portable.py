"""The runner of simulated processors, and the variable that moves every seed."""

import json
import os
import subprocess
import sys

import pytest

from tests import portable

DRAWS = """
import json, random, sys
import numpy as np
import torch
import tests
import jorth

random.seed(3)
torch.manual_seed(3)
np.random.seed(3)
generator = torch.Generator()
print(json.dumps({
    "numpy": np.random.default_rng(3).random(),
    "a sequence": np.random.default_rng([3, 1]).random(),
    "the old NumPy": np.random.random(),
    "the library": jorth.random_point(jorth.Signature(2, 1), seed=3)[0, 0],
    "Python": random.random(),
    "torch": torch.rand(()).item(),
    "a generator of torch": torch.rand((), generator=generator.manual_seed(3)).item(),
    "a sequence of seeds": np.random.default_rng(np.random.SeedSequence(3)).random(),
    "torch's own": isinstance(torch.default_generator, torch.Generator)
    and isinstance(generator, torch.Generator),
}))
"""


def draws(base_seed):
    environment = os.environ | {
        "JORTH_TEST_SEED": str(base_seed),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    run = subprocess.run(
        [sys.executable, "-c", DRAWS],
        cwd=portable.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def test_every_source_of_randomness_is_moved():
    here, there = draws(0), draws(2)
    fixed = {"a sequence of seeds", "torch's own"}  # what has a state of its own passes through
    assert {name for name in here if here[name] == there[name]} == fixed
    assert here["torch's own"]


def test_the_parts_are_the_whole():
    parts = [portable.files_of(f"{k}/4") for k in range(1, 5)]
    assert sorted(file for part in parts for file in part) == portable.files_of("1/1")
    assert "tests/test_portable.py" in portable.files_of("1/1")
    with pytest.raises(ValueError, match="K from 1 to N, got 5/4"):
        portable.files_of("5/4")


def test_a_cell_and_its_failures(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import os\n"
        "def test_good(): assert os.environ['OPENBLAS_CORETYPE'] == 'Prescott'\n"
        "def test_bad(): assert os.environ['JORTH_TEST_SEED'] != '5'\n"
    )
    arguments = ["--rootdir", str(tmp_path), str(tmp_path / "test_it.py")]
    outcome = portable.run(portable.Cell("prescott", 5), arguments, workers=0, logs=tmp_path)
    assert (outcome.passed, outcome.skipped) == (1, 0)
    assert [name.partition("::")[2] for name in outcome.failed] == ["test_bad"]
    assert list(portable.table({portable.Cell("prescott", 5): outcome}))[1].split() == [
        "prescott",
        "1/1",
    ]
    assert (
        portable.read(tmp_path / "prescott-5.xml", 5, 1.0).failed[-1] == "pytest ended with code 5"
    )
    assert portable.read(tmp_path / "none.xml", 2, 1.0).failed == (
        "pytest ended with code 2 and no report",
    )
