"""What `jorth solve` and `jorth apply` do: read files, solve, write, and print the answer."""

from __future__ import annotations

import hashlib
import json
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import numpy as np

from jorth import __version__
from jorth._files import make_folder, replacing, to_json
from jorth._matrices import check_matrix
from jorth.cli.files import WRITABLE, Table, drop_incomplete, pair, read, warn_of_counter, write
from jorth.extras import needs
from jorth.group import component, residual
from jorth.group.time_column import other_time, warn_of_other_time
from jorth.linalg import eigh, hsvd, hyperbolic_qr, indefinite_lstsq
from jorth.objectives import Procrustes, Quadratic
from jorth.signature import Signature
from jorth.solvers import Interrupt, Result, Status, hessian_check, minimize, procrustes, resolve
from jorth.terminal import WIDTH

Floats = Any
"""NumPy arrays of float64; the functions of jorth return the kind that they get."""
Lines = list[tuple[str, str]]
POOR = 0.5
"""The R^2 below which an alignment is looked at for what may be wrong with the files."""
SAME_SHAPE = 0.05
"""How much the eigenvalues of two clouds may differ, relatively, if one is the other moved."""
LARGEST_CHECKED = 100
"""The largest n for which the Hessian at a critical point is looked at: some seconds."""


class Job(SimpleNamespace):
    """The options of a command, None for those it does not have, and what was read."""

    def __getattr__(self, name: str) -> Any:
        return None


@dataclass
class Answer:
    """What a problem has found: arrays for files, figures for the record, and lines to print."""

    arrays: dict[str, Floats]
    record: dict[str, Any]
    lines: Lines
    status: Status = Status.CONVERGED
    message: str = "solved directly, without iterations"


def run(problem: str, files: dict[str, Path], endings: Sequence[str], **options: Any) -> Status:
    """Solve the problem, write all files, print the answer, and return how it ended.

    Beside the output there is a file for each of ``endings``.

    Raises:
        click.UsageError: An option is invalid; nothing was done.
        ValueError: A file, or the combination of matrices, does not fit the problem.
    """
    job = Job(problem=problem, notes=[], **options)
    job.files = files | ({} if job.start is None else {"x0": job.start})
    path: Path = job.output
    job.everywhere = problem == "procrustes" and job.method is None and job.start is None
    outputs = {name: path.with_name(f"{path.stem}_{name}{path.suffix}") for name in endings}
    outputs |= {name: getattr(job, name) for name in ("aligned", "plot") if getattr(job, name)}
    outputs = {"output": path, **outputs, "record": path.with_suffix(".json")}
    _check_outputs(outputs, job.files)
    job.solver = _solver(job)
    if job.plot:
        with needs("--plot", "matplotlib"):  # before there is anything to lose
            job.figure = import_module("matplotlib.figure").Figure
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        job.tables = {name: read(path, key=job.key) for name, path in job.files.items()}
        _prepare(job)
        make_folder(path.parent, "--output")
        with Interrupt() as interrupt:
            interrupt.hold()  # there are results to save, so Ctrl-C only ends the iterations
            answer = SOLVE[problem](job)
            first, X = next(iter(job.tables.values())), answer.arrays["output"]
            for name, array in answer.arrays.items():
                write(outputs[name], array, first)
            if job.aligned:
                named = replace(first, names=job.tables["target"].names or first.names)
                write(job.aligned, first.values @ X, named, named=True)
            if job.plot:
                _draw(job, X)
            record = _record(job, answer, [str(one.message) for one in caught])
            with replacing(outputs["record"]) as stream:
                stream.write(to_json(record, indent=2) + b"\n")
    if not job.quiet:
        _show(job, answer, record)
        click.echo(f"written: {', '.join(map(str, outputs.values()))}")
    return answer.status


