"""Settings of `jorth.kge.Config` by name: its defaults, those of the paper, and tuned ones."""

from __future__ import annotations

from typing import Any

PAPER_STEP = {
    "metric": "embedding",
    "matching": "random",
    "rounds_per_gradient": 1,
    "components": "all",
}
"""The options of `jorth.optim.JOBCD` that make its step that of J-JOBCD as printed."""

LARGE_GRAPH: dict[str, Any] = {
    "p": 32,
    "dtype": "float32",
    "final_rate": 0.05,
    "warmup": 1,
    "averaging": 0.2,
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "p": 18,
        "q": 18,
        "reciprocal": False,
        "relation_lr": 1e-2,
        "relation_options": PAPER_STEP,
        "lr": 5e-4,
        "schedule": "constant",
        "epochs": 100,
        "batch_size": 128,
        "large_batch": 1024,
        "loss": "logistic",
        "smoothing": 0.0,
        "negatives": 50,
        "shared": False,
        "sides": "uniform",
        "regularisation": 0.0,
        "evaluate_every": 5,
    },
    "WN18RR": LARGE_GRAPH
    | {
        "epochs": 200,
        "batch_size": 2000,
        "negatives": 10_000,
        "lr": 0.1,
        "relation_lr": 0.002,
        "regularisation": 0.08,
        "reverse_weight": 0.6,
    },
    "FB15k-237": LARGE_GRAPH
    | {
        "epochs": 50,
        "batch_size": 1000,
        "negatives": 4000,
        "reject": True,
        "lr": 0.05,
        "relation_options": {"max_norm": 100.0},
        "regularisation": 0.05,
    },
}
"""What a preset changes in the defaults of `jorth.kge.Config`.

"paper" is UltraE with the settings of the JOBCD paper and its step as printed. The last two are the
best that were found for the graphs whose names they have, in 32 dimensions; add ``device="cuda"``.
"""
