"""Functions compiled by numba and cached on disk. Import where used: it loads numba."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from llvmlite.binding import parse_assembly  # type: ignore[import-untyped]
from llvmlite.ir import Constant, GlobalVariable, IntType  # type: ignore[import-untyped]
from numba import config, njit, types, version_info
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import overload
from numba.np.linalg import F_INT_nbtype, F_INT_nptype

from jorth.terminal import before_compiling

Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger(__name__)

INTERPRETED = bool(getattr(config, "DISABLE_JIT", 0))
"""Whether NUMBA_DISABLE_JIT is set, so that compiled functions are Python."""
LINKS_PARTS = (0, 59) <= version_info.short < (0, 69) and not INTERPRETED
"""Whether `_Part` fits this numba. With others every function is compiled for itself: the code is
the same, and a first call takes two to four times as long."""

lapack_integer: Any = F_INT_nptype
_doubles = types.CPointer(types.float64)
lapack_solve: Any = types.ExternalFunction(
    "numba_xgesv",
    types.intc(
        types.char, types.intp, types.intp, _doubles, types.intp, types.CPointer(F_INT_nbtype),
        _doubles, types.intp,
    ),
)  # fmt: skip
"""LAPACK's gesv(kind, n, columns, a, n, pivots, b, n) in compiled code, with kind = ord("d").

The arrays are ``.ctypes`` of contiguous ones in Fortran's order, pivots of `lapack_integer`;
returns 0 if a is regular.
`np.linalg.solve` is the same, but its error messages take seconds to compile.
"""


def compiler(
    *, fastmath: bool | set[str] = False, nogil: bool = False, inline: bool = False
) -> Callable[[Function], Function]:
    """A decorator that compiles a function on its first call with each combination of types.

    A division by zero gives inf or NaN as in IEEE arithmetic, not an exception; ``fastmath`` names
    the guarantees to give up, ``nogil`` lets other threads run meanwhile, and ``inline`` puts the
    code into every function that calls it: calls with arrays are slow. The code is cached beside
    the source, in the user's cache, or in the folder of NUMBA_CACHE_DIR. If none is writable, every
    process compiles again.

    Machine code is made of a function with all that it calls, at once: what compiled code calls is
    only a part of its callers, without a wrapper for calls from Python.
    """

    def decorate(function: Function) -> Function:
        options: Any = {"fastmath": fastmath, "nogil": nogil, "forceinline": inline}
        options |= {"error_model": "numpy"}
        compiled = _with_parts(function, options) if LINKS_PARTS else njit(**options)(function)
        with suppress(RuntimeError):  # no writable folder
            compiled._cache = _Cache(function)
        return cast(Function, compiled)

    return decorate


def _with_parts(function: Callable[..., Any], options: Any) -> Any:
    """A compiled function whose callers get it as a part, without wrappers for Python."""
    options |= {"pipeline_class": _WholeCompiler}
    compiled: Any = njit(**options)(function)
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    part: Any = njit(**options)(function)
    compiled.get_call_template = part.get_call_template  # asked by callers' compilation
    compiled.get_overload = part.get_overload
    return compiled


def by_precision(function: Any, single: Any, double: Any) -> None:
    """Let compiled code that calls ``function`` have the code for the type of its argument."""

    @overload(function, jit_options={"forceinline": True})
    def chosen(x: Any) -> Any:
        code = single if x == types.float32 else double

        def call(x: Any) -> Any:
            return code(x)

        return call


class _Part(JITCodeLibrary):
    """Code that is only linked into its callers, so that LLVM need not optimise and emit it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """As seen by numba when it sets the environment of a function, which has to exist first."""
        return _PartCodegen(self._codegen)


class _PartCodegen:
    """The code generator, with a place for the environment of a function that is not emitted."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        codegen = self._codegen
        if not codegen._engine.is_symbol_defined(name):
            module = codegen._create_empty_module(name)
            place = GlobalVariable(module, IntType(8).as_pointer(), name)
            place.linkage, place.initializer = "common", Constant(place.value_type, None)
            codegen._add_module(parse_assembly(str(module)))
            codegen._engine.finalize_object()
        codegen.set_env(name, environment)


class _WholeCompiler(Compiler):
    """Compiles all that a function calls, numba's own functions too, as parts of it."""

    def compile_extra(self, function: Any) -> Any:
        codegen = self.state.targetctx.codegen()
        outer = codegen._library_class
        if outer is not _Part:
            log.info("compiling %s, once per machine", function.__qualname__)
        self.state.library = codegen.create_library(function.__qualname__)
        self.state.library.enable_object_caching()
        codegen._library_class = _Part
        try:
            return super().compile_extra(function)
        finally:
            codegen._library_class = outer


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
