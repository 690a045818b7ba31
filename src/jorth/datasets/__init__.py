"""Data and problems with known answers."""

from jorth.datasets.generated import planted_procrustes

__all__ = ["planted_procrustes"]
