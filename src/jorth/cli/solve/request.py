"""What `jorth solve` is asked for: files in, files out, signature, method and limits.

Whatever can be wrong with the options alone is found here, before any work is done.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from jorth.signature import Signature
from jorth.storage.matrices import CONTAINERS, READABLE, WRITABLE, entries, stored

Problem: TypeAlias = Literal["eigen", "procrustes", "quadratic"]
DIRECT = "direct"
COUNTS = re.compile(r"(\d+)\s*,\s*(\d+)")
SIGNS = re.compile("[+-]+")
LORENTZ: dict[str, Literal["first", "last"]] = {
    "lorentz": "first",
    "lorentz-first": "first",
    "lorentz-last": "last",
}


class OptionError(ValueError):
    """An option that cannot be: the message names it, what it got and what it expects."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option} {message}")


@dataclass(frozen=True)
class Request:
    """One problem to solve.

    Attributes:
        problem: "eigen", "procrustes" or "quadratic".
        matrices: The files by the names of the matrices in the formulas, in the order of the
            command line.
        signature: A text that `signature_from` reads.
        output: The file for X.
        methods: Their names; several are a chain, "direct" is `jorth.eigh`.
        keys: Variables of the .npz and .mat files among the matrices: one for each, or one for all.
        start: The file of the start; the identity when omitted.
        options: The options of the method, as name=value.
        limits: max_iterations, max_time, max_evaluations.
        history: A .csv file for the history.
        command: The command line, for the record.
    """

    problem: Problem
    matrices: dict[str, Path]
    signature: str
    output: Path
    methods: tuple[str, ...]
    keys: tuple[str, ...] = ()
    start: Path | None = None
    options: tuple[str, ...] = ()
    limits: dict[str, float | None] = field(default_factory=dict)
    tolerance: float = 1e-6
    seed: int = 0
    float32: bool = False
    checkpoint: Path | None = None
    history: Path | None = None
    progress: bool = False
    command: str = ""

    @property
    def direct(self) -> bool:
        """Whether no iteration is asked for."""
        return self.methods == (DIRECT,)

    def inputs(self) -> dict[str, Path]:
        """Every file that is read, by its name in messages."""
        others = {"x0": self.start, "signature": file_of(self.signature)}
        return self.matrices | {name: path for name, path in others.items() if path is not None}

    def outputs(self) -> dict[str, Path]:
        """Every file that is written; the record comes last."""
        found = {"x": self.output}
        if self.direct:
            name = f"{self.output.stem}_eigenvalues{self.output.suffix}"
            found["eigenvalues"] = self.output.with_name(name)
        if self.history is not None:
            found["history"] = self.history
        return {**found, "record": self.output.with_suffix(".json")}

    def key_of(self) -> dict[str, str | None]:
        """The variable to read from each of the matrices."""
        containers = [
            name for name, path in self.matrices.items() if path.suffix.lower() in CONTAINERS
        ]
        if self.keys and not (containers and len(self.keys) in {1, len(containers)}):
            raise OptionError(
                "--key",
                f"must be given once, or once for each .npz or .mat file ({len(containers)} here), "
                f"got {', '.join(self.keys)}",
            )
        keys = self.keys * len(containers) if len(self.keys) == 1 else self.keys
        return dict.fromkeys(self.matrices) | dict(zip(containers, keys, strict=False))

    def check(self) -> None:
        """Find all errors in the options; an OptionError names the option."""
        _check_ending("--output", self.output, WRITABLE)
        if self.history is not None:
            _check_ending("--history", self.history, (".csv",))
        for name, path in self.matrices.items():
            _check_ending(name.upper(), path, READABLE)
        self._check_direct()
        self.key_of()
        self._check_distinct()

    def make_folders(self) -> None:
        """Make the folders of the outputs, and check early that they can be written to."""
        for path in self.outputs().values():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() or not os.access(path.parent, os.W_OK):
                raise OptionError(
                    "--output", f"must be where files can be written, which {path} is not"
                )

    def _check_direct(self) -> None:
        if DIRECT not in self.methods:
            return
        if self.problem != "eigen" or not self.direct:
            raise OptionError(
                "--method", f"direct is for eigen and stands alone, got {', '.join(self.methods)}"
            )
        given = {
            "--start": self.start,
            "--checkpoint": self.checkpoint,
            "--history": self.history,
            "--option": self.options or None,
            **{f"--{name.replace('_', '-')}": limit for name, limit in self.limits.items()},
        }
        for option, value in given.items():
            if value is not None:
                raise OptionError(
                    option, "is for iterations, and direct has none; choose another --method"
                )

    def _check_distinct(self) -> None:
        """No output is an input, and no two outputs are one file."""
        outputs = self.outputs()
        for what, path in outputs.items():
            for read in self.inputs().values():
                if _same(path, read):
                    message = f"must not replace an input: {path}, the {what}, is {read}"
                    raise OptionError(_option_of(what), message)
        for (_, first), (what, second) in combinations(outputs.items(), 2):
            if _same(first, second):
                message = f"must be another file: {second} is written already"
                raise OptionError(_option_of(what), message)


