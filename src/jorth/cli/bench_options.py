"""The options of `jorth bench`, in groups that its commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

TIME_LIMIT = 10.0
PAPER_TIME_LIMIT = 90.0
QUICK_EVALUATIONS = 30
QUICK_TIME_LIMIT = 0.5


def parse_sizes(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    """Rows x columns, as 1000x780."""
    sizes = []
    for value in values:
        parts = value.lower().split("x")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) >= 1 for part in parts):
            raise click.BadParameter(f"must be rows x columns, as 1000x780; got {value!r}")
        sizes.append((int(parts[0]), int(parts[1])))
    return tuple(sizes)


def parse_scale(ctx: click.Context, param: click.Parameter, value: str) -> float | Literal["fit"]:
    """A positive number, or "fit"."""
    if value.lower() == "fit":
        return "fit"
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"must be a positive number or fit; got {value!r}")
    return number


LIMIT_HELP = (
    f"Seconds a run. Default {TIME_LIMIT:g}, or {PAPER_TIME_LIMIT:g} for the paper's protocol; none beside "
    "--max-evaluations."
)
share = click.FloatRange(0, 1, min_open=True, max_open=True)
positive = click.FloatRange(0, min_open=True)
folder = click.Path(file_okay=False, path_type=Path)
Options = tuple[Callable[[Any], Any], ...]
RUN: Options = (
    click.option(
        "--output",
        "-o",
        type=folder,
        help="Folder; a second call goes on. Default: out/bench/NAME.",
    ),
    click.option("--quick", is_flag=True, help="A small grid in a few seconds."),
    click.option("--retry-failed", is_flag=True, help="Run the cells that failed again."),
)
SHARED: Options = (
    click.option(
        "--p-share",
        "shares",
        multiple=True,
        type=share,
        help="p / n. Default 0.5, probe 0.9.",
    ),
    click.option(
        "--solver",
        "solvers",
        multiple=True,
        help="A method, by its name in the tables. Default: all.",
    ),
    click.option(
        "--seed", "seeds", multiple=True, type=click.IntRange(0), default=(0,), show_default=True
    ),
    click.option("--time-limit", type=positive, help=LIMIT_HELP),
    click.option("--max-evaluations", type=click.IntRange(1), help="Gradients a run."),
    *RUN,
)
PLANTED: Options = (
    click.option(
        "--n",
        "sizes",
        multiple=True,
        type=click.IntRange(2),
        help="Size of X. Default: 50 and 100.",
    ),
    click.option(
        "--condition",
        "conditions",
        multiple=True,
        type=click.FloatRange(1),
        help="Of S. Default: 10.",
    ),
)
DATA: Options = (
    click.option(
        "--data", "names", multiple=True,
        help="randn, digits, or a data set of `jorth data list`. Default: randn and digits.",
    ),
    click.option(
        "--size", "sizes", multiple=True, metavar="MxN", callback=parse_sizes, help="Default: the size in the paper."
    ),
    click.option("--protocol", type=click.Choice(["paper"]), help="paper: the paper's grid for this problem."),
    click.option("--data-dir", type=folder, help="Folder of the data. Default: $JORTH_DATA, else a cache of jorth."),
)  # fmt: skip
HEVP: Options = (
    click.option(
        "--problem", type=click.Choice(["race", "trace", "both"]), default="both", show_default=True,
        help="race: as printed in the paper, unbounded. trace: well-posed.",
    ),
    click.option(
        "--theta", "thetas", multiple=True, type=positive, default=(1.0,), show_default=True,
        help="Of the JOBCD methods in the race, in units of the curvature.",
    ),
    click.option("--ridge", type=positive, help="Of the trace problem, in mean eigenvalues of D^T D. Default: 0.01."),
    click.option("--appendix", is_flag=True, help="With --protocol paper: also the larger p of its appendix."),
)  # fmt: skip
PROBE: Options = (
    click.option("--alpha", type=positive, default=1.0, show_default=True, help="Radius of the pseudo-hyperboloid."),
    click.option(
        "--scale", default="1", show_default=True, callback=parse_scale,
        help="Factor on the geodesic distances; fit: the best one at every point.",
    ),
    click.option("--ridge", type=click.FloatRange(0), default=0.0, show_default=True, help="ridge/2 ||X||^2 is added."),
)  # fmt: skip
GRAPHS: Options = (
    click.option(
        "--graph", "graphs", multiple=True,
        help="A folder of train.txt and test.txt in the data. Default: WN18RR-mini and FB15k-237-mini.",
    ),
    click.option("--data-dir", type=folder, help="Folder of the graphs, itself or under kg. Default: $JORTH_DATA."),
    click.option(
        "--solver", "solvers", multiple=True, help="Default: all.",
        type=click.Choice(["CSDM", "J-JOBCD", "VR-J-JOBCD"], case_sensitive=False),
    ),
    click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), help="Default: 0, 1 and 2."),
    click.option("--epochs", type=click.IntRange(1), help="Passes over the training triples. Default: 25, quick 2."),
    click.option("--trials", type=click.IntRange(1, 6), help="Settings of each method. Default: 6, quick 2."),
)  # fmt: skip

SPEED: Options = (
    click.option("--n", "sizes", multiple=True, type=click.IntRange(2), help="Default: 50, 100, 200, 500 and 1000."),
    click.option("--p-share", "shares", multiple=True, type=share, help="p / n. Default: 0.5 and 0.9."),
    click.option("--condition", "conditions", multiple=True, type=click.FloatRange(1), help="Default: 3 and 30."),
    click.option("--threads", multiple=True, type=click.IntRange(1), help="Of all methods alike. Default: 1 and 2."),
    click.option(
        "--seed", "seeds", multiple=True, type=click.IntRange(0),
        help="Medians are over the seeds; from n = 500 on the first alone. Default: 0, 1 and 2.",
    ),
    click.option(
        "--solver", "methods", multiple=True, help="Default: all.",
        type=click.Choice(
            [
                "GS-JOBCD", "J-JOBCD", "GS-JOBCD + L-BFGS", "GS-JOBCD + L-BFGS, data start", "Riemannian L-BFGS",
                "Riemannian L-BFGS, data start", "UMCM", "pymanopt CG", "pymanopt TR", "cdopt L-BFGS",
                "pymanopt TR, data start",
            ],
            case_sensitive=False,
        ),
    ),
    click.option("--time-limit", "max_time", type=positive, help="Seconds a run. Default: by size, from 2 to 40."),
)  # fmt: skip


def with_options(*groups: Options) -> Callable[[Any], Any]:
    """All options of some groups on a command; those that take a list are repeated."""

    def decorate(command: Any) -> Any:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
