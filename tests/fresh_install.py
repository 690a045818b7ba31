"""What a stranger does: install the wheel in an empty folder, and copy a page line by line.

    python tests/fresh_install.py dist/jorth-0.1.0-py3-none-any.whl --constraint constraints.txt

A new environment is made in a new folder, with the extras that the page installs. What the page
shows is typed into one session of Python, one statement after the other, its shell commands in
their places. Seconds and the size of the environment are printed.

The tests do the same with every tutorial, in environments that have links to the packages of the
present one: those that the wheel and its extras ask for, and no others.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import time
import venv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
QUICKSTART = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INSTALL = re.compile(r'^ *pip install "?jorth(?:\[([\w,]+)\])?"?$', re.MULTILINE)
MEGABYTE = 1e6


def typed(page: Path = QUICKSTART) -> list[str]:
    """What a page shows, as it is typed at the prompt of Python; pip has run before."""
    found = []
    for language, block in BLOCK.findall(page.read_text()):
        if language == "python":
            for node in ast.parse(block).body:
                statement = ast.get_source_segment(block, node) or ""
                # an empty line ends what is indented; since Python 3.13 only at its end
                statement = re.sub(r"\n\n+", "\n", statement)
                found.append(f"{statement}\n" if "\n" in statement else statement)
        else:
            commands = [line for line in block.splitlines() if not line.startswith("pip install")]
            found += [f"assert not __import__('os').system({line!r})" for line in commands]
    return found


def extras_of(page: Path) -> frozenset[str]:
    """The extras in the one line of a page that installs jorth."""
    (extras,) = INSTALL.findall(page.read_text())
    return frozenset(extras.split(",")) - {""}


def link_environment(place: Path, unpacked: Path, extras: Iterable[str]) -> None:
    """Make place/env with an unpacked wheel and links to what it requires, with these extras."""
    venv.create(place / "env", with_pip=False, symlinks=True)
    site = next((place / "env" / "lib").glob("python*/site-packages"))
    program = place / "env" / "bin" / "jorth"
    program.write_text(
        f"#!{place}/env/bin/python\nfrom jorth.__main__ import main\n\nraise SystemExit(main())\n"
    )
    program.chmod(0o755)
    done = set()

    def link(own: Distribution, folder: Path, wanted: Iterable[str]) -> None:
        for name in {path.parts[0] for path in own.files or ()} - {".."}:
            if not (site / name).exists():
                (site / name).symlink_to((folder / name).resolve())
        for text in own.requires or ():
            needed = Requirement(text)
            asked = ("", *wanted)
            if needed.marker and not any(needed.marker.evaluate({"extra": one}) for one in asked):
                continue
            if (needed.name, *sorted(needed.extras)) not in done:
                done.add((needed.name, *sorted(needed.extras)))
                found = distribution(needed.name)
                link(found, Path(str(found.locate_file(""))), needed.extras)

    (own,) = unpacked.glob("*.dist-info")
    wheel = Distribution.at(own)
    assert set(extras) <= set(wheel.metadata.get_all("Provides-Extra") or ()), extras
    link(wheel, unpacked, extras)


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
