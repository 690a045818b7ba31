"""Break the code at random places and see whether a test goes red.

    python scripts/mutations.py --count 40 --seed 0

Each mutation flips one sign, turns one comparison round or drops one factor in a room of numerical
code of a copy and runs the tests of that room. What survives is either a gap of the tests, or a
change that no result depends on.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "jorth"
ROOMS = ("group", "plane", "linalg", "objectives", "solvers", "optim", "ultrahyperbolic", "nn")
SWAPPED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Lt: ("<", ">"), ast.Gt: (">", "<")}


class Mutation(NamedTuple):
    """Bytes of a file, relative to the root, and what stands there instead."""

    path: Path
    line: int
    start: int
    end: int
    text: bytes


def mutations(file: Path) -> list[Mutation]:
    """Return all mutations of a file."""
    source, path = file.read_bytes(), file.relative_to(ROOT)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        return begin, starts[node.end_lineno - 1] + node.end_col_offset

    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp):
            left, operator, right = node.left, node.op, node.right
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, operator, right = node.left, node.ops[0], node.comparators[0]
        else:
            continue
        if isinstance(operator, ast.Mult):  # a factor is dropped
            begin, end = span(node)
            kept = source[begin : span(left)[1]]
            balanced = kept.count(b"(") == kept.count(b")")
            if balanced and not isinstance(left, ast.Constant):
                found.append(Mutation(path, node.lineno, begin, end, kept))
        elif type(operator) in SWAPPED:
            old, new = SWAPPED[type(operator)]
            begin, end = span(left)[1], span(right)[0]
            between = source[begin:end]
            if between.count(old.encode()) == 1:
                text = between.replace(old.encode(), new.encode())
                found.append(Mutation(path, node.lineno, begin, end, text))
    return found


def copy_of_the_project(folder: Path) -> Path:
    """Return the root of a copy of what the tests need."""
    for part in ("src", "tests", "benchmarks", "docs", "examples", "scripts"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part)
    for file in (*ROOT.glob("*.toml"), *ROOT.glob("*.md"), *ROOT.glob("*.yml")):
        shutil.copy(file, folder)
    return folder


def is_killed(mutation: Mutation, copies: Queue[Path], seconds: float) -> bool:
    """Return whether the tests of the room fail, or never end, with the mutation in a free copy."""
    root = copies.get()
    path, room = root / mutation.path, mutation.path.parts[2]
    source = path.read_bytes()
    path.write_bytes(source[: mutation.start] + mutation.text + source[mutation.end :])
    environment = os.environ | {
        "PYTHONPATH": f"{root / 'src'}:{root}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    cache = tempfile.TemporaryDirectory()
    if "numba" in path.name:  # compiled callers in other files are not compiled again
        environment["NUMBA_CACHE_DIR"] = cache.name
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, f"tests/{room}"],
            cwd=root,
            env=environment,
            capture_output=True,
            timeout=seconds,
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_bytes(source)
        cache.cleanup()
        copies.put(root)


def main() -> None:
    """Print a line per mutation, and how many were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0, help="per mutation")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    paths = [
        path
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if "triton" not in path.name  # its tests need a GPU
    ]
    every = [mutation for path in paths for mutation in mutations(path)]
    drawn = random.Random(given.seed).sample(every, given.count)
    killed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.workers) as pool:
        copies: Queue[Path] = Queue()
        for worker in range(given.workers):
            copies.put(copy_of_the_project(Path(folder, str(worker))))
        outcomes = pool.map(partial(is_killed, copies=copies, seconds=given.seconds), drawn)
        for mutation, dead in zip(drawn, outcomes, strict=True):
            killed += dead
            change = mutation.text.decode().strip()
            mark = "killed  " if dead else "SURVIVED"
            print(f"{mark} {mutation.path}:{mutation.line}  {change}", flush=True)
    print(f"{killed} of {given.count} killed")


if __name__ == "__main__":
    main()
