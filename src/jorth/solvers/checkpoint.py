"""Checkpoints: one atomic file in a folder, what it holds of a run, and how a run goes on from it.

Nothing in the file is ever executed (no pickle), and a checksum detects damage.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor

from jorth import __version__
from jorth._files import make_folder, replacing
from jorth._inputs import frobenius, unit_roundoff
from jorth.objectives.base import hash_tensors
from jorth.solvers.problem import Evaluations, ScoredPoint
from jorth.solvers.result import COLUMNS

if TYPE_CHECKING:
    from jorth.solvers.loop import Run

FILE = "state.checkpoint"
Content: TypeAlias = tuple[dict[str, Tensor], dict[str, Any]]
"""Tensors, and what JSON can hold."""


# -- the file


class CheckpointMismatch(ValueError):
    """The folder holds a checkpoint of another problem, method or start.

    >>> f, g = jorth.Quadratic(np.eye(2)), jorth.Quadratic(3 * np.eye(2))
    >>> result = jorth.minimize(f, signature=jorth.Signature(1, 1), checkpoint="run")
    >>> jorth.minimize(g, signature=jorth.Signature(1, 1), checkpoint="run")
    Traceback (most recent call last):
    jorth.CheckpointMismatch: checkpoint run belongs to another run: objective is ...
    """


def mismatch(folder: Path, what: str, there: object, here: object) -> CheckpointMismatch:
    """Return an error that says how two runs differ."""
    return CheckpointMismatch(
        f"checkpoint {folder} belongs to another run: {what} is {there} there and {here} here; "
        "nothing was overwritten; choose another folder or remove this one"
    )


class CheckpointFolder:
    """The folder in which one run saves its state, once per ``interval`` seconds."""

    def __init__(self, path: Path, identity: dict[str, str], interval: float = 0.0) -> None:
        self.path = path
        self._identity = {"the version of jorth": __version__} | identity
        self._interval, self._saved_at = interval, time.monotonic()

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return time.monotonic() - self._saved_at >= self._interval

    def load(self) -> Content | None:
        """Return what the run of this identity has saved, or None; make the folder if need be."""
        make_folder(self.path, "checkpoint")
        if not (self.path / FILE).exists():
            return None
        identity, tensors, numbers = read(self.path / FILE)
        for part, here in self._identity.items():
            if identity.get(part) != here:
                raise mismatch(self.path, part, identity.get(part), here)
        return tensors, numbers

    def save(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Write safetensors and their sha256 at the end; a failure is only a warning."""
        from safetensors.torch import save

        text = json.dumps([self._identity, numbers], default=lambda array: array.tolist()).encode()
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        plain["json"] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        try:
            content = save(plain)
            with replacing(self.path / FILE) as stream:
                stream.write(content + hashlib.sha256(content).digest())
        except (OSError, MemoryError) as error:
            reason = str(error) or type(error).__name__
            message = f"the checkpoint in {self.path} could not be written: {reason}"
            warnings.warn(message, stacklevel=2)
        self._saved_at = time.monotonic()


