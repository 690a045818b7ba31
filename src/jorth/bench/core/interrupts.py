"""Ctrl-C in a run of `minimize`, which returns what it has, ends the benchmark."""

from __future__ import annotations

from jorth.solvers import Result, Status


def uninterrupted(result: Result) -> Result:
    """The result, or a KeyboardInterrupt if its run was interrupted."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result
