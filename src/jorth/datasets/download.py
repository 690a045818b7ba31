"""`fetch`: download a data set and check it.

No checksum, no trust: without one `fetch` refuses, unless told to trust the first download. It then makes sure that the
file is a matrix, and records its sha256 beside it, against which every later download under that name is checked. A
half-downloaded or wrong file never gets its final name.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from jorth.datasets import files
from jorth.datasets.loading import NEEDS_POOCH, data_folder
from jorth.datasets.registry import DataSet, lookup
from jorth.matrix_files import checksum

log = logging.getLogger(__name__)


class DownloadError(RuntimeError):
    """A download failed or brought something else than expected; nothing was stored."""


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    url: str | None = None,
    sha256: str | None = None,
    trust: bool = False,
    timeout: float = 30.0,
) -> Path:
    """Download a data set into the folder where `load` looks, and return the path of the file.

    A set that is there already is left alone, unless ``url`` or ``sha256`` asks for one file. The checksum is the first
    there is of: the argument, the registry's, the record of an earlier download (``FILE.sha256``, as ``sha256sum -c``
    reads it; remove it to forget the record).

    Args:
        name: One of `REGISTRY`.
        folder: Where to put it. Default: the environment variable JORTH_DATA, else the cache of jorth.
        url: An address other than the registry's. Its ending says the format: that of `load`.
        sha256: The checksum that the file must have, 64 hexadecimal digits.
        trust: Accept the first download without a checksum, log its sha256 and record it.
        timeout: Seconds to wait for the server, each time.

    Raises:
        ValueError: There is no address, or no checksum and no ``trust``.
        DownloadError: The server failed, the file was cut off, or its checksum differs. Nothing was stored.
        ImportError: pooch is missing (extra ``data``).
    """
    entry = lookup(name)
    place = data_folder(folder)
    there = files.find(entry, place)
    if there is not None and url is None and sha256 is None:
        return there
    address = _address(entry, url, place)
    target = place / f"{entry.name}{files.ending_of(urlsplit(address).path)}"
    known = entry.sha256 if url is None else None
    expected = _digest(sha256) or known or recorded(target)
    if expected is None and not trust:
        raise ValueError(
            f"data set {entry.name}: no checksum is known for {address}, so what it serves cannot be verified; give "
            "one by sha256= (--sha256), or accept and record the first download by trust=True (--trust)"
        )
    if target.is_file() and expected == checksum(target):
        _record(target, expected)
        return target
    _download(entry, address, target, expected, timeout)
    return target


def recorded(target: Path) -> str | None:
    """The sha256 recorded for a file by an earlier download, or None."""
    try:
        return _digest(_record_of(target).read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return None


def _address(entry: DataSet, url: str | None, place: Path) -> str:
    address = url or entry.url
    if address is None:
        raise ValueError(
            f"data set {entry.name} has no public address known here; give one by url= and sha256= (--url, --sha256), "
            f"or put {entry.name}.npz, {entry.name}_csr.npz, LIBSVM text or {entry.name}.mat into {place}"
        )
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"url must begin with https:// or http://, got {address!r}")
    return address


def _digest(sha256: str | None) -> str | None:
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    return sha256.lower() if sha256 else None


def _download(entry: DataSet, address: str, target: Path, expected: str | None, timeout: float) -> None:
    """Download into a folder of its own beside the target, check there, then rename."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(f"data set {entry.name}: {NEEDS_POOCH}") from error
    # as the file is stored: no unpacking on the way
    downloader = pooch.HTTPDownloader(timeout=timeout, chunk_size=1 << 16, headers={"Accept-Encoding": "identity"})
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{entry.name}-") as staging:
            fresh = Path(staging) / target.name
            downloader(address, str(fresh), None)
            found = _verify(entry, fresh, expected)
            fresh.replace(target)
    except (ValueError, OSError) as error:  # the errors of requests are OSErrors
        raise DownloadError(
            f"data set {entry.name}: the download from {address} failed ({error}); nothing was stored. Try again, give "
            f"another address or checksum (--url, --sha256), or put the file there yourself as {target}"
        ) from error
    if expected is None:
        log.warning("data set %s: trusted on first download from %s, sha256 %s", entry.name, address, found)
    _record(target, found)


def _verify(entry: DataSet, fresh: Path, expected: str | None) -> str:
    """The sha256 of a download that is the expected one or, where none is expected, that holds a matrix."""
    found = checksum(fresh)
    if expected is None:
        try:
            files.read(entry, fresh)
        except ValueError as error:
            raise ValueError(f"what came is no matrix in the format of {fresh.name}") from error
    elif found != expected:
        raise ValueError(f"its sha256 is {found}, expected {expected}")
    return found


def _record_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")


def _record(target: Path, digest: str) -> None:
    _record_of(target).write_text(f"{digest}  {target.name}\n")
