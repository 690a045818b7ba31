"""Draw f against ||X|| for runs that end as CONVERGED, NOT_ATTAINED and UNBOUNDED.

python benchmarks/statuses.py
"""

from pathlib import Path

import matplotlib
import numpy as np

import jorth

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "statuses.png"
SIG = jorth.Signature(3, 2)
NULL = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
FORMS = {
    "½ tr(XᵀX)": np.eye(5),
    "½ tr(XᵀvvᵀX), vᵀJv = 0": np.outer(NULL, NULL),
    "-½ tr(XᵀX)": -np.eye(5),
}


def main() -> None:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    start = jorth.random_point(SIG, cond=30, seed=0)
    for axis, (title, A) in zip(axes, FORMS.items(), strict=True):
        objective = jorth.Quadratic(A)
        result = jorth.minimize(objective, start, signature=SIG, method="riemannian-newton")
        norm, value = result.history["norm"], result.history["value"]
        axis.plot(norm, value, "o-", markersize=3, color="tab:blue")
        axis.plot(norm[-1], value[-1], "o", markersize=7, color="tab:red")
        axis.set(
            title=f"{title}\n{result.status.name}", xlabel="‖X‖₂ (the run ends at the red point)"
        )
        axis.grid(alpha=0.3)
        print(f"{title:<40} {result.status.name:<14} {result.iterations} iterations")
    axes[0].set_ylabel("f(X)")
    axes[1].set(xscale="log", yscale="log")
    axes[2].set(xscale="log", yscale="symlog", ylim=(-1e17, 0))
    axes[2].set_yticks([-(10.0**power) for power in (0, 4, 8, 12, 16)])
    figure.savefig(IMAGE, dpi=120)


if __name__ == "__main__":
    main()
