"""Jacobi rounds on a CUDA device against the bytes they must move: one table, and a sweep of tile
sizes.

python benchmarks/gpu_rounds.py [--sweep] [--plot docs/images/gpu_rounds.png]
"""

import argparse
import statistics
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from jorth import Signature, random_point
from jorth.kernels import Majoriser, QuadraticRounds, partners, tournament_rounds
from jorth.kernels.majoriser import FusedLaunch
from jorth.kernels.quadratic import CHUNK, TILES, Tiles, plain_round
from jorth.plane import random_matching, tournament

SIZES = (8192, 4096, 2048, 1024)
DTYPES = (torch.float64, torch.float32)
KERNELS = ("pair_coefficients", "solve_pairs", "turn_matrices")


def seconds(work, repeats=9):
    """The median time of one call on the device, by events."""
    work()
    found = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(found)


def copy_rate():
    """Bytes read and written a second by a large copy."""
    source = torch.randn(2**28, dtype=torch.float64, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 8 / seconds(lambda: target.copy_(source), 21)


def problem(n, dtype, with_c):
    """A random positive definite A, a C, and a point near the identity: what is timed does not
    depend on them."""
    torch.manual_seed(n)
    A = torch.randn(n, n, dtype=dtype, device="cuda") / n**0.5
    A = A @ A.mT + torch.eye(n, dtype=dtype, device="cuda")
    A = (A + A.mT) / 2
    C = torch.randn(n, n, dtype=dtype, device="cuda") / n if with_c else None
    signs = torch.from_numpy(Signature(n // 2, n - n // 2).signs.copy())
    rounds = QuadraticRounds(A, C, None, signs, all_components=False, theta=-1e-12)
    rounds.start(torch.eye(n, dtype=dtype, device="cuda"))
    return rounds


def pairings(n, kind, count=CHUNK):
    rng = np.random.default_rng(0)
    if kind == "tournament":
        return tournament_rounds(n, rng.permutation(n - 1)[:count])
    return partners(n, np.stack([random_matching(n, seed=rng) for _ in range(count)]))


def round_time(rounds, table):
    """Seconds a round, as a replayed graph of CHUNK rounds; the pairs are on the device already."""
    rounds.run(table)  # compiles
    rounds.run(table)  # captures
    return seconds(rounds._graph.replay) / CHUNK


def kernel_time(rounds, name):
    """Seconds of one of the three kernels by itself, over all the pairs that were uploaded last."""
    kernels = rounds._kernels
    code = kernels.code
    kernels.code = _Only(code, name)
    time = seconds(lambda: [kernels.round(turn) for turn in range(CHUNK)]) / CHUNK
    kernels.code = code
    return time


class _Only:
    """The kernels with all but one left out."""

    def __init__(self, code, name):
        self.code, self.name = code, name

    def __getattr__(self, name):
        return getattr(self.code, name) if name == self.name else _Nothing()


class _Nothing:
    def __getitem__(self, grid):
        return lambda *args, **kwargs: None


def plain_time(rounds, table):
    pairs = torch.from_numpy(
        np.stack([np.flatnonzero(np.arange(len(t)) < t) for t in table[:1]])
    ).cuda()[0]
    pairs = torch.stack([pairs, torch.from_numpy(table[0]).cuda()[pairs]], dim=1)
    X, Y, signs = rounds.X.clone(), rounds.Y.clone(), rounds.signs
    return seconds(
        lambda: plain_round(
            rounds.A, rounds.C, X, Y, pairs, signs, factor=1.0, theta=-1e-12, all_components=False
        ),
        3,
    )


def full_table(rate):
    print(f"copy rate {rate / 1e12:.2f} TB/s (read and written)")
    print(
        "    n dtype   C   pairs       floor us  round us  ratio  | coeff  solve  apply us | "
        "plain torch ratio"
    )
    rows = []
    for dtype, n, with_c in product(DTYPES, SIZES, (False, True)):
        rounds = problem(n, dtype, with_c)
        floor = (8 if with_c else 6) * n * n * dtype.itemsize / rate
        for kind in ("tournament", "random"):
            rounds._graph = None
            table = pairings(n, kind)
            rounds.start(torch.eye(n, dtype=dtype, device="cuda"))
            time = round_time(rounds, table)
            parts = [kernel_time(rounds, name) if n >= 4096 else float("nan") for name in KERNELS]
            plain = (
                plain_time(rounds, table) / floor
                if kind == "random" and n >= 4096
                else float("nan")
            )
            rows.append((n, dtype, with_c, kind, time / floor))
            inner = " ".join(f"{1e6 * part:6.1f}" for part in parts)
            print(
                f"{n:5d} {str(dtype)[6:]:8s} {'C' if with_c else '-'} {kind:11s} "
                f"{1e6 * floor:9.1f} "
                f"{1e6 * time:9.1f} {time / floor:6.2f}  | {inner}    | {plain:6.1f}",
                flush=True,
            )
        del rounds
        torch.cuda.empty_cache()
    return rows


DOTS = ((512, 4), (1024, 4), (1024, 8), (2048, 8))
TURNS = ((1, 512, 4), (1, 1024, 4), (2, 256, 4), (2, 512, 4), (2, 512, 8), (4, 256, 4), (4, 256, 8))


def sweep():
    """Times of the two large kernels over tile sizes, at n = 4096 and 8192; the best at 8192 are
    used from then on."""
    for dtype, n in product(DTYPES, (4096, 8192)):
        size, width = dtype.itemsize, 8 // dtype.itemsize
        rounds = problem(n, dtype, False)
        found = {"dot": {}, "tournament": {}, "random": {}}
        for kind in ("tournament", "random"):
            rounds.run(pairings(n, kind))
            for dot, warps in DOTS if kind == "tournament" else ():
                rounds._kernels.tiles = Tiles(dot * width, warps, *TILES[size][2:])
                found["dot"][dot * width, warps] = kernel_time(rounds, "pair_coefficients")
            for rows, turn, warps in TURNS:
                rounds._kernels.tiles = Tiles(*TILES[size][:2], rows, turn * width, warps)
                found[kind][rows, turn * width, warps] = kernel_time(rounds, "turn_matrices")
        for name, times in found.items():
            print(f"sweep n={n} {str(dtype)[6:]} {name}:", end=" ")
            print(
                ", ".join(
                    f"{1e6 * time:.0f}us {tile}"
                    for tile, time in sorted(times.items(), key=lambda t: t[1])
                )
            )
        best = [min(found[name], key=found[name].get) for name in ("dot", "tournament")]
        if n == 8192:
            TILES[size] = Tiles(*best[0], *best[1])
            print("tiles", str(dtype)[6:], TILES[size], flush=True)
        del rounds
        torch.cuda.empty_cache()


def batched():
    """300 matrices 36 x 36: one round, and a tournament, by one launch and in plain torch."""
    sig = Signature(18, 18)
    for dtype in DTYPES:
        X = random_point(sig, cond=4.0, batch=(300,), dtype=dtype, device="cuda")
        G = torch.randn_like(X)
        for name, rounds in (
            ("round", tournament(36, seed=0)[:1]),
            ("tournament", tournament(36, seed=0)),
        ):
            for all_components in (False, True):
                engine = Majoriser(sig, all_components)
                call = seconds(partial(engine.fused_rounds, X, G, 10.0, rounds))
                graph = torch.cuda.CUDAGraph()
                kernel = seconds(_captured(graph, FusedLaunch(engine, X, G, 10.0, rounds)).replay)
                print(
                    f"batch 300 x 36 x 36 {str(dtype)[6:]} {name:10s} all components "
                    f"{all_components!s:5s}: whole call "
                    f"{1e6 * call:7.1f} us, on the device {1e6 * kernel:7.1f} us "
                    f"({1e6 * kernel / len(rounds):.1f} a round)",
                    flush=True,
                )
        plain = seconds(
            partial(Majoriser(sig).torch_rounds, X, G, 10.0, tournament(36, seed=0)[:1]), 3
        )
        print(
            f"batch 300 x 36 x 36 {str(dtype)[6:]} round in plain torch: {1e6 * plain:.1f} us",
            flush=True,
        )


def _captured(graph, launch):
    """The launch alone: inputs converted and pairs uploaded beforehand."""
    launch.run()
    with torch.cuda.graph(graph):
        launch.run()
    return graph


def plot(rows, rate, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5))
    for dtype, with_c, kind in product(DTYPES, (False, True), ("tournament", "random")):
        chosen = [(n, ratio) for n, d, c, k, ratio in rows if (d, c, k) == (dtype, with_c, kind)]
        label = f"{str(dtype)[6:]}{', C' if with_c else ''}, {kind}"
        axes.plot(*zip(*chosen, strict=True), "o-" if kind == "tournament" else "s--", label=label)
    axes.set_xscale("log", base=2)
    axes.axhline(1.3, color="grey", lw=0.8)
    axes.set(
        xticks=SIZES, xticklabels=SIZES, xlabel="n", ylabel="time of a round / bytes at copy rate"
    )
    axes.set_title(f"Jacobi rounds on an H200, copy rate {rate / 1e12:.2f} TB/s", fontsize=10)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--plot")
    arguments = parser.parse_args()
    if arguments.sweep:
        sweep()
    rate = copy_rate()
    rows = full_table(rate)
    batched()
    if arguments.plot:
        plot(rows, rate, arguments.plot)


if __name__ == "__main__":
    main()
