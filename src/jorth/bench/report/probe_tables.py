"""The tables of the structural probe."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median

from jorth.bench.methods import NAMES
from jorth.bench.records import Row
from jorth.bench.report.families import Family, Match, last_value, matches
from jorth.bench.report.tables import (
    STATUS,
    badge,
    entry,
    label,
    line,
    reason,
    status_words,
    table,
    without_result,
)
from jorth.bench.report.templates import Html, html

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
RUNS = """\
{{ badge }}{{ values }}<br><small>{{ ended }}<br>{{ feasibility }}\
{% if polished %}<br>before polishing {{ polished }}{% endif %}</small>\
{% if doubts %}<br><span class="failed">the solver said otherwise in {{ doubts }}</span>{% endif %}\
{% if trouble %}<br>{{ trouble }}{% endif %}"""


def ends(found: list[Family]) -> Html:
    """A line a data set, a column a method."""
    names = [name for name in NAMES if any(name in family.rows for family in found)]
    body = []
    for family in found:
        places = family.places
        cells = _missing(family, len(names)) or [
            _cell(family.rows.get(name), places.get(name)) for name in names
        ]
        body.append(line(_label(family), cells))
    return table(CAPTION, ["data (m-n-p)", *names], body)


def _label(family: Family) -> Html:
    seeds = family.seeds
    which = f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
    return label(family.name, f"{which}, {family.budget}")


def _missing(family: Family, columns: int) -> list[Html]:
    rows = [row for members in family.rows.values() for row in members]
    if any(row["outcome"] != "missing" for row in rows):
        return []
    return [entry(reason(rows[0]), kind="text failed", span=columns)]


def _cell(rows: list[Row] | None, place: int | None) -> Html:
    if not rows:
        return entry("not run")
    done = [row for row in rows if row["outcome"] == "done"]
    trouble = without_result([row for row in rows if row not in done])
    if not done:
        return entry(trouble)
    content = html(
        RUNS,
        badge=badge(place),
        values=_values(rows),
        ended=_ended(done),
        feasibility=_feasibility(done),
        polished=_polished(done),
        doubts=sum(not row["claim_holds"] for row in done),
        trouble=trouble,
    )
    return entry(content)


def _values(rows: list[Row]) -> str:
    values = [last_value(row) for row in rows]
    spread = f" [{_value(min(values))}, {_value(max(values))}]" if len(values) > 1 else ""
    return f"{_value(median(values))}{spread}"


def _value(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "none"


def _ended(rows: list[Row]) -> str:
    said = STATUS | {"UNBOUNDED": "left"}
    counts = Counter(status_words(row, said) for row in rows)
    words = ", ".join(
        f"{number} {word}" if len(rows) > 1 else word for word, number in counts.items()
    )
    return f"{words}; {median(row['time'] for row in rows):.2g} s"


def _feasibility(rows: list[Row]) -> str:
    return f"‖X‖ {_largest(rows, 'norm'):.3g}, residual {_largest(rows, 'residual'):.1e}"


def _polished(rows: list[Row]) -> str:
    """The largest residual before polishing, where it says more than the one after."""
    before = max(row["residual_before_polishing"] or 0.0 for row in rows)
    return f"{before:.1e}" if before > max(100 * _largest(rows, "residual"), 1e-12) else ""


def _largest(rows: list[Row], name: str) -> float:
    return max(row[name] or math.inf for row in rows)


def matching(found: list[Family]) -> Html:
    """What VR-J-JOBCD needed to match J-JOBCD, a line a data set; nothing where the two were not both run."""
    body = [
        line(_label(family), _match_cells(pairs)) for family in found if (pairs := matches(family))
    ]
    heads = [
        "data (m-n-p)",
        "last value of J-JOBCD",
        "J-JOBCD",
        "VR-J-JOBCD",
        "ratio",
        "ratio by seed",
    ]
    return table(MATCHED, heads, body) if body else html("")


def _match_cells(pairs: list[Match]) -> list[Html]:
    reduced = median(math.inf if pair.reduced is None else pair.reduced for pair in pairs)
    texts = [
        f"{median(pair.value for pair in pairs):.5g}",
        f"{median(pair.jacobi for pair in pairs):.3g}",
        f"{reduced:.3g}" if math.isfinite(reduced) else "not reached",
        ratio_text(median(pair.ratio for pair in pairs)),
        ", ".join(ratio_text(pair.ratio) for pair in pairs),
    ]
    return [entry(text) for text in texts]


def ratio_text(ratio: float) -> str:
    """A ratio, or that it was not reached."""
    return f"{ratio:.2f}" if math.isfinite(ratio) else "not reached"
