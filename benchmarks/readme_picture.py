"""The picture of the README: how long it takes to align two noisy point clouds.

    taskset -c 0 python benchmarks/readme_picture.py --run out/readme
    python benchmarks/readme_picture.py                    # draw again from the rows in docs

One thread, n = 100, medians over three seeds, times to a relative gap of 1e-8. The rows are those
of `jorth bench speed`, without their curves.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from jorth.bench import read_rows, run_cells
from jorth.bench.core.figures import new_figure
from jorth.bench.core.records import append_row
from jorth.bench.speed.cells import Plan
from jorth.bench.speed.methods import AUTO, DATA_START, GROUPS
from jorth.bench.speed.table import Entry, entries

DOCS = Path(__file__).parents[1] / "docs"
ROWS = DOCS / "report" / "readme_speed.jsonl"
PICTURE = DOCS / "images" / "faster.png"
GAP = 1e-8
BARS = {
    # label: the methods of which the fastest is shown, and the colour
    "jorth.procrustes": ((AUTO + DATA_START,), "#0072B2"),
    "jorth, accelerated JOBCD": (GROUPS["accelerated"], "#D55E00"),
    "pymanopt, trust regions": (("pymanopt TR",), "#8C8C8C"),
    "pymanopt, conjugate gradients": (("pymanopt CG",), "#8C8C8C"),
}
PANELS = {3.0: "well-conditioned data", 30.0: "ill-conditioned data"}
KEPT = ("key", "cell", "outcome", "date", "versions", "hardware", "commit", "reached", "calls",
        "gap", "time")  # fmt: skip
"""What is kept of a row."""


def plan():
    """The runs behind the picture."""
    methods = tuple(name for names, _ in BARS.values() for name in names)
    return Plan(
        tasks=("procrustes",), sizes=(100,), shares=(0.5,), conditions=tuple(PANELS),
        threads=(1,), methods=methods,
    )  # fmt: skip


def measure(folder):
    """Run what is missing, and keep the rows without their curves."""
    run_cells(plan().cells(), folder)
    ROWS.unlink(missing_ok=True)
    for row in read_rows(folder):
        append_row(ROWS, {name: row[name] for name in KEPT if name in row})


def milliseconds(entry: Entry):
    """The median time of every bar."""
    return {label: 1e3 * entry.best(names, GAP)[1] for label, (names, _) in BARS.items()}


def draw(found, path):
    """Two panels of bars with their times beside them."""
    figure = new_figure(9.6, 3.4)
    panels = figure.subplots(1, len(found), sharey=True)
    for panel, entry in zip(panels, found, strict=True):
        times = milliseconds(entry)
        names = list(times)[::-1]
        colours = [BARS[name][1] for name in names]
        bars = panel.barh(names, [times[name] for name in names], color=colours, height=0.7)
        texts = [f"{times[name]:.0f} ms" for name in names]
        panel.bar_label(bars, texts, padding=4, fontsize=13, fontweight="bold")
        panel.set_title(PANELS[entry.cell.condition], fontsize=13)
        panel.set_xlim(right=1.36 * max(times.values()))
        panel.set_xticks([])
        panel.tick_params(axis="y", length=0, labelsize=13)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    figure.suptitle("Time to align two noisy point clouds in 100 dimensions", fontsize=15)
    figure.set_dpi(110)
    figure.savefig(path, dpi="figure", metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="measure, with the rows in this folder")
    parser.add_argument("--plot", type=Path, default=PICTURE)
    given = parser.parse_args()
    if given.run is not None:
        measure(given.run)
    found = [entry for entry in entries(read_rows(ROWS)) if entry.clock == "reached"]
    for entry in found:
        print(PANELS[entry.cell.condition], milliseconds(entry))
    draw(found, given.plot)


if __name__ == "__main__":
    main()
