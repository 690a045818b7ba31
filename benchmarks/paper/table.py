"""The tables of the paper from the results of benchopt, ours beside the printed values.

    python benchmarks/paper/table.py benchmarks/paper/hevp/outputs/table1.parquet

An entry of the race is value(sum |X^T J X - J|) as in the paper; the sign for infinity marks runs
that left: ||X|| reached 1e6, and the value says no more. Other tables have the relative gap or the
value, and the seconds to the end. Below the race: how many pairs of methods are ranked as printed.
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations
from pathlib import Path

import pandas as pd

LEFT = 0.99e6  # the norm at which a run ends, of `shared.LEFT`
COLUMNS = ("UMCM", "ADMM", "CSDM", "GS-JOBCD", "J-JOBCD", "CSDM+GS-JOBCD")
OURS = {
    "UMCM": "UMCM",
    "ADMM": "ADMM",
    "CSDM": "CSDM, full form",
    "GS-JOBCD": "GS-JOBCD as printed",
    "J-JOBCD": "J-JOBCD as printed",
    "CSDM+GS-JOBCD": "CSDM then GS-JOBCD as printed",
}
"""What runs here for a column of the paper."""
PRINTED = """
cifar-1000-100-50       -1.05e+04 -1.05e+04 -5.28e+04 -1.03e+05 -1.11e+05 -1.24e+05
cnncaltech-2000-1000-500 -5.89e+02 -5.89e+02 -1.11e+03 -1.07e+03 -9.16e+03 -1.15e+03
gisette-3000-1000-500   -3.22e+06 -3.22e+06 -8.53e+06 -9.49e+06 -1.36e+07 -9.65e+06
mnist-1000-780-390      -8.65e+04 -8.65e+04 -2.56e+05 -3.14e+05 -1.20e+06 -3.06e+05
randn-10-10-5            1.29e+02  1.29e+02  2.45e+02 -3.96e+01 -3.97e+02  1.55e+01
randn-100-100-50        -1.03e+04 -1.03e+04 -1.98e+04 -2.28e+04 -4.37e+04 -2.41e+04
randn-1000-1000-500     -1.16e+06 -1.16e+06 -1.93e+06 -1.22e+06 -1.04e+07 -1.95e+06
sector-500-1000-500     -3.61e+03 -3.61e+03 -7.90e+03 -9.24e+03 -1.06e+04 -8.51e+03
tdt2-1000-1000-500      -4.25e+06 -4.25e+06 -9.39e+06 -1.05e+07 -1.42e+07 -1.04e+07
w1a-2470-290-145        -3.02e+04 -3.02e+04 -5.72e+04 -9.21e+04 -9.32e+06 -7.94e+04
"""
"""Table 1 of the paper: -tr(X^T D^T D X) after 90 s. Its randn-10-10-5 is impossible: f <= 0."""


def printed_values() -> dict[str, dict[str, float]]:
    rows = (line.split() for line in PRINTED.strip().splitlines())
    return {size: dict(zip(COLUMNS, map(float, row), strict=True)) for size, *row in rows}


def final_points(paths: list[Path]) -> pd.DataFrame:
    """Return the last point of every curve, with the name of its solver and its theta apart."""
    points = pd.concat([pd.read_parquet(path) for path in paths])
    keys = ["dataset_name", "objective_name", "solver_name", "idx_rep"]
    last = points.sort_values("stop_val").groupby(keys, as_index=False).last()
    last["solver"] = last["solver_name"].str.replace(r"\[.*", "", regex=True)
    if "p_solver_Q" in last:
        last.loc[last["p_solver_Q"] == "scalar", "solver"] += ", scalar Q"
    last["theta"] = last.get("p_solver_theta", math.nan)
    return last


def race(rows: pd.DataFrame) -> list[str]:
    """Return the table of the race in the paper's layout, once per theta."""
    lines = []
    plain = rows[rows["theta"].isna()]
    thetas = sorted(set(rows["theta"].dropna()))
    for theta in thetas or [None]:
        chosen = plain if theta is None else pd.concat([plain, rows[rows["theta"] == theta]])
        lines += ["", "The race:" if theta is None else f"The race, theta = {theta:g}:", ""]
        present = [name for name in COLUMNS if OURS[name] in set(chosen["solver"])]
        other = sorted(set(chosen["solver"]) - set(OURS.values()))
        lines += header(["data (m-n-p)", *(OURS[name] for name in present), *other])
        alike = total = 0
        for size, found in chosen.groupby("p_dataset_size", sort=True):
            by_name = found.set_index("solver")
            cells = [entry(by_name, name) for name in [*(OURS[n] for n in present), *other]]
            lines.append(f"| {size} | {' | '.join(cells)} |")
            theirs = printed_values().get(size)
            if theirs is None:
                continue
            cells = [f"*{theirs[name]:.2e}*" for name in present] + [""] * len(other)
            lines.append(f"| *printed* | {' | '.join(cells)} |")
            if max(theirs.values()) < 0:  # not the row that is impossible
                scores = {name: score(by_name, OURS[name]) for name in present}
                agree, pairs = agreements(scores, theirs)
                alike, total = alike + agree, total + pairs
        lines += ["", f"Pairs of methods ranked as printed: {alike} of {total}."]
    return lines


