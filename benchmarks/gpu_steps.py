"""Whole steps of `jorth.optim.JOBCD` on a CUDA device beside torch.optim.Adam(fused=True).

Wall time of a step, time of its kernels and their number, and the share of the copy rate that its
least traffic is: X read and written, G read, and two averages per side read and written.

python benchmarks/gpu_steps.py [--sizes 1x33 62x8] [--dtype float32]
"""

import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import jorth

SIZES = ("1x33", "62x8", "1000x8", "10000x4", "64x64", "1x256", "64x256")
WARM_UP = 70
"""Steps until all shuffles of the pairs are on the device."""
COPY_RATE = 4.23e12
"""Bytes per second, read plus written, that a copy moves on an H200."""


def wall_time(step, repeats):
    """Microseconds per step, the median of five."""
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / repeats * 1e6)
    return statistics.median(times)


def kernel_time(step, repeats=10):
    """Microseconds on the device per step, and the number of launches."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(repeats):
            step()
        torch.cuda.synchronize()
    events = [event for event in seen.key_averages() if event.self_device_time_total > 0]
    total = sum(event.self_device_time_total for event in events)
    return total / repeats, sum(event.count for event in events) / repeats


def measure(b, n, dtype):
    """One row of the table."""
    X, Y = (
        torch.nn.Parameter(torch.eye(n, dtype=dtype, device="cuda").repeat(b, 1, 1))
        for _ in range(2)
    )
    X.grad = Y.grad = torch.randn(b, n, n, dtype=dtype, device="cuda")
    jobcd = jorth.optim.JOBCD([X], jorth.Signature(n - 1, 1), lr=1e-5)  # X stays near I
    adam = torch.optim.Adam([Y], lr=1e-5, fused=True)
    for _ in range(WARM_UP):
        jobcd.step()
        adam.step()
    repeats = 200 if n <= 64 else 30
    ours, count = kernel_time(jobcd.step)
    theirs, _ = kernel_time(adam.step)
    share = 11 * X.numel() * X.element_size() / COPY_RATE / (ours * 1e-6)
    return (
        f"| {b} x {n} | {wall_time(jobcd.step, repeats):.0f} | {ours:.1f} | {count:.1f} | "
        f"{100 * share:.1f}% | {wall_time(adam.step, repeats):.0f} | {theirs:.1f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="matrices x rows")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("needs a CUDA device")
    warnings.simplefilter("ignore", RuntimeWarning)
    print("| b x n | step, us | kernels, us | launches | of a copy | Adam, us | its kernels, us |")
    print("|---|---|---|---|---|---|---|")
    for size in options.sizes:
        b, n = (int(part) for part in size.split("x"))
        print(measure(b, n, getattr(torch, options.dtype)), flush=True)


if __name__ == "__main__":
    main()
