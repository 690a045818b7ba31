"""The verdict on a case: a clear error, a right answer, or anything else."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import resource
import signal
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tests.fuzz.calls import Case

CLEAR = "clear error"
RIGHT = "right answer"
ELSE = "anything else"

LONGEST = 400
"""Characters of an error message: shapes and types take less, data soon more."""
PATIENCE = 60
"""Seconds of processor time after which a call counts as endless. Calls take milliseconds,
but may have to compile."""
SPARE = 4 << 30
"""Bytes that a call may allocate. The calls take megabytes."""


class Verdict(NamedTuple):
    """What came of a case, and why."""

    case: Case
    outcome: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.case}: {self.why}"


class Endless(BaseException):
    """A call did not end. Not an Exception, so that nothing catches it on the way."""


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """A call that runs for ever, or asks for all the memory there is, ends."""

    def ring(*_: object) -> None:
        raise Endless

    handler = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with _memory():
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


@contextlib.contextmanager
def _memory() -> Iterator[None]:
    """Not much more memory than there is in use, where Linux tells how much that is."""
    in_use = Path("/proc/self/statm")
    if not in_use.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = int(in_use.read_text().split()[0]) * resource.getpagesize() + SPARE
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def judge(case: Case) -> Verdict:
    """Make the call and look at what comes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = case.arguments()
        before = {name: snapshot(value) for name, value in given.items()}
        try:
            with limits():
                result = case.call.function(**given)
        except Endless:
            return Verdict(case, ELSE, "did not end")
        except Exception as error:
            changed = _changed(before, given)
            if changed:
                return Verdict(case, ELSE, f"failed, and changed {changed}")
            wrong = unclear(error, case)
            return Verdict(case, ELSE if wrong else CLEAR, wrong)
        changed = _changed(before, given, but=case.call.changes)
        if changed:
            return Verdict(case, ELSE, f"changed its input {changed}")
        try:
            assert case.call.non_finite or finite(result), "NaN or infinity"
            case.call.check(result, case.meaning(given))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Verdict(
                case, ELSE, f"wrong answer: {error!r:.200} at {where.name}:{where.lineno}"
            )
    return Verdict(case, RIGHT)


def unclear(error: Exception, case: Case) -> str:
    """Why an error is not clear; empty where it is."""
    kind, message = type(error), str(error)
    shown = f"{kind.__name__}: {message!r:.200}"
    ours = issubclass(kind, (ValueError, TypeError)) and kind.__module__.startswith("jorth.")
    if kind not in (ValueError, TypeError, *case.call.raises) and not ours:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{shown} at {where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
    if len(message) > LONGEST:
        return f"a message of {len(message)} characters: {shown}"
    if re.search(r"array\(|tensor\(|\[\[", message):
        return f"data in the message: {shown}"
    if not any(_names(message, name) for name in case.changed):
        return f"does not name {' or '.join(case.changed)}: {shown}"
    return ""


def _names(message: str, name: str) -> bool:
    """Whether a message speaks of an argument; "for Signature(2, 1)" speaks of the signature."""
    flags = re.IGNORECASE if name == "signature" else 0
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message, flags) is not None


def snapshot(value: Any) -> Any:
    """What can be compared afterwards to see that a value is as it was."""
    if isinstance(value, np.ma.MaskedArray):
        return snapshot(value.data)
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype.hasobject else value.tobytes()
        return value.shape, str(value.dtype), value.strides, value.flags.writeable, content
    if isinstance(value, Tensor):
        if value.is_meta or value.layout is not torch.strided:
            return tuple(value.shape)
        content = (
            value.detach().reshape(-1).contiguous().view(torch.uint8) if value.numel() else value
        )
        return (
            tuple(value.shape),
            value.dtype,
            value.stride(),
            value.requires_grad,
            content.tolist(),
        )
    if scipy.sparse.issparse(value):
        return value.shape, value.data.tobytes()
    if hasattr(value, "to_numpy"):
        return repr(value.to_numpy().tolist())
    if isinstance(value, dict):
        return {key: snapshot(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [snapshot(entry) for entry in value] if len(value) < 1000 else len(value)
    return repr(value) if isinstance(value, (str, int, float, complex)) else id(value)


def _changed(before: dict[str, Any], given: dict[str, Any], but: Iterable[str] = ()) -> str:
    return ", ".join(
        name for name in given if name not in but and snapshot(given[name]) != before[name]
    )


def finite(value: Any) -> bool:
    """Whether there is no NaN or infinity in an answer, however it is packed."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if isinstance(value, Tensor):
        return bool(torch.isfinite(value.detach()).all())
    if scipy.sparse.issparse(value):
        return finite(value.data)
    if isinstance(value, (float, complex)):
        return bool(np.isfinite(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(finite(getattr(value, part.name)) for part in dataclasses.fields(value))
    if isinstance(value, dict):
        return all(finite(entry) for entry in value.values())
    if isinstance(value, (list, tuple)):
        return all(finite(entry) for entry in value)
    return True
