"""The table of docs/results/speed.md: milliseconds to a gap, and the best peer over our best.

    python benchmarks/speed/table.py benchmarks/speed/outputs/speed.parquet

A solver that does not get there has no entry. "Told that f is quadratic" is not counted among ours.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import pandas as pd

GAPS = (1e-4, 1e-8)
PEERS = ("cdopt", "pymanopt", "scipy")
SHORT = {
    "pymanopt ConjugateGradient": "pymanopt CG",
    "pymanopt TrustRegions": "pymanopt TR",
    "scipy L-BFGS on exp(J S)": "scipy",
    "jorth, told that f is quadratic": "told",
}


def times(points: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds to each of GAPS by problem, information and solver, medians over seeds."""
    points = points.assign(solver=points["solver_name"].str.replace(r"\[.*", "", regex=True))
    problem = ["p_dataset_task", "p_dataset_n", "p_dataset_condition", "p_obj_information"]
    keys = [*problem, "p_dataset_seed", "solver_name", "solver"]
    columns = {}
    for gap in GAPS:
        reached = points[points["objective_gap"] <= gap]
        columns[gap] = reached.groupby(keys)["time"].min()
    runs = points.groupby(keys).size().index
    seconds = pd.DataFrame(columns).reindex(runs).fillna(math.inf)
    middle = seconds.groupby([*problem, "solver_name", "solver"]).median()
    return middle.groupby([*problem, "solver"]).min()  # the better penalty of cdopt


def table(seconds: pd.DataFrame) -> str:
    solvers = sorted(seconds.index.get_level_values("solver").unique())
    names = [SHORT.get(name, name) for name in solvers]
    heads = ["task", "n", "cond.", "given", *names, "best peer / ours"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for problem, rows in seconds.groupby(level=list(range(4)), sort=False):
        found = rows.droplevel(list(range(4)))
        cells = [entry(found, solver) for solver in solvers]
        ratios = [ratio(found, gap) for gap in GAPS]
        task, n, condition, given = problem
        head = f"{task} | {n} | {condition:g} | {given}"
        lines.append(f"| {head} | {' | '.join(cells)} | {' / '.join(ratios)} |")
    return "\n".join(lines)


def entry(found: pd.DataFrame, solver: str) -> str:
    if solver not in found.index:
        return ""
    return " / ".join(
        f"{1e3 * value:.3g}" if math.isfinite(value := found.loc[solver, gap]) else "-"
        for gap in GAPS
    )


def ratio(found: pd.DataFrame, gap: float) -> str:
    """Return the time of the best peer over our best that had the same information."""
    peers = [name for name in found.index if name.startswith(PEERS)]
    ours = [name for name in found.index if name not in peers and "told" not in name]
    theirs, best = found.loc[peers, gap].min(), found.loc[ours, gap].min()
    if not math.isfinite(best):
        return "-"
    return f"{theirs / best:.2g}" if math.isfinite(theirs) else ">"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="parquet files of benchopt")
    args = parser.parse_args()
    points = pd.concat([pd.read_parquet(path) for path in args.results])
    machine = points.iloc[0]
    print(
        f"{machine['system-processor']}, {machine['system-cpus']} cores, "
        f"{machine['env-OMP_NUM_THREADS']} thread, {str(machine['run_date'])[:10]}\n"
    )
    print(table(times(points)))


if __name__ == "__main__":
    main()
