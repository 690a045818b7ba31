"""An iteration of Riemannian L-BFGS on a CUDA device against its matrix products, and batches of
small Procrustes problems.

"factorisations" is the way of the CPU on the device: an eigendecomposition for the preconditioner,
LU for the Cayley step. "products" is what a run on a device does.

python benchmarks/gpu_lbfgs.py [--sizes 1024 4096] [--count 10000000] [--device cuda]
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from unittest import mock

import torch
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import jorth
from jorth import RiemannianLBFGS, Signature
from jorth.solvers.device_batches import minimize_many
from jorth.solvers.riemannian import scalars

EXACT = 16.7 / 2
"""The products of an iteration with the eigenbasis at hand, its LU counted as 8/3 n^3."""
GAP = 1e-8
"""The relative gap at which a run ends."""
BATCHES = (
    (3, 2, 20, 1.0),
    (4, 3, 20, 1.0),
    (8, 4, 40, 0.05),
    (16, 15, 80, 0.01),
    (33, 32, 160, 0.002),
)
"""n, p, m, and the share of the problems of n = 4."""


def wait(device):
    if device != "cpu":
        torch.cuda.synchronize()


# -- L-BFGS


def orthogonal(n, generator):
    M = torch.randn(n, n, generator=generator, dtype=torch.float64, device=generator.device)
    Q = torch.linalg.qr(M).Q
    Q[:, 0] *= torch.linalg.slogdet(Q).sign
    return Q


def planted(n, condition, seed, device):
    """Planted noisy Procrustes, p = n / 2, m = 2 n, noise 0.1, point condition 10."""
    generator = torch.Generator(device).manual_seed(seed)
    k = n // 2
    turns = [torch.block_diag(*(orthogonal(k, generator) for _ in range(2))) for _ in range(2)]
    rapidity = torch.linspace(0, 0.5, k, dtype=torch.float64, device=device) * 2.302585
    ch, sh = torch.diag(rapidity.cosh()), torch.diag(rapidity.sinh())
    X = turns[0] @ torch.cat([torch.cat([ch, sh], 1), torch.cat([sh, ch], 1)]) @ turns[1]
    wide = torch.randn(2 * n, n, generator=generator, dtype=torch.float64, device=device)
    values = torch.logspace(0, -1, n, condition, dtype=torch.float64, device=device)
    source = (2 * n) ** 0.5 * torch.linalg.qr(wide).Q * values @ orthogonal(n, generator)
    noise = torch.randn(2 * n, n, generator=generator, dtype=torch.float64, device=device)
    return jorth.Procrustes(source, source @ X + 0.1 * noise)


class Timed(RiemannianLBFGS):
    """L-BFGS that notes the time and the products of each step."""

    def step(self, problem, state):
        device, n = state.X.device.type, len(state.X)
        before, evaluations = state.preconditioner.made_at, problem.objective.count.gradient
        counted = self.counter.get_total_flops() if self.counter else 0
        wait(device)
        began = time.perf_counter()
        super().step(problem, state)
        wait(device)
        spent = time.perf_counter() - began
        counted = (self.counter.get_total_flops() if self.counter else 0) - counted
        self.notes.append(
            {
                "seconds": spent,
                "products": counted / (2 * n**3),
                "made": state.preconditioner.made_at is not before,
                "trials": problem.objective.count.gradient - evaluations,
            }
        )


def run(objective, n, hosts, stop, counter=None):
    Timed.notes, Timed.counter = [], counter
    with mock.patch.object(scalars, "HOSTS", hosts):
        result = jorth.minimize(
            objective,
            signature=Signature(n // 2, n - n // 2),
            method=Timed(),
            gradient_tolerance=0.0,
            max_iterations=60,
            stop=stop,
        )
    return result, Timed.notes


def lbfgs(n, condition, seed, device, chosen):
    objective = planted(n, condition, seed, device)
    M = torch.randn(n, n, dtype=torch.float64, device=device)
    times = []
    for _ in range(30):
        wait(device)
        began = time.perf_counter()
        for _ in range(4):
            M @ M
        wait(device)
        times.append((time.perf_counter() - began) / 4)
    product = statistics.median(times)
    ways = {"factorisations": ("cpu", "cuda"), "products": ("cpu",) if device != "cpu" else ()}
    best = run(objective, n, ways["products"], jorth.stopping.RelativeDecrease(1e-11))[0].value
    stop = jorth.stopping.ValueBelow(best + GAP * abs(best))
    for name in chosen:
        hosts = ways[name]
        result, notes = min(
            (run(objective, n, hosts, stop) for _ in range(2)),
            key=lambda found: sum(note["seconds"] for note in found[1]),
        )
        counter = FlopCounterMode(display=False)
        with counter:
            counted = run(objective, n, hosts, stop, counter)[1]
        print(
            f"n {n}, condition {condition:g}, seed {seed}, {name}: {result.iterations} iterations, "
            f"{result.evaluations.gradient} evaluations, value {result.value:.12g}, "
            f"residual {result.residual:.1e}, a product {1e3 * product:.3g} ms"
        )
        for made in (True, False):
            rows = [
                k for k, note in enumerate(notes) if note["made"] == made and note["trials"] == 1
            ]
            if rows:
                spent = statistics.median(notes[k]["seconds"] for k in rows)
                needed = statistics.median(counted[k]["products"] for k in rows)
                what = "made" if made else "kept"
                print(
                    f"    preconditioner {what} ({len(rows)}): {1e3 * spent:.3g} ms, "
                    f"{needed:.3g} products, {needed * product / spent:.0%} of their rate; "
                    f"{EXACT * product / spent:.0%} by {EXACT:.3g} products"
                )
        total = sum(note["seconds"] for note in notes)
        share = sum(note["products"] for note in counted) * product / total
        exact = EXACT * sum(note["trials"] > 0 for note in notes) * product / total
        print(
            f"    whole run: {total:.3g} s, {share:.0%} of the product rate; "
            f"{exact:.0%} by {EXACT:.3g} products"
        )
        sys.stdout.flush()


# -- batches


def clouds(count, n, p, m, device, seed):
    """Source and target (count, m, n) with target = source X + noise, X a random Cayley step."""
    generator = torch.Generator(device).manual_seed(seed)
    signs = Signature(p, n - p).vector(torch.empty(0, dtype=torch.float64, device=device))

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, device=device)

    S = normal(count, n, n) / n
    K = signs[:, None] * (S - S.mT)
    identity = torch.eye(n, dtype=torch.float64, device=device)
    X = torch.linalg.solve(identity - K / 2, identity + K / 2)
    source = normal(count, m, n)
    return source, source @ X + 0.1 * normal(count, m, n), signs


def prepare(source, target, signs):
    """A, C and a start: the J-orthogonal factor of the least-squares solution, or the identity."""
    m = source.shape[1]
    A, C = source.mT @ source / m, -source.mT @ target / m
    M = torch.linalg.solve_ex(A, -C).result
    for _ in range(7):
        M = (M + signs[:, None] * torch.linalg.inv_ex(M).inverse.mT * signs) / 2
    identity = torch.eye(len(signs), dtype=M.dtype, device=M.device)
    defect = (M.mT * signs @ M - torch.diag(signs)).abs().amax((1, 2))
    good = (defect <= 1e-14 * M.square().sum((1, 2))) & (M.square().sum((1, 2)) <= 100 * len(signs))
    return A, C, torch.where(good[:, None, None], M, identity)


def solve(A, C, X, signs):
    x, _, _, iterations, status = minimize_many(A, C, signs, X, tolerance=1e-10, max_iterations=100)
    return x, iterations, status


def batch(n, p, m, count, device):
    """Chunks of data that fit the device are made first, and their time does not count."""
    size = min(count, max(1, 2**33 // (16 * m * n)))
    spent, statuses, worst, steps = [0.0, 0.0], torch.zeros(5, dtype=torch.int64), 0.0, 0.0
    for turn, start in enumerate(range(0, count, size)):
        source, target, signs = clouds(min(size, count - start), n, p, m, device, 1000 + turn)
        if turn == 0:  # load what a first call loads
            solve(*prepare(source[:64], target[:64], signs), signs)
        wait(device)
        times = [time.perf_counter()]
        A, C, X = prepare(source, target, signs)
        wait(device)
        times.append(time.perf_counter())
        x, iterations, status = solve(A, C, X, signs)
        wait(device)
        times.append(time.perf_counter())
        spent = [spent[k] + times[k + 1] - times[k] for k in range(2)]
        statuses += torch.bincount(status.cpu(), minlength=5)
        steps += float(iterations.double().sum())
        defect = (x.mT * signs @ x - torch.diag(signs)).abs().amax((1, 2))
        worst = max(worst, float((defect / x.square().sum((1, 2))).max()))
    total = sum(spent)
    print(
        f"{count} x n {n}, p {p}, m {m}: {total:.3g} s ({spent[0]:.3g} preparation, "
        f"{spent[1]:.3g} solving), {count / total:.3g} per second, {steps / count:.3g} iterations, "
        f"status counts {statuses.tolist()}, "
        f"residual {worst:.1e}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1024, 4096])
    parser.add_argument("--conditions", type=float, nargs="*", default=[3.0, 30.0])
    parser.add_argument("--ways", nargs="*", default=["factorisations", "products"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--count", type=int, default=10_000_000)
    arguments = parser.parse_args()
    if arguments.device != "cpu":
        print(torch.cuda.get_device_name(0), torch.__version__)
    for n in arguments.sizes:
        for condition in arguments.conditions:
            for seed in arguments.seeds:
                lbfgs(n, condition, seed, arguments.device, arguments.ways)
    for n, p, m, share in BATCHES:
        count = int(arguments.count * share)
        if count:
            batch(n, p, m, count, arguments.device)


if __name__ == "__main__":
    main()
