"""Matrices and problems: generated, embedded, or the paper's data sets from files or the web."""

from jorth.datasets.embedded import TraceProblem, digits, digits_trace
from jorth.datasets.fetching import fetch
from jorth.datasets.generated import (
    PlantedProcrustes,
    graded,
    planted_procrustes,
    positive_definite,
    randn,
)
from jorth.datasets.loading import load
from jorth.datasets.registry import REGISTRY, DataSet

__all__ = [
    "REGISTRY",
    "DataSet",
    "PlantedProcrustes",
    "TraceProblem",
    "digits",
    "digits_trace",
    "fetch",
    "graded",
    "load",
    "planted_procrustes",
    "positive_definite",
    "randn",
]
