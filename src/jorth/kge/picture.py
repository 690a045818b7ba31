"""Loss and MRR against epochs, as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jorth.storage.atomic import replacing


def draw_history(history: dict[str, NDArray[np.float64]], path: Path, *, title: str = "") -> None:
    """Write a picture of the `history` of a training: the loss on the left, validation MRR and Hits on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(history["epoch"], history["loss"])
    left.set_title(title, parse_math=False)
    left.set(xlabel="epoch", ylabel="loss")
    there = np.isfinite(history["mrr"])
    for name, label in (("mrr", "MRR"), ("hits@1", "Hits@1"), ("hits@10", "Hits@10")):
        right.plot(history["epoch"][there], history[name][there], marker=".", label=label)
    right.set(title="validation, filtered", xlabel="epoch", ylim=(0, 1))
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    with replacing(path) as stream:
        figure.savefig(stream, dpi=150, format=path.suffix[1:] or "png")
