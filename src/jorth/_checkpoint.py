"""Checkpoints: a folder with one atomic file of arrays as safetensors and the rest as JSON.

Nothing in it is ever executed (no pickle), and a checksum over the complete content detects damage.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor

from jorth._distributed import Ranks
from jorth._files import lock_folder, make_folder, replacing

FILE = "state.safetensors"
ABOUT = "problem.json"
Content: TypeAlias = tuple[dict[str, Tensor], dict[str, Any]]
"""Tensors, and what JSON can hold, including NumPy arrays."""
ADVICE = "choose another folder or remove this one"
LAYOUT = "3"
"""The version of what the content of a checkpoint means; to be raised when that changes."""
NOT_SAVED = {"saved": False}
"""Metadata of a field that is not saved, as it can be computed from the problem."""


class CheckpointMismatch(ValueError):
    """The folder holds a checkpoint of another problem, method or start."""


def mismatch(
    folder: Path, what: str, there: object, here: object, hint: str = ADVICE
) -> CheckpointMismatch:
    """Return an error that says how two runs differ."""
    difference = f"{what} is {there} there and {here} here"
    return CheckpointMismatch(
        f"checkpoint {folder} belongs to another run: {difference}; nothing was overwritten; {hint}"
    )


class Folder:
    """The folder in which one run saves its state.

    From `open` to `close`, or to the end of the process, no other run can open it.

    Args:
        path: The folder.
        identity: What a run and its checkpoint must agree in.
        hints: What errors advise where these parts of the identity differ.
    """

    def __init__(
        self, path: Path, identity: dict[str, str], *, hints: dict[str, str] | None = None
    ) -> None:
        self.path = path
        self._identity = identity
        self._hints = hints or {}
        self._failed = False
        self._lock: weakref.finalize[..., Folder] | None = None

    def open(self, device: torch.device, ranks: Ranks | None) -> Content | None:
        """Load what the run has saved, if anything; make the folder and write the identity.

        If there are several processes, the first one does it and sends the result to the others.
        An OSError is raised before any work is done.
        """

        def read() -> Content | None:
            if self.path.exists() and not self.path.is_dir():
                raise NotADirectoryError(f"checkpoint must be a folder, got the file {self.path}")
            make_folder(self.path, "checkpoint")
            handle = lock_folder(self.path)
            if handle is None:
                remedy = "choose another folder or wait for its end"
                raise RuntimeError(f"checkpoint {self.path} is in use by another run; {remedy}")
            self._lock = weakref.finalize(self, os.close, handle)
            found = self._load()
            with replacing(self.path / ABOUT) as stream:
                stream.write(json.dumps(self._identity, indent=2).encode())
            return found

        try:
            found = read() if ranks is None else ranks.from_first(read)
        except BaseException:
            self.close()
            raise
        if found is None:
            return None
        tensors, numbers = found
        return {name: tensor.to(device) for name, tensor in tensors.items()}, numbers

    def close(self) -> None:
        """Let other runs open the folder."""
        if self._lock is not None:
            self._lock()

    def _load(self) -> Content | None:
        """Return the state in the folder, if there is one and it belongs to this run."""
        stored = load(self.path)
        if stored is None:
            return None
        identity, tensors, numbers = stored
        for part, here in self._identity.items():
            there = identity.get(part)
            if there != here:
                raise mismatch(self.path, part, there, here, self._hints.get(part, ADVICE))
        return tensors, numbers

    def save(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Write the state. A failure is only a warning, given once, and the run continues."""
        try:
            save(self.path, self._identity, tensors, numbers)
            self._failed = False
        except (OSError, MemoryError) as error:
            if not self._failed:
                reason = str(error) or type(error).__name__
                message = f"the checkpoint in {self.path} could not be written: {reason}"
                warnings.warn(message, stacklevel=2)
            self._failed = True


@contextmanager
def restoring(folder: Path) -> Iterator[None]:
    """Blame the layout of a checkpoint for errors while a run takes over its content.

    The content has passed its checksum, so that other code has written it.
    """
    try:
        yield
    except Exception as error:
        raise _other_layout(folder) from error


def _other_layout(folder: Path) -> CheckpointMismatch:
    return CheckpointMismatch(
        f"checkpoint {folder} was written by another version of jorth, with another layout; "
        f"nothing was overwritten; go on with that version, or {ADVICE}"
    )


def save(
    folder: Path, identity: dict[str, str], tensors: dict[str, Tensor], numbers: dict[str, Any]
) -> None:
    """Write the state; a reader sees either the old state or the new one."""
    from safetensors.torch import save as packed

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    texts = {
        "layout": LAYOUT,
        "identity": json.dumps(identity),
        "numbers": json.dumps(numbers, default=_array_as_json),
    }
    content = packed(plain, texts | {"checksum": _checksum(plain, texts)})
    with replacing(folder / FILE) as stream:
        stream.write(content)


def load(folder: Path) -> tuple[dict[str, str], dict[str, Tensor], dict[str, Any]] | None:
    """Return identity, tensors and numbers of the state in the folder, or None.

    Raises:
        ValueError: The file is damaged.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        tensors, texts = _read(path)
        if texts.get("layout") != LAYOUT:
            raise _other_layout(folder)
        identity = json.loads(texts["identity"])
        numbers = json.loads(texts["numbers"], object_hook=_array_from_json)
    except (OSError, CheckpointMismatch):
        raise
    except Exception as error:  # each library has its own errors for broken files
        message = f"checkpoint {path} cannot be read ({error}); remove it to start anew"
        raise ValueError(message) from error
    return identity, tensors, numbers


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and texts as they were written; a damaged file raises an exception."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as handle:
        texts = dict(handle.metadata() or {})
        names = handle.keys()
        # copies have torch's alignment; BLAS may round differently on others
        tensors = {name: handle.get_tensor(name).clone() for name in names}
    if texts.pop("checksum", "") != _checksum(tensors, texts):
        raise ValueError("its content does not match its checksum")
    return tensors, texts


def _checksum(tensors: dict[str, Tensor], texts: dict[str, str]) -> str:
    """Return the sha256 over all names, dtypes, shapes and bytes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    digest.update(json.dumps(texts, sort_keys=True).encode())
    return digest.hexdigest()


def _array_as_json(value: Any) -> dict[str, Any]:
    """Return a NumPy array as JSON; the state of some random generators contains them."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a checkpoint cannot hold {type(value).__name__}")
    return {"dtype": str(value.dtype), "array": value.tolist()}


def _array_from_json(value: dict[str, Any]) -> Any:
    is_array = set(value) == {"dtype", "array"}
    return np.array(value["array"], dtype=value["dtype"]) if is_array else value


def pack(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return the value in terms of JSON; every tensor in it goes into ``tensors`` under its path.

    It may be a dataclass, whose saved fields are taken, a list, a dictionary with string keys, a
    tensor, a NumPy array, a number, a string or None, nested in any way.
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
