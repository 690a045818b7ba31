"""The runner of simulated processors, and the variable that moves every seed."""

import json
import os
import subprocess
import sys

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


def test_the_quarters_are_the_whole():
    files = [file for number in range(4) for file in portable.quarter(number)]
    assert len(set(files)) == len(files) == len(list((portable.ROOT / "tests").rglob("test_*.py")))


def test_a_cell_and_its_failures(tmp_path):
    path = tmp_path / "test_it.py"
    for processor, code in (("'Prescott'", 0), ("'Zen'", 1)):
        path.write_text(
            "import os\n"
            f"def test_it(): assert os.environ['OPENBLAS_CORETYPE'] == {processor}\n"
            "def test_seed(): assert os.environ['JORTH_TEST_SEED'] == '5'\n"
        )
        arguments = ["--rootdir", str(tmp_path), str(path)]
        assert portable.run("prescott", 5, arguments, workers=0) == code