def apply(matrix: Path, points: Path, **options: Any) -> None:
    """Write the rows of a file times a matrix, and print what was done."""
    _check_outputs({"output": options["output"]}, {"matrix": matrix, "points": points})
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, table = (read(path, key=options["key"]) for path in (matrix, points))
        with suppress(OSError, ValueError, KeyError, TypeError):  # the columns that X is for
            names = tuple(json.loads(matrix.with_suffix(".json").read_bytes())["columns"])
            table = pair(Table(matrix, X.values, names, table.ids), table, notes)[1]
        n, k = X.values.shape
        if table.values.shape[1] != n:
            expected = f"{n} columns, one for each row of {matrix}"
            raise ValueError(f"{points} must have {expected}, got {table.values.shape[1]}")
        if options["missing"] == "drop":
            (table,) = drop_incomplete([table], notes)
        for own in (X, table):
            check_matrix(own.values, str(own.path))
        warn_of_counter(table)
        named = replace(table, names=table.names if k == n else None)
        write(options["output"], np.asarray(table.values @ X.dense), named, named=True)
    if not options["quiet"]:
        _warn(str(one.message) for one in caught)
        notes.append(f"{table.values.shape[0]} rows moved by {matrix}")
        click.echo("\n".join(notes) + f"\nwritten: {options['output']}")


# -- what was given


def _check_outputs(outputs: dict[str, Path], inputs: dict[str, Path]) -> None:
    for name, path in outputs.items():
        known = {"record": (".json",), "plot": (".png", ".svg", ".pdf")}.get(name, WRITABLE)
        if path.suffix.lower() not in known:
            raise click.UsageError(f"--{name} must end in {', '.join(known)}, got {path}")
    for path, source in product(outputs.values(), inputs.values()):
        if path.exists() and path.samefile(source):
            raise click.UsageError(f"--output must not replace an input: {path} is {source}")
    if len({path.resolve() for path in outputs.values()}) < len(outputs):
        raise click.UsageError("--output, --aligned and --plot must be different files")


def _solver(job: Job) -> Any:
    if job.everywhere and job.checkpoint is not None:
        found = f"{job.checkpoint} for a search of all components"
        raise click.UsageError(f"--checkpoint must be given with --method, got {found}")
    try:
        return resolve(job.method or "auto", {})
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error


def _prepare(job: Job) -> None:
    """Pair the tables whose rows belong together, drop what has gaps, and read the signature."""
    own = [*job.tables][: 2 if job.problem in ("procrustes", "lstsq") else 1]
    tables = [job.tables[name] for name in own]
    if job.problem == "lstsq":  # the columns of A have nothing to do with those of b
        tables[1] = replace(tables[1], names=None)
    if len(own) > 1:
        tables = [*pair(tables[0], tables[1], job.notes)]
    if job.missing == "drop":
        tables = drop_incomplete(tables, job.notes)
    job.tables |= dict(zip(own, tables, strict=True))
    for table in job.tables.values():
        check_matrix(table.values, str(table.path))
    if job.problem in ("procrustes", "svd"):
        for table in tables:
            warn_of_counter(table)
    by_rows, text = job.problem in ("lstsq", "qr"), job.signature.strip()
    n = tables[0].values.shape[0 if by_rows else 1]
    if text in ("lorentz", "lorentz-last"):
        job.signature = Signature.lorentz(n, "first" if text == "lorentz" else "last")
        return
    try:
        job.signature = Signature.of(text)
    except ValueError:
        known = "p,q (like 12,8), signs (like ++--+), lorentz or lorentz-last"
        raise click.UsageError(f"--signature must be {known}, got {text:.40}") from None
    if job.signature.n != n:
        expected = f"{n} signs, one per {'row' if by_rows else 'column'} of {tables[0].path}"
        raise click.UsageError(f"--signature must have {expected}, got {job.signature.n}")


# -- the problems


def _eigen(job: Job) -> Answer:
    (table,) = job.tables.values()
    if table.values.shape[0] != job.signature.n:
        found = "{} rows and {} columns".format(*table.values.shape)
        raise ValueError(f"A must be square, got {found}; `jorth solve svd` takes data")
    values, X = eigh(table.dense, job.signature)
    value = float(np.abs(values).sum())
    lines = [("value", f"{value:.8g}, the least tr(X^T A X)")]
    lines += _by_sign("lambda", values, job.signature)
    return _direct(job, {"output": X, "eigenvalues": values}, {"value": value}, lines)


def _svd(job: Job) -> Answer:
    (table,) = job.tables.values()
    U, S, X = hsvd(table.dense, job.signature)
    error = float(np.linalg.norm(table.dense @ X - U * S) / np.linalg.norm(table.dense))
    lines = [("error", f"{error:.1e}, |G X - U diag(S)| / |G|"), *_by_sign("S", S, job.signature)]
    return _direct(job, {"output": X, "singular_values": S, "U": U}, {"error": error}, lines)


