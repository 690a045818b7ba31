"""The test suite as other machines would run it: simulated processors times base seeds.

Rounding depends on the processor: OpenBLAS, torch and MKL choose their kernels by what it can do,
and numba compiles for it. Each of them has an environment variable for the choice, so that one
machine can run what others would. The number of threads changes the order of sums as well. The base
seed shifts every seed of the tests (``tests/seeds.py``). ``make test-portable`` calls this.

    python tests/portable.py                                   # every processor with every seed
    python tests/portable.py --jobs 8 --workers 2              # eight at a time, two processes each
    python tests/portable.py --processor zen --seed 2          # one cell of the table
    python tests/portable.py --seed 7 --part 2/4               # the second quarter of the files
    python tests/portable.py --rotate 17                       # a cell and a quarter, by number
    python tests/portable.py --processor zen -- tests/plane    # what follows -- goes to pytest

It needs only the standard library; the folder ``--logs`` receives logs and JUnit files.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

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


@dataclass(frozen=True)
class Cell:
    """One run of the suite: a simulated processor and a base seed."""

    processor: str
    seed: int

    def __str__(self):
        return f"{self.processor}-{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """How a run of pytest ended; `failed` names tests, or says that there was no complete run."""

    passed: int
    skipped: int
    failed: tuple[str, ...]
    seconds: float


def can_run(processor):
    """Whether this machine has the instructions. Where Linux does not tell, it is tried."""
    flags = Path("/proc/cpuinfo")
    return not processor.needs or not flags.exists() or processor.needs in flags.read_text().split()


def files_of(part):
    """Every N-th test file from the K-th on, for part "K/N"."""
    number, parts = (int(text) for text in part.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(f"--part must be K/N with K from 1 to N, got {part}")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files[number - 1 :: parts]]


def run(cell, arguments, workers, logs):
    """The suite on one cell."""
    report, log = (logs / f"{cell}.{ending}" for ending in ("xml", "log"))
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--quiet",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
    ]
    command += ["--numprocesses", str(workers), *arguments]
    environment = (
        os.environ | PROCESSORS[cell.processor].environment() | {"JORTH_TEST_SEED": str(cell.seed)}
    )
    began = time.monotonic()
    with log.open("w") as output:
        code = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, check=False
        ).returncode
    return read(report, code, time.monotonic() - began)


def read(report, code, seconds):
    """The outcome in pytest's report. Code 0 is success, 1 failed tests; no tests is a failure."""
    if not report.exists():
        return Outcome(0, 0, (f"pytest ended with code {code} and no report",), seconds)
    cases = list(ElementTree.parse(report).iter("testcase"))
    skipped = sum(case.find("skipped") is not None for case in cases)
    bad = [
        case for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    failed = sorted({f"{case.get('classname')}::{case.get('name')}" for case in bad})
    if code not in (0, 1) or (code == 1 and not failed):
        failed.append(f"pytest ended with code {code}")
    return Outcome(len(cases) - skipped - len(bad), skipped, tuple(failed), seconds)


def table(outcomes):
    """Processors down, seeds across: passed/failed."""
    processors = list(dict.fromkeys(cell.processor for cell in outcomes))
    seeds = sorted({cell.seed for cell in outcomes})
    yield f"{'passed/failed':14}" + "".join(f"{f'seed {seed}':>14}" for seed in seeds)
    for processor in processors:
        found = [outcomes.get(Cell(processor, seed)) for seed in seeds]
        yield f"{processor:14}" + "".join(
            f"{f'{o.passed}/{len(o.failed)}' if o else '-':>14}" for o in found
        )


def cells_of(names, seeds):
    """The cells of the table, without those that this machine cannot run, which are named."""
    for name in names:
        if can_run(PROCESSORS[name]):
            yield from (Cell(name, seed) for seed in seeds)
        else:
            print(f"{name} is left out: this machine has no {PROCESSORS[name].needs}")


def rotated(number):
    """The cell and the quarter of the files for a number; successive numbers cover them all."""
    quarters = [f"{k}/4" for k in range(1, 5)]
    turns = list(itertools.product(quarters, cells_of(PROCESSORS, SEEDS)))
    part, cell = turns[number % len(turns)]
    return cell, part


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--processor", action="append", choices=PROCESSORS, help="again for several; all by default"
    )
    parser.add_argument(
        "--seed", action="append", type=int, help="base seed, again for several; 0 to 3 by default"
    )
    parser.add_argument(
        "--part", default="1/1", metavar="K/N", help="every N-th test file from the K-th on"
    )
    parser.add_argument(
        "--rotate",
        type=int,
        metavar="NUMBER",
        help="one cell and a quarter of the files, by a number",
    )
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--workers", type=int, default=2, help="processes of each cell")
    parser.add_argument("--logs", type=Path, default=ROOT / ".portable", help="folder of the logs")
    parser.add_argument(
        "pytest", nargs="*", metavar="ARGUMENT", help="after --: for pytest, instead of a part"
    )
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run what is asked for; the exit code is 1 if anything failed."""
    options = parse(arguments)
    if options.rotate is None:
        cells = list(cells_of(options.processor or PROCESSORS, options.seed or SEEDS))
    else:
        cell, options.part = rotated(options.rotate)
        cells = [cell]
        print(
            f"tests/portable.py --processor {cell.processor} --seed {cell.seed} "
            f"--part {options.part}",
            flush=True,
        )
    arguments = options.pytest or files_of(options.part)
    options.logs.mkdir(parents=True, exist_ok=True)
    outcomes = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda cell: run(cell, arguments, options.workers, options.logs), cells)
        for cell, outcome in zip(cells, runs, strict=True):
            outcomes[cell] = outcome
            counts = (
                f"{outcome.passed} passed, {outcome.skipped} skipped, {len(outcome.failed)} failed"
            )
            print(
                f"{cell}: {counts} in {outcome.seconds:.0f} s",
                *outcome.failed,
                sep="\n    ",
                flush=True,
            )
    print(*table(outcomes), sep="\n")
    return 1 if any(outcome.failed for outcome in outcomes.values()) or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
