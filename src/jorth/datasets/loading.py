"""`load`: a data set of the paper from a folder, as a matrix. `fetch`: download it by pooch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse

from jorth._files import reading
from jorth._inputs import check_choice, check_flag, file_path, generator, whole_number
from jorth._matrices import Matrix, check_matrix, entries, variables
from jorth.datasets.registry import DataSet, lookup
from jorth.extras import needs

ENDINGS = (".npz", "_csr.npz", "", ".txt", ".bz2", ".gz")
"""What may follow the name of a set, in the order in which files are searched for."""
NO_ADDRESS = "it has no public address known here"


def load(
    name: str,
    m: int | None = None,
    n: int | None = None,
    *,
    subset: Literal["random", "first"] = "random",
    seed: int | np.random.Generator = 0,
    sparse: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> Matrix:
    """Return a data set of the paper, samples in rows, as float64 (m, n).

    The first of these files that exists is read: ``NAME.npz`` (key X); ``NAME_csr.npz``
    (scipy.sparse); LIBSVM text ``NAME``, ``NAME.txt``, ``NAME.bz2`` or ``NAME.gz``. With ``sparse``
    the dense ``NAME.npz`` comes last.

    subset="random" draws m rows without replacement, drops the columns that are zero on these rows,
    and draws n of the others, all from ``numpy.random.default_rng(seed)``. subset="first" takes the
    first m rows and the first n columns and drops nothing. Without m all rows are taken in order;
    without n all columns.

    As in the paper, mnist is divided by 255 if it consists of whole numbers up to 255. Nothing else
    is normalised, and nothing is centred.

    Args:
        name: One of `REGISTRY`.
        m: The number of rows, None for all.
        n: The number of columns, None for all.
        subset: "random" or "first".
        seed: An integer or a NumPy generator.
        sparse: Return a CSR array, and search for sparse files first.
        folder: Folder of the data. Default: the environment variable JORTH_DATA, else the cache
            that `fetch` fills.

    Raises:
        ValueError: The file is damaged.
        FileNotFoundError: No file of the set is in the folder; the message says how to get one.

    >>> np.savez("mnist.npz", X=np.eye(4))  # a file of your own
    >>> jorth.datasets.load("mnist", m=2, subset="first", folder=".").shape
    (2, 4)
    """
    entry = lookup(name)
    check_flag(sparse, "sparse")
    path = find(entry, data_folder(folder), sparse_first=sparse)
    if path is None:
        download = f"`jorth.datasets.fetch({entry.name!r})` downloads it"
        raise FileNotFoundError(
            f"data set {entry.name} is not in {data_folder(folder)!s:.80}: "
            f"{download if entry.url else NO_ADDRESS}; or put {entry.name}.npz, "
            f"{entry.name}_csr.npz or LIBSVM text there, or name another folder by folder= or "
            "JORTH_DATA"
        )
    complete = _read(entry, path)
    # the complete file determines the scale, as a subset may happen to have only 0 and 1
    divisor = 1.0
    values = entries(complete)
    if entry.scale and values.size and values.min() >= 0 and 1 < values.max() <= entry.scale:
        divisor = entry.scale if (values == np.rint(values)).all() else 1.0
    matrix = _take(complete, m, n, subset, seed, f"data set {entry.name} ({path})")
    if sparse:
        result = scipy.sparse.csr_array(matrix, dtype=np.float64)
        result.data /= divisor  # SciPy's own division multiplies by the rounded reciprocal
        return result
    if scipy.sparse.issparse(matrix):
        matrix = matrix.toarray()
    return np.divide(matrix, divisor, dtype=np.float64)


def _read(entry: DataSet, path: Path) -> Matrix:
    """Return the matrix in a file as it is stored, dense or CSR; it must be real and finite."""
    label = f"data set {entry.name}: {path}"
    with reading(label, "; remove it and put or fetch a complete one there"):
        if path.suffix == ".npz":
            found = variables(path)
            if "X" not in found:
                raise ValueError(f"it must hold X, it holds {', '.join(found) or 'nothing'}")
            matrix = found["X"]
        else:
            with needs(f"the LIBSVM text {path.name}", "sklearn"):
                from sklearn.datasets import load_svmlight_file
            # the largest index gives the number of columns
            matrix = scipy.sparse.csr_array(load_svmlight_file(os.fspath(path))[0])
    check_matrix(matrix, label)
    return matrix


def _take(
    matrix: Matrix,
    m: int | None,
    n: int | None,
    subset: str,
    seed: int | np.random.Generator,
    source: str,
) -> Matrix:
    """Take m rows and n columns of a matrix by the rule that `load` documents."""
    check_choice(subset, "subset", ("random", "first"))
    rng = generator(seed)
    for name, wanted, available in (("m", m, matrix.shape[0]), ("n", n, matrix.shape[1])):
        if wanted is not None and whole_number(wanted, name, 1) > available:
            shape = f"{source} has shape {matrix.shape}"
            raise ValueError(f"{name} must be at most {available}: {shape}, got {wanted}")
    if subset == "first":
        return matrix[:m, :n]
    if m is not None:
        matrix = matrix[rng.choice(matrix.shape[0], m, replace=False)]
    if n is None:
        return matrix
    used = np.unique(matrix.nonzero()[1])  # of a CSR matrix without the zeros that it stores
    if n > len(used):
        raise ValueError(
            f"n must be at most {len(used)}: that many of the {matrix.shape[1]} columns of "
            f"{source} are not all zero on the {matrix.shape[0]} rows drawn, got {n}; "
            'subset="first" drops no column'
        )
    return matrix[:, rng.choice(used, n, replace=False)]


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    url: str | None = None,
    sha256: str | None = None,
) -> Path:
    """Download a data set into the folder where `load` looks, and return the path of the file.

    Nothing is downloaded if a file is there already, unless ``url`` or ``sha256`` is given. The
    sites publish no checksums: without ``sha256`` pooch logs the one of what it has downloaded.

    Args:
        name: One of `REGISTRY`.
        folder: Where to put it. Default: the environment variable JORTH_DATA, else jorth's cache.
        url: An address other than the registry's. Its ending gives the format, as for `load`.
        sha256: The checksum that the file must have.

    Raises:
        ValueError: There is no address, or the checksum differs.
        OSError: The server or the disk failed. Nothing was stored.
        ImportError: pooch is missing (extra ``data``).

    >>> jorth.datasets.fetch("mnist")  # doctest: +SKIP
    """
    entry = lookup(name)
    place = data_folder(folder)
    found = find(entry, place)
    if found is not None and url is None and sha256 is None:
        return found
    address = url or entry.url
    if address is None:
        raise ValueError(f"data set {entry.name}: {NO_ADDRESS}; give one by url=")
    with needs("jorth.datasets.fetch", "pooch"):
        import pooch
    path = urlsplit(address).path
    ending = max((one for one in ENDINGS if path.endswith(one)), key=len)  # "" for plain text
    stored = pooch.retrieve(
        address,
        known_hash=None if sha256 is None else f"sha256:{sha256}",
        fname=f"{entry.name}{ending}",
        path=place,
        downloader=pooch.HTTPDownloader(timeout=30.0),
    )
    return Path(stored)


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data: the argument, else JORTH_DATA, else the cache of pooch."""
    chosen = folder if folder is not None else os.environ.get("JORTH_DATA") or None
    if chosen is not None:
        return file_path(chosen, "folder").expanduser()
    with needs("the cache of data", "pooch", otherwise="name a folder by folder= or JORTH_DATA"):
        import pooch
    return Path(pooch.os_cache("jorth"))


def find(entry: DataSet, folder: Path, *, sparse_first: bool = False) -> Path | None:
    """Return the first file of a set in a folder, in the order of ENDINGS, or None.

    With ``sparse_first`` the dense file comes last.
    """
    endings = (*ENDINGS[1:], ENDINGS[0]) if sparse_first else ENDINGS
    paths = (folder / f"{entry.name}{ending}" for ending in endings)
    return next((path for path in paths if path.is_file()), None)
