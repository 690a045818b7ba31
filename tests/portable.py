"""The test suite as other machines would run it: simulated processors times base seeds.

Rounding depends on the processor: OpenBLAS, torch and MKL choose their kernels by what it can do,
and numba compiles for it. Each of them has an environment variable for the choice, so that one
machine can run what others would. The number of threads changes the order of sums as well. The base
seed shifts every seed of the tests (``tests/seeds.py``). ``make test-portable`` calls this.

    python tests/portable.py                                   # every processor with every seed
    python tests/portable.py --processor zen --seed 2          # one cell of the table
    python tests/portable.py --rotate 17                       # a cell and a quarter, by number
    python tests/portable.py --processor zen -- tests/plane    # what follows -- goes to pytest

It needs only the standard library.
"""

import argparse
import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Processor:
    """Settings of the libraries, and their threads; `needs` is a flag of /proc/cpuinfo."""

    torch: str
    openblas: str
    mkl: str
    numba: str = ""  # empty: the machine's own
    threads: int = 1
    needs: str = ""

    def environment(self):
        """The variables; ``tests/conftest.py`` sets the number of torch's threads."""
        variables = {
            "ATEN_CPU_CAPABILITY": self.torch,
            "OPENBLAS_CORETYPE": self.openblas,
            "MKL_CBWR": self.mkl,
            "OMP_NUM_THREADS": str(self.threads),
            "OPENBLAS_NUM_THREADS": str(self.threads),
            "JORTH_TEST_THREADS": str(self.threads),
        }
        return variables | ({"NUMBA_CPU_NAME": self.numba} if self.numba else {})


PROCESSORS = {
    "prescott": Processor("default", "Prescott", "COMPATIBLE", "generic"),
    "haswell": Processor("avx2", "Haswell", "AVX2", threads=2, needs="avx2"),
    "zen": Processor("avx2", "Zen", "COMPATIBLE", "generic", needs="avx2"),
    "skylakex": Processor("avx512", "SkylakeX", "AVX2", threads=2, needs="avx512f"),
}


def can_run(name):
    """Whether this machine has the instructions. Where Linux does not tell, it is tried."""
    flags, needs = Path("/proc/cpuinfo"), PROCESSORS[name].needs
    return not needs or not flags.exists() or needs in flags.read_text().split()


def quarter(number):
    """Every fourth test file from one on."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files[number::4]]


def run(processor, seed, arguments, workers=2):
    """The exit code of the suite on a simulated processor with a base seed."""
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider"]
    command += ["--numprocesses", str(workers), *arguments]
    own = PROCESSORS[processor].environment() | {"JORTH_TEST_SEED": str(seed)}
    print(f"-- processor {processor}, seed {seed}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=os.environ | own, check=False).returncode


def main():
    """Run what is asked for; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processor", choices=PROCESSORS, help="all by default")
    parser.add_argument("--seed", type=int, help="base seed; 0 to 3 by default")
    parser.add_argument("--rotate", type=int, help="one cell and a quarter of the files, by number")
    parser.add_argument("--workers", type=int, default=2, help="processes of each cell")
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT", help="after --: for pytest")
    options = parser.parse_args()
    names = [name for name in PROCESSORS if options.processor in (None, name) and can_run(name)]
    seeds = SEEDS if options.seed is None else (options.seed,)
    cells, arguments = list(itertools.product(names, seeds)), options.pytest
    if options.rotate is not None:  # successive numbers cover all cells and quarters
        turns = list(itertools.product(range(4), cells))
        number, cell = turns[options.rotate % len(turns)]
        cells, arguments = [cell], quarter(number)
    codes = [run(*cell, arguments, options.workers) for cell in cells]
    return 1 if any(codes) or not codes else 0


if __name__ == "__main__":
    sys.exit(main())