def _check_ending(option: str, path: Path, endings: tuple[str, ...]) -> None:
    if path.suffix.lower() not in endings:
        raise OptionError(option, f"must end in {', '.join(endings)}, got {path}")


def _option_of(output: str) -> str:
    return "--history" if output == "history" else "--output"


def _same(first: Path, second: Path) -> bool:
    """Whether two names are one file, through links too."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def file_of(signature: str) -> Path | None:
    """The file that the text of a signature names, or None if it stands for itself."""
    text = signature.strip()
    if COUNTS.fullmatch(text) or SIGNS.fullmatch(text) or text in LORENTZ:
        return None
    if not os.path.isfile(text):  # a Path would raise where the text is too long for a name
        raise _wrong_signature(
            "must be p,q (like 12,8), signs (like ++--+), lorentz, lorentz-first, lorentz-last, "
            f"or a file of +1 and -1; got {text!r}, and there is no such file"
        )
    return Path(text)


def signature_from(text: str, n: int) -> Signature:
    """The signature of n signs that a text stands for.

    "12,8" is twelve times + and then eight times -; "++--+" gives the signs one by one; "lorentz"
    and "lorentz-first" put one - before n - 1 times +, "lorentz-last" puts it after them. Anything
    else names a file of n numbers +1 and -1, in a row or a column.
    """
    text = text.strip()
    path = file_of(text)
    counts = COUNTS.fullmatch(text)
    if counts is not None:
        p, q = int(counts[1]), int(counts[2])
        _check_number_of_signs(text, p + q, n)  # before p + q signs are made
        return Signature(p, q)
    if text in LORENTZ:
        return Signature.lorentz(n, LORENTZ[text])
    if path is not None:
        signature = _signature_in(path)
    else:
        signature = Signature.of([1 if sign == "+" else -1 for sign in text])
    _check_number_of_signs(text, signature.n, n)
    return signature


def _check_number_of_signs(text: str, found: int, n: int) -> None:
    if found != n:
        raise _wrong_signature(
            f"must have {n} signs, one per column of the data, got {text} with {found}"
        )


def _signature_in(path: Path) -> Signature:
    found = stored(path)
    signs = entries(found)
    if signs.size != max(found.shape, default=0) or signs.dtype.kind not in "fiu":
        raise _wrong_signature(
            f"must name a file with one row or column, got {path} of shape {found.shape}"
        )
    try:
        return Signature.of(np.ravel(signs))
    except ValueError as error:
        raise _wrong_signature(f"must name a file of +1 and -1, got {path}: {error}") from error


def _wrong_signature(message: str) -> OptionError:
    return OptionError("--signature", message)
