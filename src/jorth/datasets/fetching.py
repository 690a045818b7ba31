"""`fetch`: download a data set by pooch, which checks its sha256. Where files are looked for."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from jorth._inputs import check_flag, file_path
from jorth.datasets.registry import DataSet, lookup
from jorth.extras import needs

VARIABLE = "JORTH_DATA"
TEXT_ENDINGS = ("", ".txt", ".bz2", ".gz")
"""What may follow the name of LIBSVM text."""
ENDINGS = (".npz", "_csr.npz", *TEXT_ENDINGS)
"""What may follow the name of a set, in the order in which files are searched for."""
TIMEOUT = 30.0  # seconds to wait for each answer of a server


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    url: str | None = None,
    sha256: str | None = None,
    trust: bool = False,
) -> Path:
    """Download a data set into the folder where `load` looks, and return the path of the file.

    Nothing is downloaded if a file is there already, unless ``url`` or ``sha256`` is given.

    Args:
        name: One of `REGISTRY`.
        folder: Where to put it. Default: the environment variable JORTH_DATA, else jorth's cache.
        url: An address other than the registry's. Its ending gives the format, as for `load`.
        sha256: The checksum that the file must have. Default: that of the registry.
        trust: Accept a download without a checksum; pooch logs the one that it has.

    Raises:
        ValueError: There is no address, no checksum and no ``trust``, or the checksum differs.
        OSError: The server or the disk failed. Nothing was stored.
        ImportError: pooch is missing (extra ``data``).
    """
    entry = lookup(name)
    check_flag(trust, "trust")
    place = data_folder(folder)
    found = find(entry, place)
    if found is not None and url is None and sha256 is None:
        return found
    address = url or entry.url
    if address is None:
        raise ValueError(
            f"data set {entry.name} has no public address known here; give one by url= and "
            f"sha256=, or put {names_of(entry)} into {place}"
        )
    expected = sha256 or (entry.sha256 if url is None else None)
    if expected is None and not trust:
        raise ValueError(
            f"data set {entry.name}: no checksum is known for {address}, so the file cannot be "
            "verified; give one by sha256=, or accept the download by trust=True"
        )
    with needs("jorth.datasets.fetch", "pooch"):
        import pooch
    stored = pooch.retrieve(
        address,
        known_hash=None if expected is None else f"sha256:{expected}",
        fname=f"{entry.name}{_ending_of(urlsplit(address).path)}",
        path=place,
        downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
    )
    return Path(stored)


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data: the argument, else JORTH_DATA, else the cache of pooch."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE) or None
    if chosen is not None:
        return file_path(chosen, "folder").expanduser()
    with needs("the cache of data", "pooch", otherwise=f"name a folder by folder= or {VARIABLE}"):
        import pooch
    return Path(pooch.os_cache("jorth"))


def find(entry: DataSet, folder: Path, *, sparse_first: bool = False) -> Path | None:
    """Return the first file of a set in a folder, in the order of ENDINGS, or None.

    With ``sparse_first`` the dense file comes last.
    """
    endings = (*ENDINGS[1:], ENDINGS[0]) if sparse_first else ENDINGS
    paths = (folder / f"{entry.name}{ending}" for ending in endings)
    return next((path for path in paths if path.is_file()), None)


def names_of(entry: DataSet) -> str:
    """Return the names that the file of a set may have, for messages."""
    return f"{entry.name}.npz, {entry.name}_csr.npz or LIBSVM text"


def _ending_of(name: str) -> str:
    """Return the longest of ENDINGS that a name ends with; "" stands for plain LIBSVM text."""
    return max((ending for ending in ENDINGS if name.endswith(ending)), key=len)
