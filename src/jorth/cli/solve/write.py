"""The files of `jorth solve`: X, eigenvalues, history and record."""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth import __version__
from jorth.cli.solve.request import Request
from jorth.cli.solve.run import Solved
from jorth.solvers import Result
from jorth.storage import matrices as matrix_files
from jorth.storage.atomic import replacing
from jorth.storage.texts import to_json

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
        "norm": norm(result),
        "evaluations": result.evaluations.as_dict(),
        "shape": list(result.x.shape),
        "dtype": str(result.x.dtype),
        "signature": "".join("+" if sign > 0 else "-" for sign in solved.signature.signs),
        **_quality(solved),
        "method": request.method,
        "options": asdict(solved.solver) if solved.solver else {},  # type: ignore[call-overload]
        "tolerance": request.tolerance,
        "limits": request.limits,
        "seed": request.seed,
        "ran": result.method,
        "notes": list(solved.notes),
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


def _quality(solved: Solved) -> dict[str, Any]:
    """What is known of the answer beyond its own run."""
    found: dict[str, Any] = {"p": solved.signature.p, "q": solved.signature.q}
    if solved.eigenvalues is not None:
        found["eigenvalues"] = {
            "positive": _range(solved.eigenvalues[solved.signature.positive]),
            "negative": _range(solved.eigenvalues[solved.signature.negative]),
        }
    if solved.fit is not None:
        found |= {"m": solved.fit.rows, "n": solved.signature.n, **asdict(solved.fit)}
        del found["rows"], found["identity_is_better"]
    if solved.result.gap is not None:
        found |= {"bound": solved.result.bound, "gap": solved.result.gap}
    if solved.search is not None:
        found["component"] = list(solved.search.best)
        names = ("searched", "left_out", "unknown")
        found["components"] = {name: getattr(solved.search, name) for name in names}
    return found


def _range(values: NDArray[np.floating]) -> dict[str, Any]:
    """Of the eigenvalues of one type."""
    if not len(values):
        return {"count": 0, "least": None, "largest": None}
    return {"count": len(values), "least": float(values.min()), "largest": float(values.max())}


def _summary(result: Result) -> dict[str, Any]:
    return {
        "status": result.status.name,
        "message": result.message,
        "value": result.value,
        "gradient_norm": result.gradient_norm,
        "iterations": result.iterations,
        "time": result.time,
    }


def norm(result: Result) -> float:
    """||X||_2."""
    return float(np.linalg.norm(result.x, 2))
