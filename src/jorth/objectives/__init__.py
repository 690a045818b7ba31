"""Objectives: functions of a matrix to be minimised, and what else is known about them."""

from jorth.objectives.autograd import AutogradObjective, check_objective
from jorth.objectives.base import AbstractObjective, Objective, QuadraticForm
from jorth.objectives.finite_sum import FiniteSum, Sharded
from jorth.objectives.probe import StructuralProbe
from jorth.objectives.procrustes import Procrustes
from jorth.objectives.quadratic import HyperbolicEigenvalue, Quadratic

__all__ = [
    "AbstractObjective",
    "AutogradObjective",
    "FiniteSum",
    "HyperbolicEigenvalue",
    "Objective",
    "Procrustes",
    "Quadratic",
    "QuadraticForm",
    "Sharded",
    "StructuralProbe",
    "check_objective",
]
