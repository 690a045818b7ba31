"""Where the time goes: each kernel against what the machine can copy and multiply, in one table
and one picture.

    taskset -c 1 python benchmarks/roofline.py --output roofline_cpu.json
    python benchmarks/roofline.py --device cuda --output roofline_cuda.json
    python benchmarks/roofline.py --draw roofline_cuda.json --plot docs/images/roofline_cuda.png

Copy rates are bytes read plus bytes written a second, on arrays of several sizes: a kernel is held
against that of the smallest which is as large as all its matrices. The work of each kernel is
counted in `work.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np
import torch

from benchmarks import kernels, work

COPIED = {"cpu": (2**20, 2**24, 2**30), "cuda": (2**25, 2**32)}
"""Bytes of both arrays together."""
MULTIPLIED = {"cpu": 2048, "cuda": 8192}


def copy_rate(total, device):
    """The most bytes read and written a second by a copy whose two arrays hold ``total`` bytes."""
    source = torch.ones(total // 16, dtype=torch.float64, device=device)
    target = torch.empty_like(source)
    loops = max(1, min(100, 2**31 // total))
    return work.copy(total // 16).bytes / kernels.seconds(
        lambda: target.copy_(source), device, repeats=9, loops=loops, pick=min
    )


def product_rate(n, dtype, device):
    """The most operations per second of a matrix product."""
    A, B = (torch.randn(n, n, dtype=dtype, device=device) for _ in range(2))
    C = torch.empty_like(A)
    return work.matrix_product(n, n, n).flops / kernels.seconds(
        lambda: torch.matmul(A, B, out=C), device, repeats=9, pick=min
    )


def roof(row, machine):
    """Seconds that the machine needs for the bytes and for the operations of a kernel: the larger
    counts."""
    enough = [rate for size, rate in machine["copy"] if size >= row["held"]]
    rate = enough[0] if enough else machine["copy"][-1][1]
    return row["bytes"] / rate, row["flops"] / machine["product"][row["dtype"]]


def measured(kernel, machine):
    """The row of one kernel; what it raised in place of its time."""
    row = {
        "kernel": kernel.name,
        "size": kernel.size,
        "dtype": str(kernel.dtype)[6:],
        **kernel.work._asdict(),
    }
    try:
        row["seconds"] = kernel.measure()
    except Exception as error:  # one that fails is a row, not the end
        return row | {"error": f"{type(error).__name__}: {error}"[:200]}
    moving, computing = roof(row, machine)
    return row | {
        "share": max(moving, computing) / row["seconds"],
        "bound": "bytes" if moving > computing else "flops",
    }


def measure(device, chosen):
    """Rates of the machine and a row for each kernel, printed as they come."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    name = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else platform.processor() or platform.machine()
    )
    machine = {
        "device": device,
        "name": name,
        "versions": {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "copy": [(size, copy_rate(size, device)) for size in COPIED[device]],
        "product": {
            str(dtype)[6:]: product_rate(MULTIPLIED[device], dtype, device)
            for dtype in kernels.DTYPES
        },
    }
    for size, rate in machine["copy"]:
        print(f"copy of {size / 2**20:6.0f} MiB  {rate / 1e9:9.1f} GB/s read and written")
    for dtype, rate in machine["product"].items():
        print(f"product, {dtype}  {rate / 1e9:9.1f} Gflop/s")
    print(
        f"{'kernel':25s} {'size':15s} {'dtype':13s} time     bytes     flops      flops/byte    "
        "share of the roof"
    )
    machine["rows"] = []
    for kernel in chosen:
        machine["rows"].append(row := measured(kernel, machine))
        print(line(row), flush=True)
        if device == "cuda" and "error" not in row:  # after an error the device may be lost
            torch.cuda.empty_cache()
    return machine


def line(row):
    """A row of the table."""
    head = f"{row['kernel']:25s} {row['size']:15s} {row['dtype']:8s}"
    if "error" in row:
        return f"{head} {row['error']}"
    return (
        f"{head} {row['seconds']:9.3g} s {row['bytes']:9.3g} {row['flops']:9.3g} "
        f"{row['flops'] / row['bytes']:9.2f}"
        f"   {row['share']:6.1%} of {row['bound']}"
    )


# -- the picture


def draw(machine, path):
    """Operations a second over operations a byte, the roofs, and a marker for each kernel and
    size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in machine["rows"] if "seconds" in row]
    points = [(row["flops"] / row["bytes"], row["flops"] / row["seconds"]) for row in rows]
    across = np.geomspace(min(x for x, _ in points) / 3, max(x for x, _ in points) * 3, 400)
    figure, axes = plt.subplots(figsize=(10, 5.8))
    top = 2 * max(machine["product"].values())
    axes.set(
        xscale="log", yscale="log", xlim=across[[0, -1]], ylim=(min(y for _, y in points) / 3, top)
    )
    axes.set(xlabel="operations per byte that must be moved", ylabel="operations per second")
    _roofs(axes, machine, across)
    hollow = any(row["dtype"] == "float32" for row in rows)
    _markers(axes, rows, points)
    where = "one core" if machine["device"] == "cpu" else machine["name"]
    axes.set_title(
        f"Kernels against the roof, {where}{'; hollow: float32' if hollow else ''}", fontsize=10
    )
    axes.grid(alpha=0.25, which="major")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    figure.savefig(path, dpi=150, bbox_inches="tight")


def _roofs(axes, machine, across):
    double, single = machine["product"]["float64"], machine["product"]["float32"]
    for style, (size, rate) in zip(("-", "--", ":"), reversed(machine["copy"]), strict=False):
        unit = f"{size >> 20} MiB" if size < 2**30 else f"{size >> 30} GiB"
        axes.plot(
            across, np.minimum(across * rate, double), style, color="0.35", lw=1.2,
            label=f"copy of {unit}: {rate / 1e9:,.0f} GB/s",
        )  # fmt: skip
    fastest = machine["copy"][0][1]
    axes.plot([], [], color="0.35", lw=1.2, label=f"product, float64: {double / 1e9:,.0f} Gflop/s")
    axes.plot(
        across, np.where(across * fastest > single, single, np.nan), color="0.75", lw=1.2,
        label=f"product, float32: {single / 1e9:,.0f} Gflop/s",
    )  # fmt: skip


def _markers(axes, rows, points):
    """A colour and a shape a kernel, and the sizes beside, where nothing is covered."""
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    places = axes.transData.transform(points)
    taken = [(x - 5, x + 5, y - 4, y + 4) for x, y in places]
    for place, name in enumerate(names):
        colour, marker = f"C{place % 10}", "os^Dv<>Phd*X"[place % 12]
        axes.plot([], [], marker, color=colour, ms=6, label=name)
        for row, point, pixel in zip(rows, points, places, strict=True):
            if row["kernel"] == name:
                face = "none" if row["dtype"] == "float32" else colour
                axes.plot(*point, marker, color=colour, mfc=face, ms=6)
                _label(axes, row["size"], pixel, colour, taken)


def _label(axes, text, pixel, colour, taken):
    """The nearest free place right or left of a marker, with a line to it where it is not beside
    it."""
    width, (x, y) = 5.0 * len(text), pixel
    for shift in sorted(range(-80, 81, 4), key=abs):
        for left in (x + 7 + abs(shift) / 4, x - 7 - abs(shift) / 4 - width):
            box = (left, left + width, y + shift - 4, y + shift + 4)
            if not any(
                box[0] < t[1] and t[0] < box[1] and box[2] < t[3] and t[2] < box[3] for t in taken
            ):
                taken.append(box)
                back = axes.transData.inverted().transform
                axes.annotate(
                    text, back((left, y + shift)), fontsize=6.5, color=colour, va="center"
                )
                if shift:
                    near = left - 1 if left > x else left + width + 1
                    axes.plot(*back([(x, y), (near, y + shift)]).T, color=colour, lw=0.4)
                return


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--sizes", type=int, nargs="+", help="n of the kernels that have one")
    parser.add_argument("--output", type=Path, help="JSON file; the picture is put beside it")
    parser.add_argument(
        "--draw", type=Path, metavar="JSON", help="only draw what such a file holds"
    )
    parser.add_argument("--plot", type=Path, help="PNG file")
    arguments = parser.parse_args()
    if arguments.draw:
        machine = json.loads(arguments.draw.read_text())
    else:
        listed = kernels.cpu_kernels if arguments.device == "cpu" else kernels.cuda_kernels
        machine = measure(
            arguments.device, listed(tuple(arguments.sizes)) if arguments.sizes else listed()
        )
    if arguments.output:
        arguments.output.write_text(json.dumps(machine, indent=1))
    source = arguments.draw or arguments.output
    plot = arguments.plot or (source and source.with_suffix(".png"))
    if plot:
        draw(machine, plot)


if __name__ == "__main__":
    main()
