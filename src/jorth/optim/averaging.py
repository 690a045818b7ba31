"""Averages of weights (EMA, SWA) whose J-orthogonal parameters stay on the group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import swa_utils

from jorth import _inputs
from jorth.group.elements import check_feasible, finite_thin, inverse
from jorth.group.polish import PolishError, orthogonal_factor
from jorth.linalg.polar import polar
from jorth.nn.declarations import Declared, declared


class AveragedModel(swa_utils.AveragedModel):
    """`torch.optim.swa_utils.AveragedModel` with J-orthogonal averages of J-orthogonal parameters.

    All other parameters, the buffers, ``state_dict``, ``update_bn`` and so on are as in torch. An
    update takes the mean (1 - t) A + t X of the average A and the model's X to its J-orthogonal
    polar factor, computed in float64 with an error that does not depend on ||A||. For near points
    this is exp(t log(X A^-1)) A to second order, and at t = 1/2 the midpoint for any.

    It exists unless X A^-1 has real negative eigenvalues; for a thin parameter, where (1 - t) t ||X
    - A||^2 is below about one.

    Args:
        model: The model, whose declared parameters (`jorth.nn.declare`) are J-orthogonal.
        device: The device of the average; that of the model if omitted.
        avg_fn: (averaged, current, number averaged) -> the new average; an equal weight for all
            updates (SWA) if both are omitted.
        multi_avg_fn: The same for lists of tensors in place, as
            ``torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)``. It must be linear, as EMA and SWA
            are, and is called with float64 copies of the J-orthogonal parameters.
        use_buffers: Whether buffers are averaged as well, and not copied.

    >>> model = jorth.nn.JOrthogonalLinear(jorth.Signature(2, 1))
    >>> averaged = jorth.optim.AveragedModel(model)
    >>> averaged.update_parameters(model)  # after each step or epoch
    """

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Let the model's parameters enter the average.

        Raises:
            ValueError: A parameter of the model is not J-orthogonal, or in another component than
                its average. Nothing has been changed then.
            PolishError: The two are too far apart to have a mean. Nothing has been changed then.
        """
        entries = {id(entry.parameter): entry for entry in declared(self.module)}
        averages = []
        for A, X in zip(self.module.parameters(), model.parameters(), strict=False):
            if id(A) in entries and A.numel():
                point = X.detach().to(A.device)
                entry = entries[id(A)]
                finite = finite_thin(point, entry.signature, entry.name)
                check_feasible(finite, entry.signature, entry.name)
                if self.n_averaged > 0:
                    averages.append((A, self._average(entry, A, point)))
        super().update_parameters(model)
        for A, average in averages:
            A.copy_(average)

    def _mean(self, A: Tensor, X: Tensor) -> Tensor:
        """Return the mean that torch takes of two tensors."""
        number = self.n_averaged.to(A.device)
        if self.multi_avg_fn is not None:
            mean: Any = A.clone()
            self.multi_avg_fn([mean], [X], number)
        else:
            average: Any = self.avg_fn or swa_utils.get_swa_avg_fn()  # type: ignore[no-untyped-call]
            mean = average(A, X, number)
        _inputs.check_finite(mean, "the mean")
        return mean  # type: ignore[no-any-return]

    def _average(self, entry: Declared, A: Tensor, X: Tensor) -> Tensor:
        """Return the polar factors of the means of A and X (..., n, k)."""
        name, signature, columns = entry.name, entry.signature, entry.columns
        a, x = (tensor.reshape(-1, *A.shape[-2:]).double() for tensor in (A, X))
        of_rows, of_columns = (kind.positions(A.device) for kind in (signature, columns))
        for rows, own in zip(of_rows, of_columns, strict=True):
            if len(rows) == len(own):  # the sign of a square block's determinant is a component's
                both = torch.stack([a, x])[..., rows[:, None], own]
                if not torch.equal(*torch.linalg.slogdet(both).sign):
                    wanted = f"{name} must lie in the component of the average, got a different one"
                    reason = "there is no mean of matrices in different components"
                    raise ValueError(f"{wanted}: {reason}")
        try:
            if columns != signature:
                W = orthogonal_factor(self._mean(a, x), signature, "E", columns=columns)
                return W.reshape(A.shape)
            a = orthogonal_factor(a, signature, "the average")
            x = orthogonal_factor(x, signature, "the parameter")
            M = self._mean(a, x) @ inverse(a, signature)
            identity = torch.eye(signature.n, dtype=M.dtype, device=M.device)
            if bool((torch.linalg.matrix_norm(M - identity) < 0.25).all()):
                W = orthogonal_factor(M, signature, "M")
            else:  # M may have no factor, or one in another component: that is checked
                W = polar(M, signature)[0]
        except PolishError as error:
            message = f"{name} and the average are too far apart to have a mean on the group"
            raise PolishError(f"{message}: {error}") from None
        return (W @ a).reshape(A.shape)
