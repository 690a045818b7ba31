"""Functions compiled by numba and cached on disk; import this where it is used, it is heavy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def compiler(*, fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """A decorator that compiles a function on its first call with each kind of arguments.

    A division by zero is inf or NaN, not an exception, as in IEEE arithmetic; ``fastmath`` names
    the guarantees that are given up. The code is cached beside the source, in the user's cache or
    in the folder that NUMBA_CACHE_DIR names. If none is writable, every process compiles anew.
    """
    compile_later: Any = njit(error_model="numpy", fastmath=fastmath)

    def decorate(function: Function) -> Function:
        made: Any = compile_later(function)
        with suppress(RuntimeError):  # no writable folder
            made._cache = _Cache(function)
        compiled: Function = made
        return compiled

    return decorate


class _Cache(FunctionCache):
    """A cache for which a full disk or a folder that has gone is slow, but no error."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        with suppress(OSError):
            return super().load_overload(signature, target)

    def save_overload(self, signature: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(signature, data)