def score(by_name: pd.DataFrame, solver: str) -> float:
    """Return the value, minus infinity of a run that left, NaN without a run."""
    if solver not in by_name.index:
        return math.nan
    row = by_name.loc[solver]
    return -math.inf if row["objective_norm"] >= LEFT else float(row["objective_value"])


def entry(by_name: pd.DataFrame, solver: str) -> str:
    if solver not in by_name.index:
        return "not run"
    row = by_name.loc[solver]
    left = " ∞" if row["objective_norm"] >= LEFT else ""
    return f"{row['objective_value']:.2e}({row['objective_violation']:.0e}){left}"


def agreements(ours: dict[str, float], theirs: dict[str, float]) -> tuple[int, int]:
    """Count the pairs of methods ranked alike, and all pairs that differ on both sides."""
    signs = []
    for a, b in combinations(ours, 2):
        if ours[a] != ours[b] and theirs[a] != theirs[b] and not math.isnan(ours[a] + ours[b]):
            signs.append((ours[a] < ours[b]) == (theirs[a] < theirs[b]))
    return sum(signs), len(signs)


def scores(rows: pd.DataFrame, column: str, heading: str) -> list[str]:
    """Return a table of one number per run, medians over seeds, and the seconds to the end."""
    solvers = sorted(set(rows["solver"]))
    lines = ["", heading, "", *header(["data (m-n-p)", *solvers])]
    for size, found in rows.groupby("p_dataset_size", sort=True):
        middle = found.groupby("solver")[[column, "time", "objective_norm"]].median()
        cells = [
            number(middle.loc[name], column) if name in middle.index else "not run"
            for name in solvers
        ]
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return lines


def number(row: pd.Series, column: str) -> str:
    left = " ∞" if row["objective_norm"] >= LEFT else ""
    return f"{row[column]:.2g}{left} ({row['time']:.1f} s)"


def header(names: list[str]) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def tables(paths: list[Path]) -> str:
    points = final_points(paths)
    machine = points.iloc[0]
    threads = machine.get("env-OMP_NUM_THREADS")
    lines = [
        f"{machine['system-processor']}, {machine['system-cpus']} cores, {threads} thread, "
        f"{str(machine['run_date'])[:10]}; {points['p_obj_seconds'].max():g} s per run."
    ]
    if "p_obj_sense" in points:
        least, most = (points[points["p_obj_sense"] == sense] for sense in ("min", "max"))
        if len(least):
            heading = "The well-posed problem, the relative gap at the end:"
            lines += scores(least, "objective_gap", heading)
        if len(most):
            lines += race(most)
    else:
        lines += scores(points, "objective_value", "The structural probe, the value at the end:")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="parquet files of benchopt")
    print(tables(parser.parse_args().results))


if __name__ == "__main__":
    main()
