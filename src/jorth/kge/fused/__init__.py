"""Scores, label smoothing and softmax of a batch as one function, by the fastest backend."""

from jorth.kge.fused.dispatch import distance_softmax
from jorth.kge.fused.left_out import LeftOut

__all__ = ["LeftOut", "distance_softmax"]