def read(path: Path) -> tuple[dict[str, str], dict[str, Tensor], dict[str, Any]]:
    """Return identity, tensors and numbers; a ValueError says that the file is damaged."""
    from safetensors.torch import load

    stored = path.read_bytes()
    content, digest = stored[:-32], stored[-32:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError(f"checkpoint {path} is damaged; remove it to start anew")
    # copies have torch's alignment; BLAS may round differently on others
    tensors = {name: tensor.clone() for name, tensor in load(content).items()}
    identity, numbers = json.loads(tensors.pop("json").numpy().tobytes())
    return identity, tensors, numbers


def pack(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return the value in terms of JSON; every tensor in it goes into ``tensors`` under its path.

    It may hold dataclasses, lists, dictionaries, tensors, arrays, numbers, strings and None.
    """
    if isinstance(value, np.ndarray):
        tensors[path] = torch.from_numpy(value).clone()
        return {"numpy": path}
    if isinstance(value, Tensor):
        tensors[path] = value.detach().clone()
        return {"tensor": path}
    if is_dataclass(value):
        names = [item.name for item in fields(value) if item.metadata.get("saved", True)]
        return {"fields": {n: pack(getattr(value, n), f"{path}.{n}", tensors) for n in names}}
    if isinstance(value, dict):
        return {"entries": {n: pack(part, f"{path}.{n}", tensors) for n, part in value.items()}}
    if isinstance(value, list):
        return [pack(part, f"{path}.{at}", tensors) for at, part in enumerate(value)]
    return value


def unpack(packed: Any, kind: Any, tensors: dict[str, Tensor]) -> Any:
    """Return the value that `pack` was given; dataclasses are made by its type ``kind``."""
    options = (kind, *get_args(kind))  # the type itself, or those of a union
    if isinstance(packed, list):
        of = next((get_args(option)[0] for option in options if get_origin(option) is list), Any)
        return [unpack(part, of, tensors) for part in packed]
    if not isinstance(packed, dict):
        return packed
    if "numpy" in packed:
        return tensors[packed["numpy"]].cpu().numpy()
    if "tensor" in packed:
        return tensors[packed["tensor"]]
    if "entries" in packed:
        return {name: unpack(part, Any, tensors) for name, part in packed["entries"].items()}
    made = next(option for option in options if is_dataclass(option))
    hints = get_type_hints(made)
    parts = packed["fields"].items()
    return made(**{name: unpack(part, hints[name], tensors) for name, part in parts})  # type: ignore[operator]


# -- a run

SCORED = ("iteration", "recorded_at", "scored_at")
"""What a checkpoint holds of the history as it is, beside its rows and its point."""
COUNTED = ("unit", "scale", "scale_is_known", "evaluated")
"""The same of the objective, beside its counts and its clock."""


def identity(run: Run, seed: object) -> dict[str, str]:
    """Return what must be the same for a run to continue from a checkpoint."""
    X = run.start
    if isinstance(seed, np.random.Generator):  # its kind and a hash of its state
        state = json.dumps(seed.bit_generator.state, default=np.ndarray.tolist, sort_keys=True)
        seed = f"{seed} {hashlib.sha256(state.encode()).hexdigest()[:16]}"
    return {
        "objective": run.problem.objective.objective.fingerprint(),
        "start": f"{tuple(X.shape)} {X.dtype} {hash_tensors('start', X)}",
        "signature": repr(run.problem.signature),
        "method": repr(run.solver),
        "seed": str(seed),
        "on_unbounded": "stop" if run.problem.stop_unbounded else "continue",
    }


def save_run(run: Run, folder: CheckpointFolder) -> None:
    """Save the last complete iteration of a run, if there is one."""
    if run.state is None:
        return
    content = packed(run) if run.state.complete else run.before
    if content is not None:
        tensors, numbers = content
        rows = np.array(run.history.rows[: numbers["rows"]]).reshape(-1, len(COLUMNS))
        folder.save(tensors | {"history": torch.from_numpy(rows)}, numbers)


def packed(run: Run) -> Content:
    """Return the run as it is between two steps; the history is added when it is saved."""
    objective, history = run.problem.objective, run.history
    tensors: dict[str, Tensor] = {}
    return tensors, {
        "state": pack(run.state, "state", tensors),
        "point": pack(history.point, "point", tensors),
        "rows": len(history.rows),
        "history": {name: getattr(history, name) for name in SCORED},
        "objective": {name: getattr(objective, name) for name in COUNTED},
        "count": dict(vars(objective.count)),
        "seconds": objective.clock.seconds,
        "rng": run.problem.rng.bit_generator.state,
    }


def resume(run: Run, content: Content, folder: Path) -> None:
    """Restore the run as it was saved, if the objective has not changed since."""
    tensors, numbers = content
    tensors = {name: tensor.to(run.start.device) for name, tensor in tensors.items()}
    objective, history = run.problem.objective, run.history
    run.state = unpack(numbers["state"], run.solver.state_type, tensors)
    vars(history).update(numbers["history"])
    vars(objective).update(numbers["objective"])
    history.rows = tensors["history"].tolist()
    for row in history.rows:
        history.improvement.update(row[2], row[3], 2 * unit_roundoff(run.start))
        history.value, history.gradient_norm = row[2:4]
    history.gradient_scale = objective.scale
    point = history.point = unpack(numbers["point"], ScoredPoint, tensors)
    history.norms_of_point = history.norms(point.X, point.gradient)
    if history.scored_at == history.iteration and not run.solver.feasible:
        run.state.scored = point
    objective.count = Evaluations(**numbers["count"])
    objective.clock.spent = numbers["seconds"]
    run.problem.rng.bit_generator.state = numbers["rng"]
    if not math.isnan(point.value):  # else the run ended before anything was recorded
        _check_objective(run, point, folder)


def _check_objective(run: Run, point: ScoredPoint, folder: Path) -> None:
    """Raise a CheckpointMismatch unless f is as saved, to half of the digits.

    Two functions may have one fingerprint.
    """
    f, unit = run.problem.objective.objective, run.problem.objective.unit
    slope = f.value_and_gradient(run.start)[1] / unit
    value, gradient = (part.detach() / unit for part in f.value_and_gradient(point.X))
    digits, size = math.sqrt(unit_roundoff(point.X)), max(frobenius(gradient), frobenius(slope))
    same = abs(value - point.value) <= digits * (abs(value) + size * frobenius(point.X))
    if not (same and frobenius(gradient - point.gradient) <= digits * size):
        there, here = point.value * unit, value.item() * unit
        raise mismatch(folder, "f at the saved point", there, here)
