"""The rooms of the library and their share of the cases."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from types import ModuleType

from tests.fuzz import core, estimators, graphs, solvers, torch_side
from tests.fuzz.calls import Case, cases
from tests.fuzz.judge import RIGHT, Verdict, judge

ROOMS: dict[str, tuple[ModuleType, float]] = {
    "core": (core, 0.5),
    "solvers": (solvers, 0.25),
    "torch_side": (torch_side, 0.1),
    "estimators": (estimators, 0.075),
    "graphs": (graphs, 0.075),
}


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """A working folder of its own."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run(room: str, count: int, base: int) -> list[Verdict]:
    """The verdicts on the right calls of a room and on its share of ``count`` cases."""
    module, share = ROOMS[room]
    with empty_folder():  # some paths are relative
        right = [judge(Case(call, {}, base)) for call in module.CALLS]
        wrong = [verdict for verdict in right if verdict.outcome != RIGHT]
        assert not wrong, f"a right call fails: {wrong[0]}"
        return right + [judge(case) for case in cases(module.CALLS, round(share * count), base)]
