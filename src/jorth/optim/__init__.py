"""Torch optimisers for J-orthogonal parameters."""

from jorth.optim.averaging import AveragedModel
from jorth.optim.jobcd import JOBCD
from jorth.optim.model import ModelOptimizer, split_parameters
from jorth.optim.model import Split as Split
from jorth.optim.variance_reduced import VRJOBCD

__all__ = ["JOBCD", "VRJOBCD", "AveragedModel", "ModelOptimizer", "split_parameters"]
