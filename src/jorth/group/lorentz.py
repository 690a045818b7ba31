"""Lorentz transforms of space-time: boosts, rotations, and frames made of given vectors.

With u = (s, t) of length <u, u> = -1 and t > 0, the boost that takes the axis of time to u is
B = [[I + s s^T / (1 + t), s], [s^T, t]], symmetric, with the inverse of -s. The signature has one
negative sign, the place of time. With the velocity of light as 1, rapidity is atanh(velocity).
"""

from __future__ import annotations

import itertools
import math
from typing import Literal

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, describe, like_input, to_tensor
from jorth.signature import Signature


def boost(
    vector: ArrayT | Convertible,
    signature: Signature,
    *,
    kind: Literal["rapidity", "velocity"] = "rapidity",
) -> ArrayT:
    """Return the boosts (..., n, n) that give what is at rest these rapidities or velocities.

    Args:
        vector: The direction in space times the rapidity or the velocity, (..., n - 1).
        signature: One negative sign, that of time.
        kind: What the length of the vector is. Velocities are below 1, that of light.

    >>> sig = jorth.Signature.lorentz(2)
    >>> jorth.ultrahyperbolic.boost(np.array([0.6]), sig, kind="velocity")
    array([[1.25, 0.75],
           [0.75, 1.25]])
    """
    _check_lorentz(signature)
    _inputs.check_choice(kind, "kind", ("rapidity", "velocity"))
    w = _vectors(vector, "vector", (signature.n - 1,), signature)
    length = torch.linalg.vector_norm(w, dim=-1, keepdim=True)
    if kind == "rapidity":
        moving = length > 0
        r = torch.where(moving, length, 1.0)
        half = w * torch.where(moving, (r / 2).sinh() / r, 0.5)  # its square is (t - 1) / 2
        square = half.square().sum(dim=-1, keepdim=True)
        s, t = 2 * half * (1 + square).sqrt(), 1 + 2 * square
    else:
        if _inputs.is_readable(w) and bool((length >= 1).any()):
            raise ValueError(f"vector must have lengths below 1, got {float(length.max()):.6g}")
        t = (1 - w.square().sum(dim=-1, keepdim=True)).rsqrt()
        s = t * w
    X = _from_axes(s, t, torch.eye(signature.p, dtype=w.dtype, device=w.device), signature)
    _inputs.check_overflow(X, "vector", "the boost")
    return like_input(X, vector)


