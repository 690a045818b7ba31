"""Functions compiled by numba and cached on disk. Import where used: it loads numba."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.core.caching import FunctionCache
from numba.extending import overload

from jorth.waiting import before_compiling

Function = TypeVar("Function", bound=Callable[..., Any])


def compiler(
    *, fastmath: bool | set[str] = False, nogil: bool = False, inline: bool = False
) -> Callable[[Function], Function]:
    """A decorator that compiles a function on its first call with each combination of types.

    A division by zero gives inf or NaN as in IEEE arithmetic, not an exception; ``fastmath`` names
    the guarantees to give up, ``nogil`` lets other threads run meanwhile, and ``inline`` puts the
    code into every function that calls it: calls with arrays are slow. The code is cached beside
    the source, in the user's cache, or in the folder of NUMBA_CACHE_DIR. If none is writable, every
    process compiles again.
    """

    def decorate(function: Function) -> Function:
        options: Any = {"fastmath": fastmath, "nogil": nogil, "forceinline": inline}
        compiled: Any = njit(error_model="numpy", **options)(function)
        with suppress(RuntimeError):  # no writable folder
            compiled._cache = _Cache(function)
        return cast(Function, compiled)

    return decorate


def by_precision(function: Any, single: Any, double: Any) -> None:
    """Let compiled code that calls ``function`` have the code for the type of its argument."""

    @overload(function, jit_options={"forceinline": True})
    def chosen(x: Any) -> Any:
        code = single if x == types.float32 else double

        def call(x: Any) -> Any:
            return code(x)

        return call


class _Cache(FunctionCache):
    """A cache that ignores a full disk, a missing folder, and what refers to modules that moved."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        found = None
        with suppress(OSError, ImportError, AttributeError):
            found = super().load_overload(signature, target)
        if found is None:
            for call in before_compiling:
                call()
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(signature, data)