def _qr(job: Job) -> Answer:
    (table,) = job.tables.values()
    A, k = table.dense, table.values.shape[1]
    Q, R = hyperbolic_qr(A, job.signature)
    product = Q[:, job.signature.positive[:k]] @ R
    error = float(np.linalg.norm(A - product) / np.linalg.norm(A))
    columns = "with the columns of X that have a plus"
    lines = [("error", f"{error:.1e}, |A - X R| / |A| {columns}")]
    diagonal = _listed(f"{entry:.6g}" for entry in np.diag(R))
    lines.append(("R", f"{k} x {k}, diagonal {diagonal}"))
    return _direct(job, {"output": Q, "R": R}, {"error": error}, lines)


def _lstsq(job: Job) -> Answer:
    A, b = (table.dense for table in job.tables.values())
    x = indefinite_lstsq(A, b, job.signature)
    misfit = b - A @ x
    weighted = job.signature.signs[:, None] * misfit
    value = float((misfit * weighted).sum())
    slope = np.linalg.norm(A.T @ weighted) / (np.linalg.norm(A) * np.linalg.norm(b) or 1.0)
    names = job.tables["A"].names or [f"x{k + 1}" for k in range(len(x))]
    found = zip(names, x.tolist(), strict=True)
    text = _listed(f"{name} = {', '.join(f'{entry:.6g}' for entry in row)}" for name, row in found)
    lines = [
        ("value", f"{value:.8g}, the least (b - A x)^T J (b - A x)"),
        ("gradient", f"{slope:.1e}, |A^T J (b - A x)| / |A| |b|"),
        ("x", text),
    ]
    return Answer({"output": x}, {"value": value, "gradient_norm": float(slope)}, lines)


def _procrustes(job: Job) -> Answer:
    source, target = job.tables["source"], job.tables["target"]
    m, k = target.values.shape
    if job.everywhere:
        clouds = source.values, target.dense, job.signature
        result = cast("Result", procrustes(*clouds, **_limits(job)))
    else:
        warn_of_other_time(job.signature, source.values, target.values)
        result = _minimize(job, Procrustes(source.values, target.dense), k)
    identity = replace(source, values=source.values[:, :k]).dense
    fit = _r_squared(source.values @ result.x, target.dense)
    before = _r_squared(identity, target.dense)
    value = float(np.square(identity - target.dense).sum() / (2 * m))
    about = dict(m=m, r_squared=fit, identity_value=value, identity_r_squared=before)
    lines = [
        ("identity", f"{value:.8g}, R^2 {before:.6g}"),
        ("R^2", f"{fit:.6g} (1 - |SOURCE X - TARGET|^2 / |TARGET - column means|^2)"),
    ]
    if result.gap is not None:
        about |= dict(bound=result.bound, gap=result.gap)
        lines.append(("gap", f"{result.gap:.2g}; no X has a value below {result.bound:.8g}"))
    if fit < POOR and job.everywhere and k == job.signature.n:
        _warn_of_misfit(job, source.dense, target.dense, fit)
    return _iterated(job, result, about, lines)


def _quadratic(job: Job) -> Answer:
    matrices = {name: table.dense for name, table in job.tables.items() if name != "x0"}
    objective = Quadratic(**matrices)
    n, columns = job.signature.n, objective.shape()[1] or job.signature.n
    if not job.start and columns != n:
        shape = f"{n} rows and {columns} columns"
        raise click.UsageError(f"--start must be given where X is thin: it has {shape} here")
    result = _minimize(job, objective, n)
    about, lines = {}, []
    if result.success and n <= LARGEST_CHECKED:
        check = hessian_check(objective, result.x, job.signature)
        about = dict(hessian=check.kind, smallest=check.smallest)
        lines = [("Hessian", f"{check.kind}, smallest eigenvalue {check.smallest:.3g}")]
    return _iterated(job, result, about, lines)


SOLVE = dict(eigen=_eigen, svd=_svd, qr=_qr, lstsq=_lstsq)
SOLVE |= dict(procrustes=_procrustes, quadratic=_quadratic)


def _limits(job: Job) -> dict[str, Any]:
    limits = dict(max_iterations=job.max_iterations, max_time=job.max_time)
    return limits | {"gradient_tolerance": job.tolerance}


