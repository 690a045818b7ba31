"""Matrices and problems: generated, embedded, or the paper's data sets from files or the web."""

from jorth.datasets.generated import PlantedProcrustes as PlantedProcrustes
from jorth.datasets.generated import digits, planted_procrustes
from jorth.datasets.loading import fetch, load
from jorth.datasets.registry import REGISTRY
from jorth.datasets.registry import DataSet as DataSet

__all__ = ["REGISTRY", "digits", "fetch", "load", "planted_procrustes"]
