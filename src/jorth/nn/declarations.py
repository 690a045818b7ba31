"""Which parameters of a model are J-orthogonal: declared by name, on the modules that own them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from torch import nn

from jorth import _inputs
from jorth._inputs import suggestion
from jorth.group.elements import check_feasible
from jorth.signature import Signature

ATTRIBUTE = "_j_orthogonal"
"""The attribute of a module: the signs of rows and of columns of its parameters, by name."""


class Declared(NamedTuple):
    """A J-orthogonal parameter X of a module: X^T J X = diag(columns), which is J if X is square.

    Attributes:
        name: The path of the parameter in the model, such as ``encoder.0.weight``.
        parameter: X (..., n, k).
        signature: The signs of J.
        columns: The signs of X^T J X.
    """

    name: str
    parameter: nn.Parameter
    signature: Signature
    columns: Signature


def declare(
    module: nn.Module, name: str, signature: Signature, *, columns: Signature | None = None
) -> nn.Module:
    """Declare that a parameter is J-orthogonal, X^T J X = J.

    `jorth.optim.split_parameters` then gives it to JOBCD, and `jorth.optim.AveragedModel` averages
    it on the group. The values are neither checked nor changed: fill them by
    `jorth.nn.init.j_orthogonal_`.

    The declaration belongs to the module and the name: it holds after ``to``, ``load_state_dict``,
    a deep copy or a pickle, and rests while the name is parametrised. The weight of a
    `JOrthogonalLinear` is declared already. ``load_state_dict`` warns of a weight that is not
    J-orthogonal, such as one that was rounded to half precision.

    Args:
        module: The owner of the parameter. It is changed in place and returned.
        name: The name of the parameter, such as "weight".
        signature: The signs of J.
        columns: For a thin X (..., n, k), the k signs of X^T J X.

    >>> module = torch.nn.Linear(3, 3, bias=False)
    >>> weight = jorth.nn.init.j_orthogonal_(module.weight, jorth.Signature(2, 1))
    >>> module = jorth.nn.declare(module, "weight", jorth.Signature(2, 1))
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {_inputs.describe(module)}")
    signature = _inputs.check_signature(signature)
    columns = signature if columns is None else _inputs.check_signature(columns, "columns")
    if columns.p > signature.p or columns.q > signature.q:
        raise ValueError(f"columns must have no more signs than {signature}, got {columns}")
    parameter = module._parameters.get(name) if isinstance(name, str) else None
    if parameter is None:
        owner = type(module).__name__
        found = f"{_inputs.describe(name)}{suggestion(name, dict(module.named_parameters()))}"
        raise ValueError(f"name must be that of a parameter of {owner}, got {found}")
    shape = (signature.n, columns.n)
    if tuple(parameter.shape[-2:]) != shape or not parameter.is_floating_point():
        signs = f"{signature}" if columns == signature else f"{signature} and columns {columns}"
        expected = f"floating-point numbers of shape (..., {shape[0]}, {shape[1]}) for {signs}"
        raise ValueError(f"{name} must be {expected}, got {_inputs.describe(parameter)}")
    if ATTRIBUTE not in module.__dict__:
        module.__dict__[ATTRIBUTE] = {}
        module.register_load_state_dict_post_hook(_warn_of_infeasible)  # type: ignore[no-untyped-call]
    module.__dict__[ATTRIBUTE][name] = signature, columns
    return module


def _warn_of_infeasible(module: nn.Module, keys: Any) -> None:
    """Warn of what was loaded and is not J-orthogonal."""
    for name, (signature, _) in module.__dict__[ATTRIBUTE].items():
        weight = module._parameters.get(name)  # None while it is parametrised
        if weight is None or weight.is_meta:
            continue
        cure = f"; set it to jorth.polish({name}, signature) if that comes from rounding"
        try:
            check_feasible(weight, signature, remedy=cure)
        except ValueError as error:
            owner = f"{type(module).__name__}.{name}, which was loaded,"
            warnings.warn(str(error).replace("X", owner, 1), RuntimeWarning, stacklevel=4)


def declared(model: nn.Module) -> list[Declared]:
    """Return the J-orthogonal parameters of a model, each once, in the order of its modules.

    Raises:
        ValueError: A shared parameter is declared with two signatures.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {_inputs.describe(model)}")
    found: dict[int, Declared] = {}
    for path, module in model.named_modules():
        for name, signs in module.__dict__.get(ATTRIBUTE, {}).items():
            parameter = module._parameters.get(name)  # None while it is parametrised
            if parameter is None:
                continue
            entry = Declared(f"{path}.{name}" if path else name, parameter, *signs)
            first = found.setdefault(id(parameter), entry)
            if (first.signature, first.columns) != (entry.signature, entry.columns):
                raise ValueError(
                    f"{first.name} and {entry.name} are one parameter and must have one signature, "
                    f"got {first.signature} and {entry.signature}"
                )
    return list(found.values())
