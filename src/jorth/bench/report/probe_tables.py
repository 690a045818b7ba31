"""The tables of the structural probe."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from statistics import median

from jorth.bench.methods import NAMES
from jorth.bench.records import Row
from jorth.bench.report.families import Family, Match, last_value, matches
from jorth.bench.report.tables import STATUS, badge, line, table

CAPTION = (
    "The value at the end of the budget, the median over the seeds, in brackets the least and the largest; how the "
    "runs ended; the largest ‖X‖₂ and scaled residual max|XᵀJX − J| / ‖X‖₂² of the returned points. “left”: ‖X‖ had "
    "grown to 10⁴. UMCM and ADMM leave the constraint: their values and residuals are those of polished points."
)
MATCHED = (
    "Sample gradients with which VR-J-JOBCD first reached the last value of J-JOBCD, over those that J-JOBCD took to "
    "get there; medians over the seeds. The value of VR-J-JOBCD is known at full passes only: these numbers are upper "
    "bounds."
)


def ends(found: list[Family]) -> str:
    """A line a data set, a column a method."""
    names = [name for name in NAMES if any(name in family.rows for family in found)]
    body = []
    for family in found:
        places = family.places
        cells = _missing(family, len(names)) or [_cell(family.rows.get(name), places.get(name)) for name in names]
        body.append(line(_label(family), cells))
    return table(CAPTION, ["data (m-n-p)", *names], body)


def _label(family: Family) -> str:
    seeds = family.seeds
    which = f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{escape(family.name)}<br><small>{which}, {escape(family.budget)}</small>"


def _missing(family: Family, columns: int) -> list[str]:
    rows = [row for members in family.rows.values() for row in members]
    if any(row["outcome"] != "missing" for row in rows):
        return []
    return [f'<td class="text failed" colspan="{columns}">missing: {escape(rows[0]["error"])}</td>']


def _cell(rows: list[Row] | None, place: int | None) -> str:
    if not rows:
        return "<td>not run</td>"
    done = [row for row in rows if row["outcome"] == "done"]
    trouble = "".join(
        f'<br><span class="failed">{row["outcome"]}: {escape(row["error"])}</span>' for row in rows if row not in done
    )
    if not done:
        return f"<td>{trouble.removeprefix('<br>')}</td>"
    doubts = sum(not row["claim_holds"] for row in done)
    doubt = f'<br><span class="failed">the solver said otherwise in {doubts}</span>' if doubts else ""
    more = f"<small>{_ended(done)}<br>{_feasibility(done)}</small>{doubt}{trouble}"
    return f"<td>{badge(place)}{_values(rows)}<br>{more}</td>"


def _values(rows: list[Row]) -> str:
    values = [last_value(row) for row in rows]
    spread = f" [{_value(min(values))}, {_value(max(values))}]" if len(values) > 1 else ""
    return f"{_value(median(values))}{spread}"


def _value(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "none"


def _ended(rows: list[Row]) -> str:
    said = STATUS | {"UNBOUNDED": "left"}
    counts = Counter(said.get(row["status"], row["status"].lower()) for row in rows)
    words = ", ".join(f"{number} {word}" if len(rows) > 1 else word for word, number in counts.items())
    return f"{words}; {median(row['time'] for row in rows):.2g} s"


def _feasibility(rows: list[Row]) -> str:
    norm, residual = (max(row[name] or math.inf for row in rows) for name in ("norm", "residual"))
    before = max(row["residual_before_polishing"] or 0.0 for row in rows)
    polished = f"<br>before polishing {before:.1e}" if before > max(100 * residual, 1e-12) else ""
    return f"‖X‖ {norm:.3g}, residual {residual:.1e}{polished}"


def matching(found: list[Family]) -> str:
    """What VR-J-JOBCD needed to match J-JOBCD, a line a data set; nothing where the two were not both run."""
    body = [line(_label(family), _match_cells(pairs)) for family in found if (pairs := matches(family))]
    heads = ["data (m-n-p)", "last value of J-JOBCD", "J-JOBCD", "VR-J-JOBCD", "ratio", "ratio by seed"]
    return table(MATCHED, heads, body) if body else ""


def _match_cells(pairs: list[Match]) -> list[str]:
    reduced = median(math.inf if pair.reduced is None else pair.reduced for pair in pairs)
    texts = [
        f"{median(pair.value for pair in pairs):.5g}",
        f"{median(pair.jacobi for pair in pairs):.3g}",
        f"{reduced:.3g}" if math.isfinite(reduced) else "not reached",
        ratio_text(median(pair.ratio for pair in pairs)),
        ", ".join(ratio_text(pair.ratio) for pair in pairs),
    ]
    return [f"<td>{text}</td>" for text in texts]


def ratio_text(ratio: float) -> str:
    """A ratio, or that it was not reached."""
    return f"{ratio:.2f}" if math.isfinite(ratio) else "not reached"
