"""What is asked for: files in, files out, method, limits. All that can be wrong with the names alone is found here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal

from jorth.file_problems.errors import OptionError
from jorth.file_problems.signature_text import file_of
from jorth.storage.matrices import CONTAINERS, READABLE, WRITABLE

DIRECT = "direct"


@dataclass(frozen=True)
class Request:
    """One problem to solve.

    Attributes:
        problem: "eigen", "procrustes" or "quadratic".
        matrices: The files by the names that the matrices have in the formulas, in the order of the command line.
        signature: As `signature_from` reads it.
        output: The file for X.
        methods: Names; several are a chain, "direct" is `jorth.eigh`.
        keys: Variables of the .npz and .mat files among the matrices: one for each, or one for all.
        start: The file of the start; the identity when omitted.
        options: Of the method, as name=value.
        limits: max_iterations, max_time, max_evaluations.
        history: A .csv file for the history.
        command: The command in words, for the record.
    """

    problem: Literal["eigen", "procrustes", "quadratic"]
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
        found = dict(self.matrices)
        if self.start is not None:
            found["x0"] = self.start
        signs = file_of(self.signature)
        if signs is not None:
            found["signature"] = signs
        return found

    def outputs(self) -> dict[str, Path]:
        """Every file that is written; the record comes last."""
        found = {"x": self.output}
        if self.direct:
            found["eigenvalues"] = self.output.with_name(
                f"{self.output.stem}_eigenvalues{self.output.suffix}"
            )
        if self.history is not None:
            found["history"] = self.history
        return {**found, "record": self.output.with_suffix(".json")}

    def key_of(self) -> dict[str, str | None]:
        """The variable to read from each of the matrices."""
        containers = [
            name for name, path in self.matrices.items() if path.suffix.lower() in CONTAINERS
        ]
        if (self.keys and len(self.keys) not in {1, len(containers)}) or (
            self.keys and not containers
        ):
            raise OptionError(
                "--key",
                f"must be given once, or once for each .npz or .mat file ({len(containers)} here), "
                f"got {', '.join(self.keys)}",
            )
        keys = self.keys * len(containers) if len(self.keys) == 1 else self.keys
        return dict.fromkeys(self.matrices) | dict(zip(containers, keys, strict=False))

    def check(self) -> None:
        """All errors of the options among themselves, before any work is done; an OptionError names the option."""
        self._check_endings()
        self._check_direct()
        self.key_of()
        _check_distinct(self.inputs(), self.outputs())

    def make_folders(self) -> None:
        """Make the folders of the outputs, and see that they can be written to while nothing is lost yet."""
        for path in self.outputs().values():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() or not os.access(path.parent, os.W_OK):
                raise OptionError(
                    "--output", f"must be where files can be written, which {path} is not"
                )

    def _check_endings(self) -> None:
        if self.output.suffix.lower() not in WRITABLE:
            raise OptionError("--output", f"must end in {', '.join(WRITABLE)}, got {self.output}")
        if self.history is not None and self.history.suffix.lower() != ".csv":
            raise OptionError("--history", f"must end in .csv, got {self.history}")
        for name, path in self.matrices.items():
            if path.suffix.lower() not in READABLE:
                raise OptionError(name.upper(), f"must end in {', '.join(READABLE)}, got {path}")

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


def _check_distinct(inputs: dict[str, Path], outputs: dict[str, Path]) -> None:
    """No output is an input, and no two outputs are one file."""
    for what, path in outputs.items():
        option = "--history" if what == "history" else "--output"
        for read in inputs.values():
            if _same(path, read):
                raise OptionError(
                    option, f"must not replace an input: {path}, the {what}, is {read}"
                )
    for (_, first), (what, second) in combinations(outputs.items(), 2):
        if _same(first, second):
            option = "--history" if what == "history" else "--output"
            raise OptionError(option, f"must be another file: {second} is written already")


def _same(first: Path, second: Path) -> bool:
    """Whether two names are one file, through links too."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()