def rotation(vector: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the rotations (..., 4, 4) of space about axes, by angles that are the axes' lengths.

    They are I + sin(r)/r K + (1 - cos(r))/r^2 K^2 with K x = w x x and r = |w| (Rodrigues).

    Args:
        vector: Axes times angles in radians, w (..., 3), right-handed.
        signature: Three positive signs and a negative one, that of time.

    >>> sig = jorth.Signature.lorentz(4)
    >>> R = jorth.ultrahyperbolic.rotation(np.array([0.0, 0.0, np.pi / 2]), sig)
    >>> np.allclose(R @ [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    True
    """
    if _check_lorentz(signature).p != 3:
        raise ValueError(f"signature must have three positive signs, got {signature}")
    w = _vectors(vector, "vector", (3,), signature)
    eye = torch.eye(3, dtype=w.dtype, device=w.device)
    K = torch.linalg.cross(w[..., None, :], eye.expand(*w.shape, 3)).mT
    square = w[..., None] * w[..., None, :] - w.square().sum(dim=-1)[..., None, None] * eye  # K^2
    r = torch.linalg.vector_norm(w, dim=-1)[..., None, None] / math.pi
    Q = eye + r.sinc() * K + (r / 2).sinc().square() / 2 * square
    X = _from_axes(torch.zeros_like(w), torch.ones_like(w[..., :1]), Q, signature)
    _inputs.check_overflow(X, "vector", "the rotation")
    return like_input(X, vector)


def frame(vectors: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the Lorentz matrices X (..., n, n) whose columns the vectors give: Gram-Schmidt.

    The column of time is v_0 / sqrt(-<v_0, v_0>), and those of space are in the span of v_0, ...,
    v_i, with <x_i, v_i> > 0. So X goes along with the vectors: ``frame(v @ L.T) == L @ frame(v)``
    for each Lorentz matrix L, and ``inverse(frame(v)) @ x`` are coordinates that no L changes, as
    networks use that are equivariant under Lorentz transforms. They are differentiable.

    The residual of X is that of a boost to the rest frame of v_0.

    Args:
        vectors: (..., n, n), v_0, v_1, ... as rows: v_0 timelike, the others independent of it and
            of one another.
        signature: One negative sign, that of time.

    Raises:
        ValueError: v_0 is not timelike, or the vectors are linearly dependent to rounding.

    >>> sig = jorth.Signature.lorentz(2)
    >>> jorth.ultrahyperbolic.frame(np.array([[2.5, 1.5], [0.0, 1.0]]), sig)
    array([[1.25, 0.75],
           [0.75, 1.25]])
    """
    n = _check_lorentz(signature).n
    v = _vectors(vectors, "vectors", (n, n), signature)
    v = v / v.detach().abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(v.dtype).tiny)
    time = [*signature].index(-1)
    s, t = torch.cat([v[..., :time], v[..., time + 1 :]], dim=-1), v[..., time : time + 1]
    size = torch.linalg.vector_norm(s[..., 0, :], dim=-1, keepdim=True)
    past = t[..., 0, :].sign()
    square = (t[..., 0, :].abs() - size) * (t[..., 0, :].abs() + size)
    readable = _inputs.is_readable(v)
    if readable and not bool((square > 0).all()):
        expected = f"begin with a timelike one, <v_0, v_0> < 0 for {signature}"
        raise ValueError(f"vectors must {expected}, got one that is not")
    a = past * s[..., 0, :] / square.sqrt()  # space of v_0, of length -1, pointing to the future
    b = (1 + a.square().sum(dim=-1, keepdim=True)).sqrt()
    along = (s[..., 1:, :] * a[..., None, :]).sum(dim=-1, keepdim=True) / (1 + b)[..., None]
    along = along - t[..., 1:, :]
    Q, R = torch.linalg.qr((s[..., 1:, :] + along * a[..., None, :]).mT)
    diagonal = torch.diagonal(R, dim1=-2, dim2=-1)
    shortest = diagonal.detach().abs().amin(dim=-1)
    least = n * torch.finfo(v.dtype).eps * R.detach().abs().amax(dim=(-2, -1))
    if readable and bool((shortest <= least).any()):
        expected = f"linearly independent, v_0 timelike for {signature}"
        raise ValueError(f"vectors must be {expected}, got some that are not")
    X = _from_axes(a, b, Q * diagonal.detach().sign()[..., None, :], signature)
    flipped = torch.where(signature.vector(v) < 0, past, torch.ones_like(v[..., 0, :]))
    return like_input(X * flipped[..., None, :], vectors)


def _check_lorentz(signature: object) -> Signature:
    """Return the signature, which has one negative sign."""
    found = _inputs.check_signature(signature)
    if found.q != 1 or found.p == 0:
        raise ValueError(f"signature must have one negative sign, that of time, got {found}")
    return found


def _vectors(value: object, name: str, shape: tuple[int, ...], signature: Signature) -> Tensor:
    """Return finite vectors of a shape, after leading dimensions."""
    found = to_tensor(value, name)
    if tuple(found.shape[-len(shape) :]) != shape:
        expected = f"shape ({', '.join(['...', *map(str, shape)])}) for {signature}"
        raise ValueError(f"{name} must have {expected}, got {describe(value)}")
    _inputs.check_finite(found, name)
    return found


def _from_axes(s: Tensor, t: Tensor, Q: Tensor, signature: Signature) -> Tensor:
    """Return the boost to u = (s, t) after the orthogonal matrix Q (..., p, p) of space."""
    row = (s[..., None] * Q).sum(dim=-2, keepdim=True)  # no product that autocast would round
    column, corner = s[..., None], t[..., None]
    rows = torch.cat([Q + column * (row / (1 + corner)), column], dim=-1)
    X = torch.cat([rows, torch.cat([row, corner], dim=-1)], dim=-2)
    space = itertools.count()
    places = [next(space) if sign > 0 else signature.p for sign in signature]
    return X[..., places, :][..., places]
