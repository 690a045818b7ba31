"""The user's own data: matrices in files, identified by their names and contents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from jorth.datasets.loading import take
from jorth.storage.checks import dense, most_bytes
from jorth.storage.matrices import checksum, read
from jorth.storage.text_matrices import AUTO, Choice, Layout, Tell, silent

LEAST_ROWS, LEAST_COLUMNS = 2, 2


@dataclass(frozen=True)
class OwnData:
    """A file of rows, and for Procrustes a second one of targets, if there are any.

    Rows on disk have the names and checksums alone, as folders are nobody's business.
    """

    sha256: str
    key: str | None = None  # the variable of a .npz or .mat file
    target: str | None = None  # the name of the file
    target_sha256: str | None = None
    target_key: str | None = None
    signs: str | None = None  # such as ++-+, if not all + come first
    header: Choice = "auto"  # whether text files have one
    index: Choice = "auto"
    paths: tuple[Path, ...] = field(default=(), compare=False)  # of the file and of the targets

    def record(self) -> dict[str, Any]:
        """The fields that are stored."""
        fields = dict(vars(self))
        del fields["paths"]
        return fields

    def load(self, m: int, n: int, seed: int) -> tuple[NDArray[np.float64], Any, str]:
        """D (m, n), the targets (m, k) or None, and how rows and columns were chosen."""
        D = self._read(self.paths[0], self.sha256, self.key)
        targets = None
        if self.target is not None:
            targets = self._read(self.paths[1], str(self.target_sha256), self.target_key)
        rng = np.random.default_rng(seed)
        how = f"all of {self.paths[0].name}"
        if m < len(D):
            rows = np.sort(rng.choice(len(D), m, replace=False))
            D = D[rows]
            targets = None if targets is None else targets[rows]
            how = f"random rows of {self.paths[0].name}"
        if n < D.shape[1]:
            D = take(D, None, n, subset="random", seed=rng, source=self.paths[0].name)
            how = f"random rows and columns of {self.paths[0].name}"
        return D, targets, f"{how}, sha256 {self.sha256[:12]}"

    def _read(self, path: Path, sha256: str, key: str | None) -> NDArray[np.float64]:
        if checksum(path) != sha256:
            raise ValueError(f"{path} has changed since the benchmark began")
        return read_dense(path, key, Layout(self.header, self.index))


def open_own(
    path: Path,
    key: str | None = None,
    target: Path | None = None,
    target_key: str | None = None,
    *,
    layout: Layout = AUTO,
    tell: Tell = silent,
) -> tuple[OwnData, tuple[int, int]]:
    """The data in files, and the numbers of rows and columns.

    ``tell`` is called with what was decided about the layout of text files.

    Raises:
        ValueError: A file does not hold a matrix that can be used; the message names it.
    """
    D = read_dense(path, key, layout, tell)
    rows, columns = D.shape
    if rows < LEAST_ROWS or columns < LEAST_COLUMNS:
        least = f"at least {LEAST_ROWS} rows and {LEAST_COLUMNS} columns"
        raise ValueError(f"{path} must have {least}, got {rows} x {columns}")
    if not D.any():
        raise ValueError(f"{path} must have an entry that is not zero, got zeros alone")
    if target is None:
        own = OwnData(checksum(path), key, paths=(path,))
        return replace(own, **vars(layout)), (rows, columns)
    found = read_dense(target, target_key, layout, tell, "--target-key").shape
    if found != (rows, columns):
        raise ValueError(
            f"{target} must have the shape of {path}, {rows} x {columns}, got {found[0]} x "
            f"{found[1]}"
        )
    digests = checksum(path), checksum(target)
    own = OwnData(digests[0], key, target.name, digests[1], target_key, paths=(path, target))
    return replace(own, **vars(layout)), (rows, columns)


def read_dense(
    path: Path,
    key: str | None,
    layout: Layout = AUTO,
    tell: Tell = silent,
    key_option: str = "--key",
) -> NDArray[np.float64]:
    """A matrix in a file as float64, also if it is stored as a sparse one."""
    matrix = read(path, key=key, layout=layout, tell=tell, key_option=key_option)
    if scipy.sparse.issparse(matrix):
        matrix = dense(matrix.astype(np.float64), most_bytes())
    return np.array(matrix, dtype=np.float64, order="C")
