"""Structural probes over several seeds: medians, sample gradients to match, and their tables."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from statistics import median

from jorth.bench.core import html as page
from jorth.bench.core.html import Html, html, label, table, table_cell, table_row
from jorth.bench.core.places import best_three
from jorth.bench.core.records import MethodRows, Row, reason
from jorth.bench.core.sections import Headline, Podium, headline_of
from jorth.bench.core.words import counted, firsts, listed, on_how_many, seeds_text
from jorth.bench.matrices.cells import DIVERGED_NORM, MatrixCell
from jorth.bench.matrices.groups import OneProblem, columns_of
from jorth.bench.matrices.methods import in_order
from jorth.bench.matrices.tables import status_words

RIVALS = ("UMCM", "ADMM", "CSDM")
"""The paper's methods that J-JOBCD and VR-J-JOBCD are compared with."""
CAPTION = (
    "The value at the end of the budget, the median over the seeds, in brackets the least and the "
    "largest; how the runs ended; the largest ‖X‖₂ and scaled residual max|XᵀJX − J| / ‖X‖₂² of "
    "the returned points. “left”: ‖X‖ had grown to 10⁴. UMCM and ADMM leave the constraint: their "
    "values and residuals are those of polished points."
)
MATCHED = (
    "Sample gradients with which VR-J-JOBCD first reached the last value of J-JOBCD, over those "
    "that J-JOBCD took to get there; medians over the seeds. The value of VR-J-JOBCD is known at "
    "full passes only: these numbers are upper bounds."
)
RUNS = """\
{{ badge }}{{ values }}<br><small>{{ ended }}<br>{{ feasibility }}\
{% if polished %}<br>before polishing {{ polished }}{% endif %}</small>\
{% if doubts %}<br><span class="failed">the solver said otherwise in {{ doubts }}</span>{% endif %}\
{% if trouble %}<br>{{ trouble }}{% endif %}"""
PODIUM_CAPTION = (
    "The best three methods by the value at the end of the budget, the median over the seeds. The "
    "appendix has all methods."
)


@dataclass
class SeededRuns(OneProblem):
    """Runs of one problem on one budget: one row for each seed of each method."""

    rows: MethodRows

    @property
    def medians(self) -> dict[str, float]:
        """The median of the last values by method; a run without one counts as infinite."""
        return {name: median(map(last_value, rows)) for name, rows in self.rows.items()}

    @property
    def places(self) -> dict[str, int]:
        """The places of the best three medians."""
        return best_three({name: end for name, end in self.medians.items() if math.isfinite(end)})

    def no_worse(self, method: str) -> bool | None:
        """Whether its median is at most those of all RIVALS that ran; None if there are none."""
        ends = self.medians
        rivals = [ends[name] for name in RIVALS if name in ends]
        if method not in ends or not rivals or not self.rows.done(method):
            return None
        return all(ends[method] <= rival for rival in rivals)


def seeded_runs(rows: list[Row]) -> list[SeededRuns]:
    """All runs of probes in the order of their first rows, methods as in the tables."""
    shared: dict[MatrixCell, list[Row]] = {}
    for row in rows:
        cell = MatrixCell.from_json(row["cell"])
        if cell.problem == "probe":
            shared.setdefault(cell.over_seeds, []).append(row)
    methods = in_order({row["cell"]["method"] for row in rows})
    return [SeededRuns(cell, MethodRows(runs, methods)) for cell, runs in shared.items()]


def last_value(row: Row) -> float:
    """The last value of a run; infinite if there is none."""
    value = row["value"] if row["outcome"] == "done" else None
    return math.inf if value is None else float(value)


@dataclass(frozen=True)
class Match:
    """The sample gradients after which two runs of one seed first reached a value.

    The value of VR-J-JOBCD is known at full passes only, so its number is an upper bound.
    """

    value: float  # the last of J-JOBCD
    jacobi: float  # sample gradients of J-JOBCD
    reduced: float | None  # of VR-J-JOBCD; None if it did not reach the value

    @property
    def ratio(self) -> float:
        return math.inf if self.reduced is None else self.reduced / self.jacobi


def matches(runs: SeededRuns) -> list[Match]:
    """For each seed with both, how many sample gradients VR-J-JOBCD needed to match J-JOBCD."""
    reduced = {row["cell"]["seed"]: row for row in runs.rows.done("VR-J-JOBCD")}
    found = []
    for row in runs.rows.done("J-JOBCD"):
        values = [value for value in row["history"]["value"] if value is not None]
        other = reduced.get(row["cell"]["seed"])
        if other is not None and values:
            jacobi = samples_to(row, values[-1])
            assert jacobi is not None
            found.append(Match(values[-1], jacobi, samples_to(other, values[-1])))
    return found


def samples_to(row: Row, value: float) -> float | None:
    """The sample gradients at the first record of at most ``value``; None if there is none."""
    history = row["history"]
    pairs = zip(history["samples"], history["value"], strict=True)
    return next((samples for samples, found in pairs if found is not None and found <= value), None)


