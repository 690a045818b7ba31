"""Settings of `jorth.kge.Config` by name: its defaults, and tuned ones."""

from __future__ import annotations

from typing import Any

LARGE_GRAPH: dict[str, Any] = {
    "p": 32,
    "dtype": "float32",
    "final_rate": 0.05,
    "warmup": 1,
    "averaging": 0.2,
}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
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

Those with names of graphs are the best that were found for them in 32 dimensions; add
``device="cuda"``.
"""
