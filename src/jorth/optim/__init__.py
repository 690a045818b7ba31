"""Optimisers of torch for J-orthogonal parameters."""

from jorth.optim.jobcd import JOBCD

__all__ = ["JOBCD"]
