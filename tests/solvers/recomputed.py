"""Value, gradient norm, residual and component of a point by plain NumPy in extended precision,
with bounds on what rounding may do to the same figures in the precision of the run. Nothing here is
jorth's."""

import numpy as np

WIDE = np.longdouble


def wide(array):
    return None if array is None else np.asarray(array, dtype=WIDE)


def norm2(X):
    return float(np.linalg.norm(np.asarray(X, dtype=np.float64), 2))


def frobenius(M):
    return float(np.sqrt((wide(M) ** 2).sum()))


class QuadraticFunction:
    """f(X) = 1/2 tr(X^T A X D) + <C, X>. ``size_of_A`` is what rounding of A is relative to, |A|
    unless told."""

    def __init__(self, A, C=None, D=None, size_of_A=None, terms=0):
        self.A, self.C, self.D = wide(A), wide(C), wide(D)
        self.size_of_A = abs(self.A) if size_of_A is None else wide(size_of_A)
        self.terms = terms  # of the sums that A was made of

    def _times(self, A, X, D):
        return A @ X if D is None else A @ X @ D

    def value(self, X):
        linear = 0 if self.C is None else (self.C * X).sum()
        return (X * self._times(self.A, X, self.D)).sum() / 2 + linear

    def gradient(self, X):
        return self._times(self.A, X, self.D) + (0 if self.C is None else self.C)

    def gradient_size(self, X):
        """Sums of absolute values:
        every product and sum of the gradient rounds relative to these."""
        D = None if self.D is None else abs(self.D)
        return self._times(self.size_of_A, abs(X), D) + (0 if self.C is None else abs(self.C))

    def value_error(self, X, unit):
        """gamma_m sum |terms| with m the longest chain of operations,
        whatever the order of the sums (Higham, 3.5)."""
        n, k = X.shape
        return (
            (n * k + 2 * n + k + self.terms + 10)
            * unit
            * float((abs(X) * self.gradient_size(X)).sum())
        )

    def gradient_error(self, X, unit):
        n, k = X.shape
        return (n + k + self.terms + 10) * unit * self.gradient_size(X)


SCALARS = {
    # phi, phi', a bound on |phi''| near z
    "square": (lambda z: z**2 / 2, lambda z: z, np.ones_like),
    "quartic": (lambda z: z**4 / 4, lambda z: z**3, lambda z: 3 * z**2),
    "huber": (lambda z: np.sqrt(1 + z**2), lambda z: z / np.sqrt(1 + z**2), np.ones_like),
    "barrier": (
        lambda z: z**2 / 2 - np.log(9 - z**2),
        lambda z: z + 2 * z / (9 - z**2),
        lambda z: 1 + 2 * (9 + z**2) / (9 - z**2) ** 2,
    ),
}


class RowsFunction:
    """f(X) = 1/m sum phi(S X - T) over all m k entries. ``compressed``:
    evaluated through a QR decomposition of S."""

    def __init__(self, S, T, scalar, compressed=False):
        self.S, self.T = wide(S), wide(T)
        self.phi, self.slope, self.bend = SCALARS[scalar]
        self.compressed = compressed

    def value(self, X):
        return self.phi(self.S @ X - self.T).sum() / len(self.S)

    def gradient(self, X):
        return self.S.T @ self.slope(self.S @ X - self.T) / len(self.S)

    def _entry_error(self, X, unit):
        """Of S X - T, entry by entry.
        Householder QR moves S and T by 10 m n u of their norms at most (Higham, 19)."""
        m, n = self.S.shape
        size = (n + 2) * unit * (abs(self.S) @ abs(X) + abs(self.T))
        if self.compressed:
            size = size + 10 * m * n * unit * (frobenius(self.S) * frobenius(X) + frobenius(self.T))
        return size

    def value_error(self, X, unit):
        Z, error = self.S @ X - self.T, self._entry_error(X, unit)
        first = abs(self.slope(Z)) * error + self.bend(abs(Z) + error) * error**2
        return float((first + (Z.size + 20) * unit * (abs(self.phi(Z)) + Z**2)).sum()) / len(self.S)

    def gradient_error(self, X, unit):
        Z, error = self.S @ X - self.T, self._entry_error(X, unit)
        slopes = self.bend(abs(Z) + error) * error + (len(self.S) + 20) * unit * (
            abs(self.slope(Z)) + abs(Z)
        )
        if self.compressed:
            return np.full(X.shape, frobenius(self.S) * frobenius(slopes) / len(self.S), dtype=WIDE)
        return abs(self.S).T @ slopes / len(self.S)