def verdict(found: list[SeededRuns]) -> list[str]:
    """How the methods compare by medians over the seeds, in sentences."""
    winners = [[name for name, place in runs.places.items() if place == 1] for runs in found]
    sentences = [f"The structural probe: {firsts(winners, 'data set')}."]
    for method in ("J-JOBCD", "VR-J-JOBCD"):
        known = [runs for runs in found if runs.no_worse(method) is not None]
        if known:
            rivals = [name for name in RIVALS if any(name in runs.rows for runs in known)]
            good = sum(bool(runs.no_worse(method)) for runs in known)
            where = on_how_many(good, len(known), "data set")
            sentences.append(f"{method} ends no worse than {listed(rivals)} {where}.")
    ratios = [median(pair.ratio for pair in pairs) for runs in found if (pairs := matches(runs))]
    if ratios:
        few = sum(ratio <= 1 / 3 for ratio in ratios)
        sentences.append(
            "VR-J-JOBCD reaches the last value of J-JOBCD with at most a third of its sample "
            f"gradients {on_how_many(few, len(ratios), 'data set')}."
        )
    return sentences


def headline(runs: SeededRuns, kind: str) -> Headline:
    """The winner by medians, and the next method."""
    ends = {name: end for name, end in runs.medians.items() if math.isfinite(end)}
    count = len(runs.rows.seeds)
    more = f", the median of {counted(count, 'seed')}" if count > 1 else ""
    return headline_of(kind, runs.name, ends, lambda end: f"f = {end:.4g}", more=more)


def podium(runs: SeededRuns) -> Podium:
    """The best three medians."""
    rows = [row for members in runs.rows.values() for row in members]
    trouble = dict.fromkeys(reason(row) for row in rows if row["outcome"] != "done")
    results = {name: f"f = {end:.4g}" for name, end in runs.medians.items()}
    return Podium(runs.name, _details(runs), runs.places, results, "; ".join(trouble))


def results_table(found: list[SeededRuns]) -> Html:
    """One row per data set, one column per method."""
    names = columns_of(found)
    body = []
    for runs in found:
        rows = [row for members in runs.rows.values() for row in members]
        if all(row["outcome"] == "missing" for row in rows):
            cells = [table_cell(reason(rows[0]), css="text failed", span=len(names))]
        else:
            places = runs.places
            cells = [_cell(runs.rows.get(name), places.get(name)) for name in names]
        body.append(table_row(_label(runs), cells))
    return table(CAPTION, ["data (m-n-p)", *names], body)


def _label(runs: SeededRuns) -> Html:
    return label(runs.name, _details(runs))


def _details(runs: SeededRuns) -> str:
    seeds = runs.rows.seeds
    which = f"{len(seeds)} seeds" if len(seeds) > 1 else seeds_text(seeds)
    return f"{which}, {runs.budget}"


def _cell(rows: list[Row] | None, place: int | None) -> Html:
    if not rows:
        return table_cell("not run")
    done = [row for row in rows if row["outcome"] == "done"]
    trouble = page.without_result([row for row in rows if row not in done])
    if not done:
        return table_cell(trouble)
    content = html(
        RUNS,
        badge=page.badge(place),
        values=_values([last_value(row) for row in rows]),
        ended=_ended(done),
        feasibility=f"‖X‖ {_largest(done, 'norm'):.3g}, residual {_largest(done, 'residual'):.1e}",
        polished=_polished(done),
        doubts=sum(not row["claim_holds"] for row in done),
        trouble=trouble,
    )
    return table_cell(content)


def _values(values: list[float]) -> str:
    texts = [
        f"{value:.4g}" if math.isfinite(value) else "none"
        for value in (median(values), min(values), max(values))
    ]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]" if len(values) > 1 else texts[0]


def _has_left(row: Row) -> bool:
    """Whether a growing X ended the run, whatever it could tell about f."""
    far = (row.get("norm") or 0.0) >= 0.99 * DIVERGED_NORM["probe"]
    return row["status"] in ("NOT_ATTAINED", "UNBOUNDED") or (row["status"] == "STALLED" and far)


def _ended(rows: list[Row]) -> str:
    counts = Counter("left" if _has_left(row) else status_words(row) for row in rows)
    ends = [f"{number} {end}" if len(rows) > 1 else end for end, number in counts.items()]
    return f"{', '.join(ends)}; {median(row['time'] for row in rows):.2g} s"


def _polished(rows: list[Row]) -> str:
    """The largest residual before polishing, if it is well above the one after."""
    before = max(row["residual_before_polishing"] or 0.0 for row in rows)
    return f"{before:.1e}" if before > max(100 * _largest(rows, "residual"), 1e-12) else ""


def _largest(rows: list[Row], name: str) -> float:
    return max(row[name] or math.inf for row in rows)


def matching_table(found: list[SeededRuns]) -> Html:
    """What VR-J-JOBCD needed to match J-JOBCD; empty unless both were run."""
    body = [
        table_row(_label(runs), _match_cells(pairs)) for runs in found if (pairs := matches(runs))
    ]
    methods = ("last value of J-JOBCD", "J-JOBCD", "VR-J-JOBCD")
    heads = ("data (m-n-p)", *methods, "ratio", "ratio by seed")
    return table(MATCHED, heads, body) if body else html("")


def _match_cells(pairs: list[Match]) -> list[Html]:
    reduced = median(math.inf if pair.reduced is None else pair.reduced for pair in pairs)
    texts = [
        f"{median(pair.value for pair in pairs):.5g}",
        f"{median(pair.jacobi for pair in pairs):.3g}",
        _or_not_reached(reduced, "3g"),
        _or_not_reached(median(pair.ratio for pair in pairs), "2f"),
        ", ".join(_or_not_reached(pair.ratio, "2f") for pair in pairs),
    ]
    return [table_cell(text) for text in texts]


def _or_not_reached(number: float, form: str) -> str:
    return f"{number:.{form}}" if math.isfinite(number) else "not reached"
