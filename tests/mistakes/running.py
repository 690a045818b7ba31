"""Mistakes made in a folder of their own: the error of the code, or the output of the command."""

from __future__ import annotations

import os
import shlex
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import jorth
from jorth.cli import main
from tests.mistakes.case import Mistake

PACKAGE = Path(jorth.__file__).parent
PREAMBLE = """
import numpy as np
import torch
import jorth
from jorth import datasets, estimators, kge, nn, optim, plane, stopping, ultrahyperbolic

signature = jorth.Signature(3, 2)
X = np.eye(5)
X[[0, 3], [0, 3]], X[[0, 3], [3, 0]] = 1.25, 0.75  # a boost, which is J-orthogonal
A = np.diag([5.0, 4.0, 3.0, 2.0, 1.0])
objective = jorth.Quadratic(A)
source = np.vander(np.linspace(-1, 1, 20), 5)
target = source @ X
lorentz = jorth.Signature.lorentz(3)
points = ultrahyperbolic.lift(np.linspace(-1, 1, 18).reshape(6, 3), lorentz)
layer = nn.JOrthogonalLinear(signature)
graph = kge.hierarchy_with_cycles(depth=2)
model = kge.UltraE(4, 2, signature=jorth.Signature(3, 1))
named = kge.NamedModel(model, ["Rome", "Oslo", "Italy", "Norway"], ["capital_of", "in"])
""".strip()


@dataclass(frozen=True)
class Made:
    """What came of a mistake: the kind of error or the exit code, its text, and its place."""

    kind: str
    message: str
    place: str
    error: BaseException | None = None


@contextmanager
def workplace(folder: Path) -> Iterator[dict[str, Any]]:
    """Work in a folder that has the files of the cases; the names of the preamble are returned."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        names: dict[str, Any] = {}
        exec(PREAMBLE, names)
        _write_files(folder, names)
        yield names
    finally:
        os.chdir(before)


def _write_files(folder: Path, names: dict[str, Any]) -> None:
    np.savetxt("A.csv", names["A"], delimiter=",")
    np.savetxt("source.csv", names["source"], delimiter=",")
    np.savetxt("target.csv", names["target"], delimiter=",")
    np.savetxt("short.csv", names["target"][:-1], delimiter=",")
    np.savetxt("tilted.csv", np.triu(np.ones((5, 5))), delimiter=",")
    np.savez("several.npz", first=names["A"], second=names["A"])
    texts = {
        "words.csv": "name,age\nAda,36\nGrace,85\n",
        "ragged.csv": "1,2,3\n4,5\n",
        "empty.csv": "",
        "signs.txt": "1\n1\n2\n-1\n-1\n",
        "broken.npy": "this is not an array",
        "settings.toml": "p = 3\nlearning_rate = 0.1\n",
        "broken.toml": "p = = 3\n",
        "pairs/train.txt": "Rome\tcapital_of\n",
        "pairs/test.txt": "Rome\tcapital_of\n",
        "small/train.txt": "Rome\tcapital_of\tItaly\nOslo\tcapital_of\tNorway\n",
        "small/valid.txt": "Rome\tcapital_of\tItaly\n",
        "small/test.txt": "Oslo\tcapital_of\tNorway\n",
        "rows/rows.jsonl": "not JSON\n",
        "queries.txt": "Rome\tcapital_of\n",
        "a_file": "",
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "nothing").mkdir()
    jorth.kge.save_model("model", names["named"])


def make(case: Mistake, names: dict[str, Any]) -> Made:
    """Make a mistake in the current folder."""
    return _command(case.code) if case.is_command else _python(case.code, dict(names))


def _python(code: str, names: dict[str, Any]) -> Made:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, "<mistake>", "exec"), names)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        return Made(type(error).__name__, str(error), place, error)
    return Made("none", "no error", "")


def _command(line: str) -> Made:
    arguments = shlex.split(line)[1:]
    outcome = CliRunner().invoke(main, arguments, prog_name="jorth")
    error = outcome.exception
    if error is not None and not isinstance(error, SystemExit):
        return Made(type(error).__name__, str(error), "a traceback on the terminal", error)
    text = outcome.stderr.strip() or outcome.output.strip()
    message = text.partition("Error: ")[2] or text
    return Made(f"exit {outcome.exit_code}", " ".join(message.split()), str(PACKAGE))