def skew(M):
    return (M - M.T) / 2


def gradient_norm(function, X, signs):
    """||skew(J G X^T)||_F."""
    return frobenius(skew(signs[:, None] * (function.gradient(X) @ X.T)))


def gradient_norm_error(function, X, signs, unit):
    """Of the product, of G, of the norm."""
    k, dG = X.shape[1], function.gradient_error(X, unit)
    size = abs(function.gradient(X)) + dG
    product = frobenius(dG @ abs(X).T) + (k + 4) * unit * frobenius(size @ abs(X).T)
    return product + (len(X) ** 2 + 10) * unit * gradient_norm(function, X, signs)


def gram(X, signs):
    return X.T @ (signs[:, None] * X)


def component(X, signs):
    """The signs of det X[+,+] and det X[-,-]; of an empty block +1."""
    blocks = [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)]
    X = np.asarray(X, dtype=np.float64)
    return tuple(int(np.linalg.slogdet(X[np.ix_(b, b)])[0]) if len(b) else 1 for b in blocks)


def exponential(K):
    """exp(K) by Taylor's series after halving."""
    halvings = max(0, int(np.ceil(np.log2(max(frobenius(K), 1e-30)))) + 3)
    small = K / WIDE(2) ** halvings
    term = total = np.eye(len(K), dtype=WIDE)
    for power in range(1, 25):
        term = term @ small / power
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


def lowered(function, X, signs, steps=4):
    """How far a short steepest descent along exp(-t J S) X brings f down from X."""
    first = best = function.value(X)
    for _ in range(steps):
        S = skew(signs[:, None] * (function.gradient(X) @ X.T))
        size = frobenius(S)
        if not (np.isfinite(size) and size > 0):
            break
        K = signs[:, None] * S / size
        trials = [exponential(-(WIDE(2) ** -e) * K) @ X for e in range(0, 50, 2)]
        values = [function.value(Y) for Y in trials]
        values = [v if np.isfinite(v) else np.inf for v in values]
        at = int(np.argmin(values))
        if not values[at] < best:
            break
        X, best = trials[at], values[at]
    return float(first - best)


def falls_for_ever(function, X, signs, sides):
    """Whether f goes to minus infinity along a boost of two rows (or columns) of opposite signs:
    among e^mu up to 2^200 the lowest value is at the end, and far below f(X)."""
    here = function.value(X)
    bar = here - 1e6 * (1 + abs(here))
    for side in sides:
        for i, j in zip(*np.triu_indices(len(signs), 1), strict=True):
            if signs[i] == signs[j]:
                continue
            for sheet in (1, -1):
                if _lowest(function, X, side, (i, j), sheet) < bar:
                    return True
    return False


def _lowest(function, X, side, pair, sheet):
    Y = (X if side == "left" else X.T).copy()
    plus, minus = Y[pair[0]] + Y[pair[1]], Y[pair[0]] - Y[pair[1]]
    lowest = np.inf
    for e in (-200, -60, 60, 200):
        u = WIDE(2) ** e
        Y[pair[0]] = (u * plus + minus / u) / 2 * sheet
        Y[pair[1]] = (u * plus - minus / u) / 2
        value = function.value(Y if side == "left" else Y.T)
        lowest = min(lowest, value if np.isfinite(value) else np.inf)
    return lowest
