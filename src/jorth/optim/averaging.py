"""Averages of weights (EMA, SWA) whose J-orthogonal parameters stay on the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import swa_utils

from jorth import _inputs
from jorth.group.elements import inverse, residual
from jorth.group.polish import SCHULZ_RADIUS, PolishError, orthogonal_factor
from jorth.linalg.polar import polar
from jorth.nn.declarations import Declared, declared
from jorth.signature import Signature

NEAR = 0.25
"""||R - I||_F below which R is in the identity component, and has a polar factor near I."""

Mean = Callable[[Tensor, Tensor], Tensor]
Pair = tuple[Declared, Tensor, Tensor]
"""A declared parameter, its average and the value that enters it."""


class AveragedModel(swa_utils.AveragedModel):
    """`torch.optim.swa_utils.AveragedModel` with J-orthogonal averages of J-orthogonal parameters.

    All other parameters, the buffers, ``state_dict``, ``update_bn`` and so on are as in torch. The
    first update copies the model. Later ones take the mean E of the average A and the model's X
    that torch's function gives, (1 - t) A + t X, and go to its J-orthogonal polar factor W, E = W S
    with J S symmetric. With R = X A^-1, E is M A for M = (1 - t) I + t R, so that W is the polar
    factor of M times A; this is computed in float64, from A and X polished to float64, and does
    not depend on ||A||. For near points W is exp(t log R) A to second order, and at t = 1/2 it is
    the midpoint for any; a boost of rapidity w counts as t sinh(w) at small t.

    W exists unless R has real negative eigenvalues. For a thin parameter, W^T J W = diag(columns),
    it exists where (1 - t) t ||X - A||^2 is below about one.

    Args:
        model: The model, whose declared parameters (`jorth.nn.declare`) are J-orthogonal.
        device: The device of the average; that of the model if omitted.
        avg_fn: (averaged, current, number averaged) -> the new average; an equal weight for all
            updates (SWA) if both are omitted.
        multi_avg_fn: The same for lists of tensors in place, as
            ``torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)``. It must be linear, as EMA and
            SWA are, and is called with float64 copies of the J-orthogonal parameters.
        use_buffers: Whether buffers are averaged as well, and not copied.
    """

    def __init__(
        self,
        model: nn.Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {_inputs.describe(model)}")
        _inputs.check_device(device)
        functions: dict[str, object] = {"avg_fn": avg_fn, "multi_avg_fn": multi_avg_fn}
        for name, function in functions.items():
            if function is not None and not callable(function):
                found = _inputs.describe(function)
                raise TypeError(f"{name} must be None or a function, got {found}")
        if None not in functions.values():
            raise ValueError("avg_fn or multi_avg_fn must be None, got two functions")
        _inputs.check_flag(use_buffers, "use_buffers")
        super().__init__(model, device, avg_fn, multi_avg_fn, use_buffers)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Let the model's parameters enter the average.

        Raises:
            ValueError: A parameter of the model is not J-orthogonal, or in another component than
                its average. Nothing has been changed then.
            PolishError: The two are too far apart to have a mean. Nothing has been changed then.
        """
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {_inputs.describe(model)}")
        entries = {id(entry.parameter): entry for entry in declared(self.module)}
        pairs: list[Pair] = [
            (entries[id(A)], A, X.detach().to(A.device))
            for A, X in zip(self.module.parameters(), model.parameters(), strict=False)
            if id(A) in entries
        ]
        for entry, _, X in pairs:
            if X.numel():
                _check(entry, X)
        averages = [] if bool(self.n_averaged == 0) else _averages(pairs, self._mean)
        super().update_parameters(model)
        for A, average in averages:
            A.copy_(average)

    def _mean(self, A: Tensor, X: Tensor) -> Tensor:
        """The mean that torch takes of two tensors."""
        number = self.n_averaged.to(A.device)
        if self.multi_avg_fn is not None:
            mean: Any = A.clone()
            self.multi_avg_fn([mean], [X], number)
        else:
            average: Any = self.avg_fn or swa_utils.get_swa_avg_fn()  # type: ignore[no-untyped-call]
            mean = average(A, X, number)
        if not isinstance(mean, Tensor) or mean.shape != A.shape or mean.dtype != A.dtype:
            expected = f"{_inputs.describe(A)} for such tensors"
            raise TypeError(f"avg_fn must return {expected}, got {_inputs.describe(mean)}")
        _inputs.check_finite(mean, "the mean")
        return mean


