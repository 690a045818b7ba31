"""Compare two versions of jorth: the results of fixed runs, and the time of their hot paths.

    git worktree add ../other COMMIT
    python scripts/compare_versions.py ../other/src src

The runs cover every method, optimiser and estimator, with fixed seeds. They are short, so that
differences of rounding have not grown: two versions that compute the same agree to about 1e-12.
A run that a version does not know is shown with its error. For the times both versions wait in a
process of their own and take turns, so that a busy machine slows down both; the table shows the
median of the ratios new / old in processor seconds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
import torch

import jorth
from jorth import Signature

SIG = Signature(5, 3)


def procrustes_data(m=40, seed=1):
    return jorth.datasets.planted_procrustes(m, SIG, noise=0.05, seed=seed)[:2]


def procrustes():
    return jorth.Procrustes(*procrustes_data())


def trace():
    M = np.random.default_rng(2).standard_normal((8, 8))
    return jorth.HyperbolicEigenvalue(A=M @ M.T / 8 + 0.2 * np.eye(8))


def smooth(X):
    return torch.log1p((X - 0.3).square()).sum()


def finite_sum():
    data = torch.from_numpy(np.random.default_rng(4).standard_normal((60, 8)))
    return jorth.FiniteSum(lambda X, rows: torch.log1p((rows @ X).square()).sum(dim=1).mean(), data)


def probe():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((30, 8))
    distances = np.abs(rows[:, None, :3] - rows[None, :, :3]).sum(-1)
    return jorth.StructuralProbe(rows, distances, signature=SIG)


def solve(objective, method, iterations, options):
    result = jorth.minimize(objective, signature=SIG, method=method, max_iterations=iterations,
                            gradient_tolerance=0.0, **options)  # fmt: skip
    return [result.value, *np.asarray(result.x).ravel().tolist()]


def train(optimizer, weight, loss):
    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(10):
        optimizer.step(closure)
    return weight().detach().ravel().tolist()


def trained(kind, **options):
    X = jorth.random_point(SIG, cond=3.0, seed=6)
    weight = torch.nn.Parameter(torch.from_numpy(np.stack([X] * 3)))
    target = torch.from_numpy(np.random.default_rng(7).standard_normal((3, 8, 8)))
    optimizer = kind([weight], SIG, lr=0.05, **options)
    return train(optimizer, lambda: weight, lambda: (weight - target).square().mean())


def parametrised():
    layer = jorth.nn.JOrthogonalLinear(SIG, dtype=torch.float64, cond=3.0)
    rows = torch.from_numpy(np.random.default_rng(8).standard_normal((20, 8)))
    jorth.nn.cs_parametrization(layer, "weight", SIG)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    return train(optimizer, lambda: layer.weight, lambda: torch.log1p(layer(rows).square()).mean())


def aligner():
    source, target = procrustes_data()
    fitted = jorth.estimators.LorentzAligner(signature=SIG).fit(source, target)
    return np.asarray(fitted.transform(source)).ravel().tolist()


def pca():
    space = np.random.default_rng(9).standard_normal((50, 4))
    points = np.column_stack([space, np.sqrt(1 + (space**2).sum(1))])
    return np.asarray(jorth.estimators.HyperbolicPCA(2).fit_transform(points)).ravel().tolist()


def probe_estimator():
    rows = np.random.default_rng(10).standard_normal((25, 5))
    distances = np.abs(rows[:, None, :2] - rows[None, :, :2]).sum(-1)
    fitted = jorth.estimators.StructuralProbeEmbedding(max_iterations=5).fit(rows, distances)
    return np.asarray(fitted.transform(rows)).ravel().tolist()


SOLVED = (
    (procrustes, "gs-jobcd", 20, {}),
    (procrustes, "gs-jobcd", 10, {"order": "cyclic"}),
    (procrustes, "gs-jobcd", 10, {"components": "all"}),
    (procrustes, "gs-jobcd", 6, {"accelerate": True}),
    (trace, "gs-jobcd", 3, {"side": "right"}),
    (lambda: smooth, "gs-jobcd", 2, {}),
    (procrustes, "j-jobcd", 15, {}),
    (procrustes, "j-jobcd", 15, {"rounds_per_gradient": 1}),
    (procrustes, "j-jobcd", 10, {"rounds_per_gradient": 1, "majoriser": "scalar"}),
    (probe, "j-jobcd", 15, {}),
    (procrustes, "vr-j-jobcd", 20, {}),
    (finite_sum, "vr-j-jobcd", 20, {}),
    (probe, "vr-j-jobcd", 15, {}),
    (procrustes, "umcm", 10, {}),
    (procrustes, "admm", 10, {}),
    (procrustes, "csdm", 5, {}),
    (procrustes, "csdm", 10, {"optimizer": "adam"}),
    (procrustes, "exponential", 5, {}),
    (lambda: smooth, "riemannian-sd", 8, {}),
    (lambda: smooth, "riemannian-cg", 8, {}),
    (lambda: smooth, "riemannian-lbfgs", 8, {}),
    (procrustes, "riemannian-lbfgs", 4, {}),
    (procrustes, "riemannian-newton", 4, {}),
    (lambda: smooth, "riemannian-newton", 3, {}),
)
RUNS = {
    " ".join([method, make.__name__.replace("<lambda>", "smooth"), *map(str, options.items())]): (
        partial(lambda make, *how: solve(make(), *how), make, method, iterations, options)
    )
    for make, method, iterations, options in SOLVED
} | {
    "eigh": lambda: jorth.eigh(trace().A, SIG)[0].tolist(),
    "hsvd": lambda: jorth.hsvd(procrustes_data()[0], SIG).S.tolist(),
    "procrustes": lambda: jorth.procrustes(*procrustes_data(), SIG).x.ravel().tolist(),
    "JOBCD": lambda: trained(jorth.optim.JOBCD),
    "JOBCD, one round": lambda: trained(jorth.optim.JOBCD, rounds_per_gradient=1),
    "VRJOBCD": lambda: trained(jorth.optim.VRJOBCD, momentum=0.5),
    "CS form, Adam": parametrised,
    "LorentzAligner": aligner,
    "HyperbolicPCA": pca,
    "StructuralProbeEmbedding": probe_estimator,
}


def planted(n):
    sig = Signature(n // 2, n - n // 2)
    return *jorth.datasets.planted_procrustes(2 * n, sig, noise=0.05, seed=1)[:2], sig


def solver_steps(method, n, iterations, f=None):
    """A call of `minimize`, on Procrustes unless there is a function."""
    source, target, sig = planted(n)
    f = f or jorth.Procrustes(source, target)
    limits = {"max_iterations": iterations, "gradient_tolerance": 0.0} if iterations else {}
    return lambda: jorth.minimize(f, signature=sig, method=method, **limits)


def newton(n):
    data = planted(n)
    return lambda: [jorth.procrustes(*data) for _ in range(1 + 200 // n**2)]


def optimizer_steps(n, batch, steps):
    generator = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.eye(n).repeat(batch, 1, 1))
    weight.grad = torch.randn(batch, n, n, generator=generator)
    optimizer = jorth.optim.JOBCD([weight], Signature(n - 1, 1), lr=1e-4)
    return lambda: [optimizer.step() for _ in range(steps)]


def ultra_e_steps(steps):
    model = jorth.kge.UltraE(2000, 10, signature=Signature(28, 4), dtype=torch.float32)
    optimizer = jorth.optim.JOBCD([model.relations], model.signature, lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    heads, relations, tails = (
        torch.randint(most, (500,), generator=generator) for most in (2000, 10, 2000)
    )

    def run():
        for _ in range(steps):
            model.zero_grad()
            scores = model.score_tails(heads, relations)
            torch.nn.functional.cross_entropy(scores, tails).backward()
            optimizer.step()

    return run


TIMED = {
    "procrustes by Newton, n = 4": lambda: newton(4),
    "procrustes by Newton, n = 16": lambda: newton(16),
    "procrustes by Newton, n = 50": lambda: newton(50),
    "pair steps, n = 32": lambda: solver_steps("gs-jobcd", 32, 40),
    "pair steps, n = 100": lambda: solver_steps("gs-jobcd", 100, 6),
    "pair steps, n = 256": lambda: solver_steps("gs-jobcd", 256, 1),
    "rounds, n = 32": lambda: solver_steps("j-jobcd", 32, 40, smooth),
    "rounds, n = 100": lambda: solver_steps("j-jobcd", 100, 6, smooth),
    "L-BFGS, n = 32": lambda: solver_steps("riemannian-lbfgs", 32, 40, smooth),
    "preconditioned L-BFGS, n = 100": lambda: solver_steps("riemannian-lbfgs", 100, None),
    "L-BFGS, n = 500": lambda: solver_steps("riemannian-lbfgs", 500, 3, smooth),
    "JOBCD, 64 of 8 x 8": lambda: optimizer_steps(8, 64, 40),
    "JOBCD, 33 x 33": lambda: optimizer_steps(33, 1, 60),
    "UltraE step": lambda: ultra_e_steps(2),
}


def attempt(run):
    """Return the numbers of a run, or what went wrong."""
    try:
        return run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:100]


def worker():
    """Answer requests on standard input: "results", or the name of a timed path."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    ready = {}
    for line in sys.stdin:
        name = line.strip()
        if name == "results":
            answer = {name: attempt(run) for name, run in RUNS.items()}
        else:
            if name not in ready:
                ready[name] = TIMED[name]()
                ready[name]()
            start = time.process_time()
            ready[name]()
            answer = time.process_time() - start
        print(json.dumps(answer), flush=True)


class Version:
    """A version of the package in a process of its own."""

    def __init__(self, source):
        environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--worker"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, text=True
        )

    def ask(self, name):
        print(name, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sources", nargs="*", help="the folders `src` of the old and the new version"
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker()
        return
    old, new = (Version(source) for source in options.sources)
    before, after = old.ask("results"), new.ask("results")
    print("largest relative difference of the results")
    for name, numbers in before.items():
        errors = [answer for answer in (numbers, after[name]) if isinstance(answer, str)]
        if errors:
            print(f"  {name:60s} {errors}")
            continue
        size = np.abs(numbers).max()
        print(f"  {name:60s} {np.abs(np.subtract(after[name], numbers)).max() / size:.1e}")
    print("time, new / old")
    for name in TIMED:
        ratios = []
        for turn in range(options.repeats):
            first, second = (old, new) if turn % 2 == 0 else (new, old)
            times = {first: first.ask(name)}
            times[second] = second.ask(name)
            ratios.append(times[new] / times[old])
        print(f"  {name:34s} {statistics.median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
