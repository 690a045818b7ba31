"""Compiled functions: kept on the disk where a folder for that can be written to. Import where used: it loads numba."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def compiler(*, fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """A decorator that compiles a function the first time it is called, once for each kind of arguments.

    IEEE arithmetic: a division by zero is inf or NaN, not an exception; ``fastmath`` names what is given up. The result
    is kept beside the source, in the cache of the user or in the folder that NUMBA_CACHE_DIR names. Where none of them
    can be written to, every process compiles anew.
    """
    compile_later: Any = njit(error_model="numpy", fastmath=fastmath)

    def decorate(function: Function) -> Function:
        made: Any = compile_later(function)
        with suppress(RuntimeError):  # no folder to keep it in
            made._cache = _Cache(function)
        compiled: Function = made
        return compiled

    return decorate


class _Cache(FunctionCache):
    """A cache that a full disk, or a folder gone since, makes slow and not fail."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was kept of a function for a kind of arguments; None where nothing was."""
        with suppress(OSError):
            return super().load_overload(signature, target)

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep what was compiled, if that can be done."""
        with suppress(OSError):
            super().save_overload(signature, data)
