"""A request to `jorth solve`: input and output files, signature, method and limits.

Errors in the options alone are found here, before any work is done.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from jorth.signature import Signature
from jorth.storage.matrices import (
    CONTAINERS,
    READABLE,
    WRITABLE,
    advice_for,
    ending_of,
    entries,
    stored,
)
from jorth.storage.text_matrices import AUTO, Layout

Problem: TypeAlias = Literal["eigen", "procrustes", "quadratic"]
DIRECT = "direct"
EVERY = "every-component"
COUNTS = re.compile(r"(\d+)\s*,\s*(\d+)")
SIGNS = re.compile("[+-]+")
LORENTZ: dict[str, Literal["first", "last"]] = {
    "lorentz": "first",
    "lorentz-first": "first",
    "lorentz-last": "last",
}


class OptionError(ValueError):
    """An invalid option; the message names it, what it got and what it expects."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option} {message}")


@dataclass(frozen=True)
class Request:
    """One problem to solve."""

    problem: Problem
    matrices: dict[str, Path]  # files by the names of the matrices in the formulas
    signature: str  # a text for `signature_from`
    output: Path  # for X
    method: str  # DIRECT is `jorth.eigh`, EVERY searches
    keys: tuple[str, ...] = ()  # variables of the .npz and .mat files: one for each, or for all
    layout: Layout = AUTO  # header and index of text files
    start: Path | None = None  # the identity if None
    options: tuple[str, ...] = ()  # of the method, as name=value
    limits: dict[str, float | None] = field(default_factory=dict)  # arguments of `minimize`
    tolerance: float | None = None  # None: the default of `minimize`
    seed: int = 0
    float32: bool = False
    checkpoint: Path | None = None
    history: Path | None = None  # a .csv file
    progress: bool = False
    command: str = ""  # the command line, for the record

    @property
    def direct(self) -> bool:
        """Whether no iterations are needed."""
        return self.method == DIRECT

    @property
    def everywhere(self) -> bool:
        """Whether all components of O(p, q) are searched."""
        return self.method == EVERY

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of all matrices."""
        return np.dtype(np.float32 if self.float32 else np.float64)

    def inputs(self) -> dict[str, Path]:
        """All files that are read, by their names in messages."""
        others = {"x0": self.start, "signature": file_of(self.signature)}
        return self.matrices | {name: path for name, path in others.items() if path is not None}

    def outputs(self) -> dict[str, Path]:
        """All files that are written; the record comes last."""
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
            often = f"once, or once for each .npz or .mat file ({len(containers)} here)"
            raise OptionError("--key", f"must be given {often}, got {', '.join(self.keys)}")
        keys = self.keys * len(containers) if len(self.keys) == 1 else self.keys
        return dict.fromkeys(self.matrices) | dict(zip(containers, keys, strict=False))

    def check(self) -> None:
        """Raise an OptionError if an option is invalid."""
        _check_ending("--output", self.output, WRITABLE)
        if self.history is not None:
            _check_ending("--history", self.history, (".csv",))
        for name, path in self.matrices.items():
            _check_ending(name.upper(), path, READABLE)
        self._check_direct()
        self._check_everywhere()
        self.key_of()
        self._check_distinct()

    def make_folders(self) -> None:
        """Make the folders of the outputs, and check that they are writable."""
        for path in self.outputs().values():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() or not os.access(path.parent, os.W_OK):
                raise OptionError("--output", f"must be a writable place, which {path} is not")

    def _check_direct(self) -> None:
        if not self.direct:
            return
        if self.problem != "eigen":
            raise OptionError("--method", f"direct is for eigen, got {self.problem}")
        given = {
            "--start": self.start,
            "--checkpoint": self.checkpoint,
            "--history": self.history,
            "--option": self.options or None,
            **{f"--{name.replace('_', '-')}": limit for name, limit in self.limits.items()},
        }
        for option, value in given.items():
            if value is not None:
                raise OptionError(option, "needs an iterative --method, got direct")

    def _check_everywhere(self) -> None:
        if not self.everywhere:
            return
        if self.problem == "eigen":
            raise OptionError("--method", f"{EVERY} is for procrustes and quadratic, got eigen")
        if self.start is not None:
            raise OptionError("--start", f"needs another --method, got {EVERY}")

    def _check_distinct(self) -> None:
        """Check that no output is an input, and that no two outputs are the same file."""
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
    ending = ending_of(path) if endings is READABLE else path.suffix.lower()
    if ending not in endings:
        advice = advice_for(path) if endings is READABLE else ""
        raise OptionError(option, f"must end in {', '.join(endings)}, got {path}{advice}")


def _option_of(output: str) -> str:
    return "--history" if output == "history" else "--output"


def _same(first: Path, second: Path) -> bool:
    """Whether two names are the same file, also through links."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def file_of(signature: str) -> Path | None:
    """The file that the text of a signature names, or None if it names none."""
    text = signature.strip()
    if COUNTS.fullmatch(text) or SIGNS.fullmatch(text) or text in LORENTZ:
        return None
    if not os.path.isfile(text):  # Path.is_file raises if the text is too long
        raise OptionError(
            "--signature",
            "must be p,q (like 12,8), signs (like ++--+), lorentz, lorentz-first, lorentz-last, "
            f"or a file of +1 and -1; got {text!r}, and there is no such file",
        )
    return Path(text)


def signature_from(text: str, n: int) -> Signature:
    """The signature of n signs that a text describes.

    "12,8" means twelve + followed by eight -; "++--+" lists the signs; "lorentz" and
    "lorentz-first" mean one - followed by n - 1 times +, "lorentz-last" has the - at the end.
    Anything else names a file of n numbers +1 and -1, in a row or a column.
    """
    text = text.strip()
    path = file_of(text)
    counts = COUNTS.fullmatch(text)
    if counts is not None:
        p = int(counts[1])
        q = int(counts[2])
        _check_number_of_signs(text, p + q, n)  # before they are made
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
        message = f"must have {n} signs, one per column of the data, got {text} with {found}"
        raise OptionError("--signature", message)


def _signature_in(path: Path) -> Signature:
    found = stored(path, layout=Layout(index="no"))
    signs = entries(found)
    if signs.size != max(found.shape, default=0) or signs.dtype.kind not in "fiu":
        message = f"must name a file with one row or column, got {path} of shape {found.shape}"
        raise OptionError("--signature", message)
    try:
        return Signature.of(np.ravel(signs))
    except ValueError as error:
        message = f"must name a file of +1 and -1, got {path}: {error}"
        raise OptionError("--signature", message) from error
