"""What a stranger does: install the wheel in an empty folder, and copy the quickstart line by line.

    python tests/fresh_install.py dist/jorth-0.1.0-py3-none-any.whl --constraint constraints.txt

A new environment is made in a new folder. What docs/quickstart.md shows is typed into one session
of Python, one statement after the other, its shell commands in their places. The seconds of every
part and the size of the environment are printed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
QUICKSTART = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MEGABYTE = 1e6


def typed(page: Path = QUICKSTART) -> list[str]:
    """What a page shows, as it is typed at the prompt of Python; pip has run before."""
    found = []
    for language, block in BLOCK.findall(page.read_text()):
        if language == "python":
            for node in ast.parse(block).body:
                statement = ast.get_source_segment(block, node) or ""
                # an empty line ends what is indented
                found.append(f"{statement}\n" if "\n" in statement else statement)
        else:
            commands = [line for line in block.splitlines() if not line.startswith("pip install")]
            found += [f"assert not __import__('os').system({line!r})" for line in commands]
    return found


def try_package(package: Path, constraint: Path | None = None, extra: str = "") -> None:
    """Install a wheel or an sdist into an empty environment and use it; raises where it fails."""
    with TemporaryDirectory(prefix="jorth-fresh-") as folder:
        place = Path(folder)
        python = place / "env" / "bin" / "python"
        with timed("a new environment"):
            venv.create(place / "env", with_pip=True)
        wanted = f"{package.resolve()}[{extra}]" if extra else str(package.resolve())
        constrained = ["--constraint", str(constraint.resolve())] if constraint else []
        with timed(f"pip install {package.name}"):
            call(place, [python, "-m", "pip", "install", "--quiet", *constrained, wanted])
        with timed("the quickstart, line by line"):
            call(place, [python, "-i", "-q"], lines="\n".join(typed()))
        packages = place / "env" / "lib"
        own = next(packages.glob("python*/site-packages/jorth"))
        print(f"{size(own):8.1f} MB  jorth, compiled code included")
        print(f"{size(packages):8.1f} MB  the environment")


def call(place: Path, command: list[object], lines: str | None = None) -> None:
    """Run a command in a folder without the variables that could lead it to other packages."""
    own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR"}
    clean = {name: value for name, value in os.environ.items() if name not in own}
    clean["PATH"] = f"{place / 'env' / 'bin'}{os.pathsep}{clean['PATH']}"
    run = subprocess.run(
        [str(part) for part in command],
        cwd=place,
        env=clean,
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode or "Traceback" in run.stderr or "Error:" in run.stderr:
        raise RuntimeError(f"{command[0]} failed:\n{run.stdout}\n{run.stderr}")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how many seconds something took: by the clock, and of the processor."""
    began, work = time.perf_counter(), processor_seconds()
    yield
    seconds = time.perf_counter() - began
    print(f"{seconds:8.1f} s, {processor_seconds() - work:6.1f} s of a core: {what}", flush=True)


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def size(folder: Path) -> float:
    """The size of the files in a folder in megabytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MEGABYTE


def main() -> None:
    parser = argparse.ArgumentParser(description="Try a package in an empty environment.")
    parser.add_argument("package", type=Path, nargs="+", help="A wheel or an sdist.")
    parser.add_argument("--constraint", type=Path, help="Versions for pip.")
    parser.add_argument("--extra", default="", help="Extras of jorth, with commas.")
    arguments = parser.parse_args()
    with timed("in all"):
        for package in arguments.package:
            try_package(package, arguments.constraint, arguments.extra)


if __name__ == "__main__":
    main()
