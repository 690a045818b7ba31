"""Two clouds of points in the hyperbolic plane, before and after alignment, drawn in the disc.

Its picture is docs/images/two_clouds.svg.
"""

import sys

import matplotlib
import numpy as np

import jorth

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "jorth"
from matplotlib import pyplot  # noqa: E402 - after the choice of its backend

sig = jorth.Signature.lorentz(3)  # a point is (t, x, y) with t^2 = 1 + x^2 + y^2
rng = np.random.default_rng(0)

# three arms of points, seen by two observers, and some noise
arm, along = np.arange(60) % 3, np.linspace(0.1, 2.2, 60)
angle = 2 * np.pi / 3 * arm + 0.5 * along
tangents = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
source = jorth.ultrahyperbolic.exp0(tangents, sig)
moved = source @ jorth.random_point(sig, cond=9, component=(-1, 1), seed=6)
target = moved + 0.03 * rng.standard_normal(moved.shape)

fit = jorth.procrustes(source, target, sig)
print(fit.message)


def disc(points):
    """The Poincare disc: (t, x, y) -> (x, y) / (1 + t)."""
    points = jorth.ultrahyperbolic.lift(points[:, 1:], sig)
    return points[:, 1:] / (1 + points[:, :1])


figure, panels = pyplot.subplots(1, 2, figsize=(8, 4))
for panel, cloud, title in zip(panels, (source, source @ fit.x), ("before", "after"), strict=True):
    ours, theirs = disc(cloud), disc(target)
    pairs = np.stack([ours, theirs, np.full_like(ours, np.nan)], axis=1).reshape(-1, 2)
    panel.plot(*pairs.T, color="#888888", linewidth=0.4)
    panel.scatter(*theirs.T, s=26, facecolors="none", edgecolors="#3d85c6", linewidths=1.2)
    panel.scatter(*ours.T, s=9, color="#e8833a")
    panel.add_patch(pyplot.Circle((0, 0), 1, fill=False, color="#888888"))
    panel.set_title(title, color="#888888", fontsize=14)
    panel.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal")
    panel.axis("off")
figure.tight_layout()
path = sys.argv[1] if len(sys.argv) > 1 else "two_clouds.svg"
figure.savefig(path, transparent=True, metadata={"Date": None})
