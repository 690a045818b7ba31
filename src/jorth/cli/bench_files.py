"""The user's own files for `jorth bench hevp`, `probe` and `procrustes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jorth.bench.core.cells import plus_signs
from jorth.bench.matrices.paper import Size
from jorth.cli.errors import one_line_errors
from jorth.cli.matrix_files import pop_layout, text_options
from jorth.cli.notes import tell
from jorth.storage.matrices import READABLE, ending_of

if TYPE_CHECKING:
    from jorth.bench.matrices.cells import MatrixCell
    from jorth.bench.matrices.own import OwnData

MOST = {"hevp": (10_000, 200), "probe": (2_000, 100), "procrustes": (10_000, 200)}
"""The most rows and columns that are taken of a file unless --size is given."""
SIGNATURE_HELP = "Signs of J for the columns of a file: 12,8, ++-+ or lorentz, as in `jorth solve`."
KEY_HELP = "Variable to read from a .npz or .mat file."
FILE_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--signature", "-s", help=SIGNATURE_HELP),
    click.option("--key", help=KEY_HELP),
    text_options,
)
Files = dict[Size, "OwnData"]
"""The files to run on: one entry for each size and number of plus signs."""


def is_file(name: str) -> bool:
    """Whether --data names a file, which its ending shows."""
    return ending_of(Path(name)) in READABLE


def files_of(problem: str, shared: dict[str, Any], share: float) -> Files:
    """The files among ``shared["names"]``; ``share`` is the default of p / n."""
    paths = [Path(name) for name in shared["names"] if is_file(name)]
    if not paths:
        for name in ("signature", "key", "target", "target_key"):
            if shared.get(name):
                raise click.UsageError(f"--{name.replace('_', '-')} needs a file by --data")
        return {}
    if len({path.name for path in paths}) < len(paths):
        raise click.UsageError("--data must name files with different names")
    found: Files = {}
    for path in paths:
        found |= _sizes_of(path, problem, shared, share)
    return found


def with_files(cells: Iterable[MatrixCell], files: Files) -> list[MatrixCell]:
    """The cells, each with its file if it has one."""
    return [
        replace(cell, own=files.get((cell.data, cell.m, cell.n, cell.p)))  # named sets have none
        for cell in cells
    ]


def _sizes_of(path: Path, problem: str, shared: dict[str, Any], share: float) -> Files:
    from jorth.bench.matrices.own import open_own

    for option, named in (("--data", path), ("--target", shared.get("target"))):
        if named is not None and not named.is_file():
            raise click.UsageError(f"{option} must name a file, and there is no {named}")
    with one_line_errors():
        target, key = shared.get("target"), shared.get("target_key")
        layout = pop_layout(dict(shared))
        own, (rows, columns) = open_own(path, shared["key"], target, key, layout=layout, tell=tell)
    most_rows, most_columns = MOST[problem]
    fixed = columns if shared["signature"] else min(columns, most_columns)
    found: Files = {}
    for m, n in shared["sizes"] or [(min(rows, most_rows), fixed)]:
        if m > rows or n > columns or n < 2:
            raise click.UsageError(f"--size {m}x{n} must fit {path}, which is {rows} x {columns}")
        for p, signs in _signatures(n, shared, share):
            found[path.name, m, n, p] = replace(own, signs=signs)
        part = f"{m} of {rows} rows and {n} of {columns} columns"
        click.echo(
            f"{path}: {rows} x {columns}" if (m, n) == (rows, columns) else f"{path}: {part}"
        )
    return found


def _signatures(n: int, shared: dict[str, Any], share: float) -> list[tuple[int, str | None]]:
    """The number of plus signs, and all signs unless the plus signs come first."""
    if not shared["signature"]:
        return [(plus_signs(n, each), None) for each in shared["shares"] or [share]]
    from jorth.cli.solve.request import OptionError, signature_from

    if shared["shares"]:
        raise click.UsageError("--signature and --p-share exclude each other")
    try:
        signature = signature_from(shared["signature"], n)
    except OptionError as error:
        raise click.UsageError(str(error)) from error
    signs = "".join("+" if sign > 0 else "-" for sign in signature.signs)
    return [(signature.p, signs if "-+" in signs else None)]
