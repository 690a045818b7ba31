"""Noisy alignments with a planted answer, and the trace problem of their sources."""

import numpy as np
from benchopt import BaseDataset

from jorth import Signature, datasets

NOISE = 0.1
OUTLIERS = 0.1  # the share of rows of "robust" with wrong targets


class Dataset(BaseDataset):
    name = "planted"
    parameters = {
        "task": ["procrustes", "trace", "robust"],
        "n": [8, 32],
        "condition": [10.0],
        "seed": [0],
    }

    def get_data(self):
        signature = Signature(self.n // 2, self.n - self.n // 2)
        source, target, _ = datasets.planted_procrustes(
            2 * self.n,
            signature,
            source_condition=self.condition,
            # f of "robust" has further minima: the start must be near the planted one
            point_condition=2.0 if self.task == "robust" else 10.0,
            noise=NOISE,
            seed=self.seed,
        )
        arguments = dict(source=source, target=target)
        if self.task == "trace":
            arguments = dict(A=source.T @ source / len(source))
        if self.task == "robust":
            rng = np.random.default_rng([self.seed, self.n])
            wrong = rng.permutation(len(target))[: round(OUTLIERS * len(target))]
            target[wrong] = rng.permutation(target[wrong], axis=1)
            arguments["delta"] = 2 * NOISE * self.n**0.5
        return dict(task=self.task, arguments=arguments, signature=signature)
