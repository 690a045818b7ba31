"""The environment variable JORTH_TEST_SEED shifts every seed, to find tests that need a lucky one.

Seeds are fixed numbers: in the tests (``default_rng(3)``, ``random_point(..., seed=1)``), in the
code blocks of the docs and in the library's own defaults. All of them end in a few functions of
NumPy, torch and Python, which are wrapped here: they add the same number to whatever seed they get.
Equal seeds stay equal and different ones different, so that tests of reproducibility remain valid.
Generators, seed sequences and None pass through.

``tests/__init__.py`` calls `shift_every_seed`: a process started by a test gets the same seeds as
soon as it imports anything from ``tests``. ``tests/conftest.py`` seeds hypothesis. If the variable
is unset or 0, nothing is changed.
"""

import numbers
import os
import random
from functools import wraps

import numpy as np
import torch

BASE_SEED = int(os.environ.get("JORTH_TEST_SEED", "0"))
# far apart, so that a loop over seeds 0, 1, 2 ... meets none of them under the next base seed
SHIFT = 1_000_003 * BASE_SEED
TorchGenerator = torch.Generator


def shifted(seed):
    """The seed moved: an integer, or the first of a sequence of them; anything else as it is."""
    if isinstance(seed, bool):
        return seed
    if isinstance(seed, numbers.Integral):
        return int(seed) + SHIFT
    if isinstance(seed, list | tuple) and seed and isinstance(seed[0], numbers.Integral):
        return [int(seed[0]) + SHIFT, *seed[1:]]
    return seed


def _shifting(function):
    @wraps(function)
    def seeded(seed=None, *args, **kwargs):
        return function(shifted(seed), *args, **kwargs)

    return seeded


class _AnyGenerator(type(TorchGenerator)):
    """Generators that torch itself has made are instances too."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, TorchGenerator)


class ShiftedGenerator(TorchGenerator, metaclass=_AnyGenerator):
    """A torch generator; the class of torch cannot be patched in place."""

    def manual_seed(self, seed):
        return super().manual_seed(shifted(seed))


def shift_every_seed():
    """Wrap the functions in which seeds end, once."""
    if SHIFT == 0 or torch.Generator is ShiftedGenerator:
        return
    np.random.default_rng = _shifting(np.random.default_rng)
    np.random.seed = _shifting(np.random.seed)
    random.seed = _shifting(random.seed)
    torch.manual_seed = torch.random.manual_seed = _shifting(torch.manual_seed)
    torch.Generator = ShiftedGenerator
