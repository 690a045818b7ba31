"""Compile every Triton kernel for a GPU that is not there, as the package launches it.

Triton's interpreter runs Python, so that it takes kernels which Triton's compiler rejects. Here the
host code runs on the CPU, and each launch compiles its kernel for compute capability 9.0 instead.
"""

import itertools

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import jorth._triton

TYPES = {
    torch.float64: "*fp64",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int16: "*i16",
    torch.int8: "*i8",
}
compiled: set[tuple[str, str, str]] = set()


def type_of(parameter, value):
    """Return Triton's name of the type of an argument."""
    if isinstance(value, torch.Tensor):
        return TYPES[value.dtype]
    if isinstance(value, float):
        return parameter.annotation_type or "fp32"
    return "i32"


def compile_only(kernel, *arguments, grid=None, warmup=False, **options):
    """Stand in for a launch."""
    given = dict(zip(kernel.arg_names, arguments, strict=False))
    given |= {name: options.pop(name) for name in kernel.arg_names if name in options}
    constants = {(p.num,): given[p.name] for p in kernel.params if p.is_constexpr}
    types = {
        p.name: "constexpr" if p.is_constexpr else type_of(p, given[p.name]) for p in kernel.params
    }
    key = kernel.fn.__name__, str(types), str(constants)
    if key not in compiled:
        compiled.add(key)
        target = GPUTarget("cuda", 90, 32)
        triton.compile(ASTSource(kernel, types, constants), target=target, options=options)


def main():
    """Run all host code that launches a kernel."""
    jorth._triton.runs_triton = lambda device: True  # before others import it
    triton.runtime.jit.JITFunction.run = compile_only
    from jorth.kge._loss_triton import loss_and_gradients, write_squared_arcs
    from jorth.kge.loss import Exclusions
    from jorth.optim import jobcd
    from jorth.plane import tournament
    from jorth.plane.rounds import QuadraticRounds

    jobcd.runs_compiled = lambda p: False
    n = 6
    sig = jorth.Signature(4, 2)
    for dtype, with_c, with_d in itertools.product(
        (torch.float64, torch.float32), (False, True), (False, True)
    ):
        eye = torch.eye(n, dtype=dtype)
        C, D = (eye if wanted else None for wanted in (with_c, with_d))
        rounds = QuadraticRounds(eye, C, D, n, sig.vector(eye), False, 0.0)
        rounds.start(eye)
        rounds.run(tournament(n)[:1])
    for size, dtype in itertools.product((6, 33), (torch.float64, torch.float32)):
        for lr in (0.1, torch.tensor(0.1)):
            p = torch.nn.Parameter(torch.eye(size, dtype=dtype).repeat(2, 1, 1))
            p.grad = torch.ones_like(p)
            jorth.optim.JOBCD([p], jorth.Signature(size - 1, 1), lr=lr).step()
    for dtype, smoothing in itertools.product((torch.float64, torch.float32), (0.0, 0.1)):
        points, bias = torch.ones(4, 3, dtype=dtype), torch.zeros(4, dtype=dtype)
        label = torch.zeros(4, dtype=torch.int64)
        for excluded in (None, Exclusions(label, label, label, label)):
            loss_and_gradients(points, points, bias, bias, 1.0, smoothing, excluded)
        for slope in (None, bias.clone()):
            write_squared_arcs(bias, bias.clone(), slope)
    print("compiled", *sorted({name for name, *_ in compiled}))


if __name__ == "__main__":
    main()
