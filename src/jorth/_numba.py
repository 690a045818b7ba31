"""Functions compiled by numba and cached on disk. Import where used: it loads numba."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from numba import njit, types
from numba.core import event
from numba.extending import overload

Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger("jorth.numba")


def compiler(
    *,
    fastmath: bool | set[str] = False,
    nogil: bool = False,
    inline: bool = False,
    internal: bool = False,
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function on its first call with each kind of arguments.

    A division by zero gives inf or NaN as in IEEE arithmetic. The code is cached beside the source,
    in the user's cache, or in the folder of NUMBA_CACHE_DIR. ``fastmath`` names the guarantees to
    give up. Code is put ``inline`` where calls with arrays are slow. What is ``internal`` is called
    by compiled code only, and needs no wrapper.
    """
    options: Any = {"fastmath": fastmath, "nogil": nogil, "forceinline": inline}
    options |= {"error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": internal}

    def decorate(function: Function) -> Function:
        _Report.functions.add(function)
        if internal:  # a part of its callers, which are cached
            return cast(Function, njit(**options)(function))
        try:
            return cast(Function, njit(cache=True, **options)(function))
        except RuntimeError:  # no writable folder
            return cast(Function, njit(**options)(function))

    return decorate


def by_precision(function: Any, single: Any, double: Any) -> None:
    """Let compiled code that calls ``function`` have the code for the type of its argument."""

    @overload(function, jit_options={"forceinline": True})
    def chosen(x: Any) -> Any:
        code = single if x == types.float32 else double

        def call(x: Any) -> Any:
            return code(x)

        return call


class _Report(event.Listener):
    """Say that one of our functions is compiled, which takes seconds; not of what it calls.

    The log has all of them. A person at a terminal or a notebook is told once.
    """

    functions: ClassVar[set[Any]] = set()
    depth = 0
    told = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self.depth == 0 and function in self.functions:
            # as a bool: the handler of the command line takes itself out of the list
            silent = bool(self.told or log.handlers) or not _is_watched(sys.stderr)
            log.info("compiling %s, once per machine", function.__qualname__)
            if not silent:
                note = "jorth compiles its loops, once on this machine; this takes some seconds"
                print(note, file=sys.stderr, flush=True)
            type(self).told = True
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1


def _is_watched(stream: Any) -> bool:
    """Return whether a stream goes to a terminal or to a notebook."""
    in_notebook = type(stream).__module__.startswith("ipykernel")
    return in_notebook or (stream is not None and stream.isatty())


event.register("numba:compile", _Report())
