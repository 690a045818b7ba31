"""Matrices and problems: generated, embedded, or the paper's data sets from files or the web."""

from jorth.datasets.generated import (
    PlantedProcrustes,
    TraceProblem,
    digits,
    digits_trace,
    planted_procrustes,
    positive_definite,
)
from jorth.datasets.loading import fetch, load
from jorth.datasets.registry import REGISTRY, DataSet

__all__ = [
    "REGISTRY",
    "DataSet",
    "PlantedProcrustes",
    "TraceProblem",
    "digits",
    "digits_trace",
    "fetch",
    "load",
    "planted_procrustes",
    "positive_definite",
]
