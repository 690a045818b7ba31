"""The verdict on a call: a clear error, an answer of finite numbers, or a fault."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tests.fuzz.calls import Arguments, Call

LONGEST = 400  # characters of a message: shapes and types take less, data soon more
PATIENCE = 60  # seconds of processor time; calls take milliseconds, but may have to compile
SPARE = 4 << 30  # bytes that a call may allocate; calls take megabytes


class Endless(BaseException):
    """A call did not end. Not an Exception, so that nothing catches it on the way."""


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """End a call that runs for ever, or asks for all the memory; it has a folder of its own."""

    def ring(*_: object) -> None:
        raise Endless

    in_use, (soft, hard) = Path("/proc/self/statm"), resource.getrlimit(resource.RLIMIT_AS)
    before, handler = os.getcwd(), signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    if in_use.exists():
        wanted = int(in_use.read_text().split()[0]) * resource.getpagesize() + SPARE
        resource.setrlimit(resource.RLIMIT_AS, (min(wanted, hard) if hard >= 0 else wanted, hard))
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            os.chdir(folder)  # some paths are relative
            try:
                yield
            finally:
                os.chdir(before)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


def fault_of(call: Call, given: Arguments, changed: tuple[str, ...], *, refused: bool) -> str:
    """What is wrong with what comes of a call; empty where nothing is.

    Args:
        call: The function.
        given: Its arguments.
        changed: Those that are not the right ones, one of which an error has to name.
        refused: Whether there must be an error.
    """
    before = {name: snapshot(value) for name, value in given.items()}
    error = result = None
    try:
        with limits():
            result = call.function(**given)
    except Endless:
        return "did not end"
    except Exception as raised:
        error = raised
    allowed = call.changes if error is None else ()
    overwritten = [
        name for name in given if name not in allowed and snapshot(given[name]) != before[name]
    ]
    if overwritten:
        return f"changed {', '.join(overwritten)}"
    if error is not None:
        return unclear(error, call, changed)
    if refused:
        return f"was accepted, with the answer {result!r:.80}"
    return "" if call.non_finite or finite(result) else f"NaN or infinity in {result!r:.80}"


def unclear(error: Exception, call: Call, changed: tuple[str, ...]) -> str:
    """Why an error is not clear; empty where it is."""
    kind, message = type(error), str(error)
    shown = f"{kind.__name__}: {message!r:.200}"
    ours = issubclass(kind, (ValueError, TypeError)) and kind.__module__.startswith("jorth.")
    if kind not in (ValueError, TypeError, *call.raises) and not ours:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{shown} at {where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
    if len(message) > LONGEST:
        return f"a message of {len(message)} characters: {shown}"
    if re.search(r"array\(|tensor\(|\[\[", message):
        return f"data in the message: {shown}"
    if not any(re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", message) for name in changed):
        return f"does not name {' or '.join(changed)}: {shown}"
    return ""


def snapshot(value: Any) -> Any:
    """What can be compared afterwards to see that a value is as it was."""
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype.hasobject else np.asarray(value).tobytes()
        return value.shape, str(value.dtype), value.flags.writeable, content
    if isinstance(value, Tensor):
        if value.layout is not torch.strided:
            return tuple(value.shape)
        return value.requires_grad, value.dtype, value.detach().numpy().tobytes()
    if scipy.sparse.issparse(value):
        return value.shape, value.data.tobytes()
    if hasattr(value, "to_numpy"):
        return repr(value.to_numpy().tolist())
    if isinstance(value, (list, tuple)):
        return [snapshot(entry) for entry in value[:100]]
    return repr(value) if isinstance(value, (str, int, float, complex)) else id(value)


def numbers_in(value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Every array and number in an answer, with the kind and dtype that it has."""
    if isinstance(value, (np.ndarray, Tensor)):
        array = value.detach().numpy() if isinstance(value, Tensor) else value
        yield f"{type(value).__name__} {array.dtype}", array
    elif isinstance(value, (int, float, np.number)):
        yield type(value).__name__, np.asarray(float(value))
    elif scipy.sparse.issparse(value):
        yield from numbers_in(value.data)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for part in dataclasses.fields(value):
            if part.name not in ("time", "history", "stages", "gradient_norm", "residual"):
                yield from numbers_in(getattr(value, part.name))
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(part)


def finite(value: Any) -> bool:
    """Whether there is no NaN or infinity in an answer, however it is packed."""
    return all(
        np.isfinite(array).all() for _, array in numbers_in(value) if array.dtype.kind in "fc"
    )