def _minimize(job: Job, objective: Any, columns: int) -> Result:
    """Run the method from --start, or from the first columns of the identity."""
    start = job.tables["x0"].dense if job.start else np.eye(job.signature.n, columns)
    settings = _limits(job) | dict(seed=job.seed, checkpoint=job.checkpoint, method=job.solver)
    settings |= dict(signature=job.signature, progress=job.progress)
    return cast("Result", minimize(objective, start, **settings))


def _r_squared(points: Floats, target: Floats) -> float:
    """Return R^2 as in `LorentzAligner.score`."""
    spread = np.square(target - target.mean(axis=0)).sum()
    return float(1 - np.square(points - target).sum() / spread) if spread > 0 else np.nan


def _warn_of_misfit(job: Job, source: Floats, target: Floats, fit: float) -> None:
    """Warn of what in two clouds may explain a poor fit."""
    signature, signs = job.signature, job.signature.signs
    if other_time(signature, source, target):  # there is a warning of it
        return
    squares = np.vstack([source, target]) ** 2 @ signs
    shapes = [np.linalg.eigvals(cloud.T @ cloud * signs) for cloud in (source, target)]
    one, other = (np.sort(values.real) for values in shapes)  # an isometry does not change them
    if np.abs(one - other).max() <= SAME_SHAPE * np.abs(one).min():
        text = "both clouds have the same shape, so their rows may be in different orders"
        warnings.warn(f"{text}; with ids in the first column they are matched", stacklevel=2)
    source, target = (cloud - cloud.mean(axis=0) for cloud in (source, target))
    moved = cast("Result", procrustes(source, target, signature, certify=False, **_limits(job)))
    better = _r_squared(source @ moved.x, target)
    if better > max(POOR, fit):
        text = f"R^2 would be {better:.3g} if the column means of both files were subtracted"
        warnings.warn(f"{text}: no X undoes a shift of all rows", stacklevel=2)
    if signature.q == 1 < signature.n and (squares > 0).any():
        found = f"x^T J x is from {squares.min():.3g} to {squares.max():.3g} where it should be -1"
        warnings.warn(f"the rows are not points of a hyperboloid: {found}", stacklevel=2)


# -- the answer


def _direct(job: Job, arrays: dict[str, Floats], about: dict[str, Any], lines: Lines) -> Answer:
    """Return the answer of a factorisation, with what all of them have."""
    X = arrays["output"]
    norm, error = float(np.linalg.norm(X, 2)), residual(X, job.signature)
    lines.append(("residual", f"{error:.1e} of X^T J X = J, |X| {norm:.3g}"))
    about |= dict(norm=norm, residual=error, component=_component(X, job.signature))
    return Answer(arrays, about, lines)


def _iterated(job: Job, result: Result, about: dict[str, Any], lines: Lines) -> Answer:
    """Return the answer of a run, with what all runs have."""
    names = ("method", "value", "gradient_norm", "residual", "iterations", "time")
    about |= {name: getattr(result, name) for name in names}
    about |= dict(evaluations=vars(result.evaluations), options=asdict(job.solver))
    norm, ended = float(np.linalg.norm(result.x, 2)), result.status.name.lower().replace("_", " ")
    about |= dict(norm=norm, component=_component(result.x, job.signature))
    slope = f"{result.gradient_norm:.1e}, residual {result.residual:.1e}, |X| {norm:.3g}"
    lines = [
        ("method", f"{result.method}, {ended}, {result.time:.3g} s"),
        ("value", f"{result.value:.8g}"),
        ("gradient", slope),
        *lines,
    ]
    if about["component"]:
        searched = "only this component was searched"
        if job.everywhere:
            cut = result.status in (Status.INTERRUPTED, Status.MAX_TIME)
            searched = "cut short" if cut else "the others were searched, or ruled out by a bound"
        counts = (job.signature.p, job.signature.q)
        blocks = zip(("X[+,+]", "X[-,-]"), about["component"], counts, strict=True)
        dets = [f"det {block} {'<>'[sign > 0]} 0" for block, sign, n in blocks if n]
        which = ",".join("-+"[sign > 0] for sign in about["component"])
        lines.append(("component", f"({which}), {', '.join(dets)}; {searched}"))
    if job.problem == "quadratic" or result.x.shape[0] > result.x.shape[1]:
        job.notes.append("there was one start, and others may end lower")
    return Answer({"output": result.x}, about, lines, result.status, result.message)