def _check(entry: Declared, X: Tensor) -> None:
    """Raise a ValueError if X (..., n, k) has lost half its digits of X^T J X, u^(1/2).

    One product clears most matrices: the longest row of X bounds ||X||_2 from below.
    """
    limit = _inputs.unit_roundoff(X) ** 0.5
    gram = torch.diag(entry.columns.vector(X))
    violation = (X.mT @ (entry.signature.vector(X)[:, None] * X) - gram).abs().amax(dim=(-2, -1))
    longest = X.square().sum(dim=-1).amax(dim=-1).clamp(min=1.0)
    if bool((violation <= limit * longest).all()):
        return
    worst = float(torch.as_tensor(residual(X, entry.signature, gram=gram)).max())
    if not worst <= limit:
        expected = f"{entry.name} must be J-orthogonal for {entry.signature}"
        raise ValueError(f"{expected} to be averaged, got a scaled residual of {worst:.3g}")


def _averages(pairs: list[Pair], mean: Mean) -> list[tuple[Tensor, Tensor]]:
    """The present averages and the new ones; those of one kind are one batch."""
    batches: dict[Any, list[Pair]] = {}
    for pair in pairs:
        entry, A, _ = pair
        batches.setdefault((entry.signature, entry.columns, A.device), []).append(pair)
    found = []
    for (signature, columns, _), batch in batches.items():
        names = ", ".join(entry.name for entry, _, _ in batch)
        present = [A for _, A, _ in batch]
        A, X = _stack(present), _stack([X for _, _, X in batch])
        _check_components(A, X, signature, columns, names)
        try:
            if columns == signature:
                W = _average(A, X, mean, signature)
            else:
                W = orthogonal_factor(mean(A, X), signature, "E", columns=columns)
        except PolishError as error:
            message = f"{names} and the average are too far apart to have a mean on the group"
            raise PolishError(f"{message}: {error}") from None
        parts = torch.split(W, [A.shape[:-2].numel() for A in present])
        found += [(A, part.reshape(A.shape)) for A, part in zip(present, parts, strict=True)]
    return found


def _stack(tensors: list[Tensor]) -> Tensor:
    """Matrices (..., n, k) as one batch (b, n, k) in float64."""
    return torch.cat([tensor.reshape(-1, *tensor.shape[-2:]).double() for tensor in tensors])


def _average(A: Tensor, X: Tensor, mean: Mean, signature: Signature) -> Tensor:
    """The polar factors of the means of A and X (b, n, n), which are J-orthogonal to rounding."""
    E = mean(A, X)
    s = signature.vector(A)
    identity = torch.eye(signature.n, dtype=A.dtype, device=A.device)
    distance = torch.linalg.matrix_norm(s[:, None] * (E.mT @ (s[:, None] * E)) - identity)
    near = distance < SCHULZ_RADIUS
    W = orthogonal_factor(torch.where(near[:, None, None], E, identity), signature, "E")
    far = ~near
    if bool(far.any()):
        W[far] = _average_apart(A[far], X[far], mean, signature)
    return W


def _average_apart(A: Tensor, X: Tensor, mean: Mean, signature: Signature) -> Tensor:
    """The same as a multiple of A, for points that are far apart or have large norms."""
    A = orthogonal_factor(A, signature, "the average")
    X = orthogonal_factor(X, signature, "the parameter")
    M = mean(A, X) @ inverse(A, signature)
    identity = torch.eye(signature.n, dtype=A.dtype, device=A.device)
    far = torch.linalg.matrix_norm(M - identity) >= NEAR
    W = orthogonal_factor(torch.where(far[:, None, None], identity, M), signature, "M")
    if bool(far.any()):
        W[far] = polar(M[far], signature)[0]
    return W @ A


def _check_components(
    A: Tensor, X: Tensor, signature: Signature, columns: Signature, names: str
) -> None:
    """Raise a ValueError if matrices of A and X (b, n, k) lie in different components.

    A component is given by the signs of the determinants of X[+,+] and X[-,-], as far as these are
    square. It is the same where X^-1 A is near I.
    """
    if columns == signature:
        ratio = inverse(X, signature) @ A
        ratio.diagonal(dim1=-2, dim2=-1).sub_(1)
        apart = torch.linalg.matrix_norm(ratio) >= NEAR
        A, X = A[apart], X[apart]
    both = torch.stack([A, X])
    places = zip(signature.positions(A.device), columns.positions(A.device), strict=True)
    for rows, own in places:
        if len(rows) != len(own) or not both.numel():
            continue
        of_A, of_X = torch.linalg.slogdet(both[..., rows[:, None], own]).sign
        if not torch.equal(of_A, of_X):
            expected = f"{names} must be in the component of the average, got another"
            raise ValueError(f"{expected}: there is no mean of matrices in different components")
