"""Settings that follow from the graph if they are left open.

Found on graphs of 14 to 1400 entities (generated ones, Nations, parts of WN18RR and FB15k-237; then
UMLS, Kinships and a part of the Human Phenotype Ontology) and, for large graphs, on WN18RR and
FB15k-237.
"""

from __future__ import annotations

ALL_ENTITIES = 4096
"""Up to so many entities all of them are false answers; beyond, as many are drawn per batch."""
LEAST_BATCH, LARGEST_BATCH = 64, 1024
STEPS_PER_EPOCH = 20
"""The number of steps per epoch that the batch size aims at."""
LARGE_BATCHES = 8
STEPS = 2000
"""The number of steps that a run on a small graph has at least, unless epochs get too many."""
LEAST_EPOCHS, LARGEST_EPOCHS = 100, 200
EVALUATIONS, CONSTANT_EVERY = 12, 5
"""The number of evaluations in a run; the epochs between two with a constant schedule."""


def batch_size(queries: int) -> int:
    """The number of queries per step for an epoch of ``queries``."""
    return max(LEAST_BATCH, min(LARGEST_BATCH, round(queries / STEPS_PER_EPOCH)))


def large_batch(batch: int) -> int:
    """The number of queries in a refresh of the method "vr-j-jobcd"."""
    return LARGE_BATCHES * batch


def epochs(queries: int, batch: int) -> int:
    """The number of epochs of ``queries`` in batches of ``batch``."""
    steps = -(-queries // batch)
    return max(LEAST_EPOCHS, min(LARGEST_EPOCHS, round(STEPS / steps)))


def negatives(entities: int) -> int | str:
    """The number of false answers per query, or "all"."""
    return "all" if entities <= ALL_ENTITIES else ALL_ENTITIES


def regularisation(entities: int) -> float:
    """The factor of the mean |s|^2: the more entities there are, the more room they need."""
    return 0.1 if entities <= ALL_ENTITIES else 0.06


def evaluate_every(epochs: int, schedule: str) -> int:
    """The number of epochs between two evaluations.

    With a constant schedule a run may go on with more epochs, on which it must not depend.
    """
    return CONSTANT_EVERY if schedule == "constant" else max(1, epochs // EVALUATIONS)