def _component(X: Floats, signature: Signature) -> tuple[int, int] | None:
    with suppress(ValueError):  # a thin X, or one that has lost its digits
        return cast("tuple[int, int]", component(X, signature))
    return None


def _record(job: Job, answer: Answer, doubts: list[str]) -> dict[str, Any]:
    """Return everything that is needed to judge the run and to repeat it."""
    packages = ("numpy", "scipy", "torch", "numba")
    return {
        "command": job.command,
        "problem": job.problem,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"jorth": __version__, **{name: version(name) for name in packages}},
        "status": answer.status.name,
        "message": answer.message,
        **answer.record,
        "shape": list(answer.arrays["output"].shape),
        "signature": "".join("+" if sign > 0 else "-" for sign in job.signature),
        "columns": next(iter(job.tables.values())).names,
        "inputs": {
            name: {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for name, path in job.files.items()
        },
        "notes": job.notes,
        "warnings": doubts,
    }


def _show(job: Job, answer: Answer, record: dict[str, Any]) -> None:
    """Print the warnings, the problem, and the lines of the answer."""
    _warn(record["warnings"])
    signature, (n, columns) = job.signature, record["shape"]
    signs = f" ({record['signature']})" if signature.n <= 24 else ""  # so that they fit a line
    rows = f"{record['m']} rows, " if "m" in record else ""
    name = "x" if job.problem == "lstsq" else "X"
    counts = f"p = {signature.p}, q = {signature.q}{signs}"
    click.echo(f"{job.problem}, {rows}{name} {n} x {columns}, {counts}")
    for name, text in (*answer.lines, *(("note", note) for note in job.notes)):
        _echo(f"{name:<10}{text}", 10)
    _echo(answer.message)


def _warn(texts: Iterable[str]) -> None:
    for text in dict.fromkeys(texts):
        _echo(f"Warning: {text}", err=True)


def _echo(text: str, indent: int = 0, *, err: bool = False) -> None:
    indented = dict(subsequent_indent=" " * indent, break_long_words=False)
    click.echo(textwrap.fill(text, WIDTH, **indented), err=err)  # type: ignore[arg-type]


def _by_sign(name: str, values: Floats, signature: Signature) -> Lines:
    """Return lines with the values of each sign, and the columns where they are."""
    lines = []
    for sign, own in (("+", signature.positive), ("-", signature.negative)):
        if len(own):
            found, columns = _listed(f"{values[j]:.8g}" for j in own), _listed(map(str, own + 1))
            text = f"{found} (x^T J x = {sign}1, columns {columns} of X)"
            lines.append((f"{name} {sign}", text))
    return lines


def _listed(texts: Iterable[str]) -> str:
    """Return the texts with commas; of more than ten, the first and the last five."""
    found = [*texts]
    return ", ".join(found if len(found) <= 10 else [*found[:5], "...", *found[-5:]])


def _draw(job: Job, X: Floats) -> None:
    """Draw both clouds before and after: a hyperbolic plane as a disc, else the two main axes."""
    source, target = (job.tables[name].dense for name in ("source", "target"))
    signature, is_disc = job.signature, (job.signature.p, job.signature.q, *X.shape) == (2, 1, 3, 3)
    axes = np.linalg.svd(target - target.mean(axis=0), full_matrices=False)[2][:2].T
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))  # one column has one axis
    clouds = {"before": source[:, : target.shape[1]], "after": source @ X}
    figure = job.figure(figsize=(9, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel, (title, cloud) in zip(panels, clouds.items(), strict=True):
        one, other = cloud @ axes, target @ axes
        if is_disc:
            one, other = (
                points[:, signature.positive] / (1 + abs(points[:, signature.negative]))
                for points in (cloud, target)
            )
            panel.plot(*np.exp(1j * np.linspace(0, 7, 300)).view(float).reshape(-1, 2).T, "0.6")
            panel.axis("off")
        panel.plot(*np.stack([one, other]).transpose(2, 0, 1), color="0.8", lw=0.8, zorder=0)
        panel.plot(*one.T, "o", ms=4, color="#0072B2", label="source")
        panel.plot(*other.T, "x", ms=5, color="#D55E00", label="target")
        panel.set(title=f"{title}: R² {_r_squared(cloud, target):.4g}", aspect="equal")
    panels[0].legend(fontsize="small")
    with replacing(job.plot) as stream:
        figure.savefig(stream, dpi=150, format=job.plot.suffix[1:].lower())
