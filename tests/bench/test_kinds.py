"""A kind of benchmark is loaded only when one of its cells or rows is met."""

import subprocess
import sys

from jorth.bench.kinds import PACKAGES

CODE = """
import sys
from jorth.cli import main
for arguments in {calls}:
    main(arguments, standalone_mode=False)
print("loaded", *sorted(name for name in sys.modules if name.startswith("jorth.")))
"""


def loaded_by(*calls):
    output = subprocess.run(
        [sys.executable, "-c", CODE.format(calls=[list(map(str, call)) for call in calls])],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return output.splitlines()[-1].split()[1:]


def kinds_in(modules):
    return {kind for kind in PACKAGES.values() if f"jorth.bench.{kind}.runner" in modules}


def test_hevp_and_its_page_load_neither_graphs_nor_speed(tmp_path):
    run = ("bench", "hevp", "--data", "randn", "--size", "4x4", "--solver", "umcm", "-o", tmp_path)
    modules = loaded_by((*run, "--max-evaluations", 1), ("report", tmp_path))
    assert kinds_in(modules) == {"matrices"}
    unwanted = ("jorth.bench.graphs", "jorth.bench.speed", "jorth.kge")
    assert not [name for name in modules if name.startswith(unwanted)]
    assert (tmp_path / "runs.jsonl").exists()
