"""Data and problems with known answers."""

from jorth.datasets.embedded import TraceProblem, digits_trace
from jorth.datasets.generated import PlantedProcrustes, planted_procrustes

__all__ = ["PlantedProcrustes", "TraceProblem", "digits_trace", "planted_procrustes"]
