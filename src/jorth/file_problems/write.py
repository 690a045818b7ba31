"""What goes out: X, its eigenvalues, the history, the record, the table."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from jorth import __version__
from jorth.file_problems.request import Request
from jorth.file_problems.solve import Outcome
from jorth.solvers import Result
from jorth.storage import matrices as matrix_files
from jorth.storage.atomic import replacing

if TYPE_CHECKING:
    from rich.table import Table

PACKAGES = ("numpy", "scipy", "torch", "numba")


def write(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Write all files of the request, the record last, and return the record."""
    outputs, result = request.outputs(), outcome.result
    matrix_files.write(outputs["x"], result.x)
    if outcome.eigenvalues is not None:
        matrix_files.write(outputs["eigenvalues"], outcome.eigenvalues, name="eigenvalues")
    if "history" in outputs:
        with replacing(outputs["history"]) as stream:
            rows = np.column_stack(list(result.history.values()))
            np.savetxt(
                stream,
                rows,
                fmt="%.17g",
                delimiter=",",
                header=",".join(result.history),
                comments="",
            )
    about = record(request, outcome)
    with replacing(outputs["record"]) as stream:
        stream.write(json.dumps(about, indent=2, allow_nan=False).encode() + b"\n")
    return about


def record(request: Request, outcome: Outcome) -> dict[str, Any]:
    """All that is needed to judge the run and to do it again; a number that is not finite becomes null."""
    result, outputs = outcome.result, request.outputs()
    written = {name: path for name, path in outputs.items() if name != "record"}
    about = {
        "command": request.command,
        "problem": request.problem,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "jorth": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "platform": platform.platform(),
        "status": result.status.name,
        "message": result.message,
        "value": result.value,
        "gradient_norm": result.gradient_norm,
        "residual": result.residual,
        "violation": result.violation,
        "norm": _norm(result),
        "iterations": result.iterations,
        "evaluations": result.evaluations.as_dict(),
        "time": result.time,
        "shape": list(result.x.shape),
        "dtype": str(result.x.dtype),
        "signature": "".join("+" if sign > 0 else "-" for sign in outcome.signature.signs),
        "method": list(request.methods),
        "options": [asdict(solver) for solver in outcome.solvers],  # type: ignore[call-overload]
        "tolerance": request.tolerance,
        "limits": request.limits,
        "seed": request.seed,
        "stages": [
            _stage(name, stage) for name, stage in zip(request.methods, result.stages, strict=False)
        ],
        "inputs": {
            name: {"file": str(path), "sha256": outcome.checksums[name]}
            for name, path in request.inputs().items()
        },
        "outputs": {
            name: {"file": str(path), "sha256": matrix_files.checksum(path)}
            for name, path in written.items()
        },
    }
    plain: dict[str, Any] = _plain(about)
    return plain


def table(request: Request, outcome: Outcome) -> Table:
    """One row a method: value, status, gradient norm, residual, norm, time."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(
        title=_title(request, outcome),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    made.add_column("method", no_wrap=True)
    for heading in ("value", "status", "gradient", "residual", "norm", "seconds"):
        made.add_column(
            heading, justify="right", no_wrap=heading != "status"
        )  # all fits into 80 characters
    stages = outcome.result.stages or (outcome.result,)
    for method, stage in zip(request.methods, stages, strict=False):
        made.add_row(
            method,
            f"{stage.value:.8g}",
            stage.status.name.lower().replace("_", " "),
            f"{stage.gradient_norm:.1e}",
            f"{stage.residual:.1e}",
            f"{_norm(stage):.3g}",
            f"{stage.time:.3g}",
        )
    return made


def _title(request: Request, outcome: Outcome) -> str:
    rows, columns = outcome.result.x.shape
    signature = outcome.signature
    return f"{request.problem}, X {rows} x {columns}, p = {signature.p}, q = {signature.q}"


def _stage(name: str, stage: Result) -> dict[str, Any]:
    return {
        "method": name,
        "status": stage.status.name,
        "message": stage.message,
        "value": stage.value,
        "gradient_norm": stage.gradient_norm,
        "iterations": stage.iterations,
        "time": stage.time,
    }


def _norm(result: Result) -> float:
    """||X||_2."""
    return float(np.linalg.norm(result.x, 2))


def _plain(value: Any) -> Any:
    """The same in what JSON knows."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
