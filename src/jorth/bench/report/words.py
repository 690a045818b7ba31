"""What the page says in plain words."""

from __future__ import annotations

from statistics import median

from jorth.bench.paper import CITATION, Comparison
from jorth.bench.report.families import RIVALS, Family, matches, no_worse
from jorth.bench.report.templates import Html, html

READING = html(
    "<p>Every value was computed anew from the returned X through the objective; clocks leave out recording, "
    "compilation and warm-up. An entry of a table is the value, then in brackets Σ|XᵀJX − J|; <b>1</b>, <b>2</b>, "
    "<b>3</b> mark the best three of a row (equal ones share a place), (+) a second method of a chain that lowered f "
    "by more than 0.1%.</p>"
)
WELL_POSED = html(
    '<h2>The well-posed problem: the table to read</h2><div class="note"><p>min tr(Xᵀ(DᵀD + ridge·I)X) over '
    "XᵀJX = J. Its least value is known: the sum of |λ| over the eigenvalues of A x = λ J x, found directly by "
    "<code>jorth.eigh</code>. The gap is (f − f*) / (f(X₀) − f*); here a smaller value is a better answer, and "
    "runs end at a gap of 10⁻¹². Right steps change columns: on this problem they are the J-Jacobi method.</p></div>"
)
RACE = html(
    '<h2>The problem as printed: a race</h2><div class="warning"><p>The paper states min −tr(XᵀDᵀDX) over '
    "XᵀJX = J. <b>This problem is unbounded below</b>: along a boost f falls like −e^(2μ), so there is no best value, "
    "and a run never ends by itself. The table shows where each method stood when its budget was used up, ‖X‖ had "
    "grown to 10⁶, or the next step would have gone beyond what floating point keeps feasible (∞: the run left for "
    "infinity, and its value only says how far the last step went).</p>"
    "<p><b>What the race means.</b> f is concave, so its linear part bounds it from above, and the proximal weight θ "
    "alone limits the steps of the JOBCD methods: θ alone decides how fast they go. A value at a fixed time "
    "compares step rules, not optimisers. Which method is better the well-posed table tells.</p></div>"
)
RACE_CAPTION = (
    f"−‖D X‖² at the end of the budget; θ in units of the curvature of f. Paper: {CITATION}."
)
GAP_CAPTION = "Gap, value and violation. First is the smallest gap; where gaps are below 10⁻¹¹, the shortest time."
PROCRUSTES = html(
    "<h2>Noisy Procrustes</h2><p>min ‖S X − T‖² / 2m for a planted X and noise on T, from the identity. The optimum "
    "is that of a reference run of the preconditioned Riemannian L-BFGS to a gradient norm of 10⁻¹² or a stall: the "
    "best known, not certified.</p>"
)
PROBE = html(
    '<h2>The structural probe</h2><div class="note"><p>min 1/m² Σ (T_ij − c d(q_i, q_j))² + ridge/2 ‖X‖² over '
    "XᵀJX = J: T are the Euclidean distances of the rows of D, q_i = φ(d_i X) the points that X and the lift make of "
    "them, d geodesic distances on the pseudo-hyperboloid. (The paper lifts first and maps then, Q = φ(D) X; that f is "
    "constant on the feasible set.) Rows of zeros stay at the base point. The least value is not known. f is "
    "at least 0, so a smaller value is a better answer; but it can go on falling while ‖X‖ runs away, and a run "
    "ends when ‖X‖ has grown to 10⁴: the tables say “left”, the figures have an open triangle.</p>"
    "<p>Epochs are full gradients: m sample gradients count as one, a value without its gradient as a half. A sweep of "
    "GS-JOBCD takes a gradient for each of its n(n − 1)/2 pairs and is recorded when it is complete.</p></div>"
)
MEDIANS = (
    "{% if sentences %}<p>By medians over the seeds: {{ sentences | join(' ') }}</p>{% endif %}"
)
ORDERS = (
    "<h3>The order of the methods, here and in the paper</h3>"
    "<p>Of {{ decided }} pairs of methods that differ on both sides, {{ alike }} are ranked alike. "
    "In the paper UMCM and ADMM have equal values in every row, the value at the start: they did not move there. "
    "The paper does not say which θ it used, and another θ gives another order. Row randn(10-10-5) of the paper "
    "is not compared: it has positive values, which −‖D X‖² cannot take.</p>"
)


def on_curves(family: Family) -> str:
    """The caption of the curves of a probe."""
    ends = ", ".join(
        f"{name} {value:.4g}" for name, value in family.medians.items() if value < float("inf")
    )
    return (
        f"{family.name}, {family.budget} a run, seeds {', '.join(map(str, family.seeds))}: f against epochs and "
        f"against time. Medians at the end: {ends}."
    )


def on_probes(found: list[Family]) -> Html:
    """How J-JOBCD and VR-J-JOBCD compare, by medians."""
    sentences = []
    for method in ("J-JOBCD", "VR-J-JOBCD"):
        verdicts = [
            verdict for family in found if (verdict := no_worse(family, method)) is not None
        ]
        if verdicts:
            against = f"{', '.join(RIVALS[:-1])} and {RIVALS[-1]}"
            sentences.append(
                f"{method} ends no worse than {against} on {sum(verdicts)} of {len(verdicts)} data sets."
            )
    ratios = [
        median(pair.ratio for pair in pairs) for family in found if (pairs := matches(family))
    ]
    if ratios:
        few = sum(ratio <= 1 / 3 for ratio in ratios)
        sentences.append(
            "VR-J-JOBCD reaches the last value of J-JOBCD with at most a third of its sample gradients on "
            f"{few} of {len(ratios)}."
        )
    return html(MEDIANS, sentences=sentences)


def on_orders(found: list[Comparison]) -> Html:
    """How our order of the methods compares with the paper's."""
    alike = sum(comparison.alike for comparison in found)
    decided = alike + sum(comparison.reversed for comparison in found)
    return html(ORDERS, alike=alike, decided=decided)
