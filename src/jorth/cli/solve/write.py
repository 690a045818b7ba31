"""The output of `jorth solve`: X, eigenvalues, history, record and table."""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from jorth import __version__
from jorth.cli.solve.request import Request
from jorth.cli.solve.run import Solved
from jorth.solvers import Result
from jorth.storage import matrices as matrix_files
from jorth.storage.atomic import replacing
from jorth.storage.texts import to_json

if TYPE_CHECKING:
    from rich.table import Table

PACKAGES = ("numpy", "scipy", "torch", "numba")


def write(request: Request, solved: Solved) -> None:
    """Write all files of the request, the record last."""
    outputs = request.outputs()
    history = solved.result.history
    matrix_files.write(outputs["x"], solved.result.x)
    if solved.eigenvalues is not None:
        matrix_files.write(outputs["eigenvalues"], solved.eigenvalues, name="eigenvalues")
    if "history" in outputs:
        rows = np.column_stack(list(history.values()))
        names = ",".join(history)
        with replacing(outputs["history"]) as stream:
            np.savetxt(stream, rows, fmt="%.17g", delimiter=",", header=names, comments="")
    with replacing(outputs["record"]) as stream:
        stream.write(to_json(_record(request, solved), indent=2) + b"\n")


def _record(request: Request, solved: Solved) -> dict[str, Any]:
    """Everything that is needed to judge the run and to repeat it."""
    result = solved.result
    written = {name: path for name, path in request.outputs().items() if name != "record"}
    return {
        "command": request.command,
        "problem": request.problem,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "jorth": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "platform": platform.platform(),
        **_summary(result),
        "residual": result.residual,
        "violation": result.violation,
        "norm": _norm(result),
        "evaluations": result.evaluations.as_dict(),
        "shape": list(result.x.shape),
        "dtype": str(result.x.dtype),
        "signature": "".join("+" if sign > 0 else "-" for sign in solved.signature.signs),
        "method": list(request.methods),
        "options": [asdict(solver) for solver in solved.solvers],  # type: ignore[call-overload]
        "tolerance": request.tolerance,
        "limits": request.limits,
        "seed": request.seed,
        "ran": result.method,
        "stages": [{"method": stage.method, **_summary(stage)} for stage in result.stages],
        "inputs": {
            name: {"file": str(path), "sha256": solved.checksums[name]}
            for name, path in request.inputs().items()
        },
        "outputs": {
            name: {"file": str(path), "sha256": matrix_files.checksum(path)}
            for name, path in written.items()
        },
    }


def _summary(result: Result) -> dict[str, Any]:
    return {
        "status": result.status.name,
        "message": result.message,
        "value": result.value,
        "gradient_norm": result.gradient_norm,
        "iterations": result.iterations,
        "time": result.time,
    }


def _norm(result: Result) -> float:
    """||X||_2."""
    return float(np.linalg.norm(result.x, 2))


def table(request: Request, solved: Solved) -> Table:
    """One row per method: value, status, gradient norm, residual, norm, time."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rows, columns = solved.result.x.shape
    signature = solved.signature
    made = Table(
        title=f"{request.problem}, X {rows} x {columns}, p = {signature.p}, q = {signature.q}",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    made.add_column("method", no_wrap=True)
    for heading in ("value", "status", "gradient", "residual", "norm", "seconds"):
        # only the status may wrap, so that the table fits into 80 characters
        made.add_column(heading, justify="right", no_wrap=heading != "status")
    stages = solved.result.stages or (solved.result,)
    for stage in stages:
        made.add_row(
            stage.method,
            f"{stage.value:.8g}",
            stage.status.name.lower().replace("_", " "),
            f"{stage.gradient_norm:.1e}",
            f"{stage.residual:.1e}",
            f"{_norm(stage):.3g}",
            f"{stage.time:.3g}",
        )
    return made
