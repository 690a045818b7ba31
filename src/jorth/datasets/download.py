"""`fetch`: download a data set and check it.

Without a checksum `fetch` refuses, unless it is told to trust the first download. It then checks
that the file is a matrix and records its sha256 beside it, and later downloads must match it. A
file gets its final name only when it is complete and correct. Size and time are limited.
"""

from __future__ import annotations

import logging
import os
import re
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Any
from urllib.parse import urlsplit

from jorth.arrays import real_number
from jorth.datasets import files
from jorth.datasets.registry import DataSet, lookup
from jorth.extras import needs
from jorth.messages import shown
from jorth.storage.atomic import make_folder, replacing
from jorth.storage.checks import TooLarge, most_bytes
from jorth.storage.matrices import checksum

log = logging.getLogger(__name__)
MAX_TIME = 3600.0  # seconds that a download may take
BLOCK = 1 << 16


class DownloadError(RuntimeError):
    """A download failed or is not what was expected; nothing was stored."""


@dataclass(frozen=True)
class Limits:
    """The seconds for one answer of the server, the seconds for the download, and its bytes."""

    timeout: float
    max_time: float
    max_bytes: int


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    url: str | None = None,
    sha256: str | None = None,
    trust: bool = False,
    timeout: float = 30.0,
    max_time: float = MAX_TIME,
    max_bytes: int | None = None,
) -> Path:
    """Download a data set into the folder where `load` looks, and return the path of the file.

    Nothing is downloaded if a file is there already, unless ``url`` or ``sha256`` is given. The
    checksum is the argument, else the registry's, else the one recorded by an earlier download
    (``FILE.sha256``, in the format of ``sha256sum -c``; remove it to forget the record).

    Args:
        name: One of `REGISTRY`.
        folder: Where to put it. Default: the environment variable JORTH_DATA, else jorth's cache.
        url: An address other than the registry's. Its ending gives the format, as for `load`.
        sha256: The checksum that the file must have, 64 hexadecimal digits.
        trust: Accept the first download without a checksum, log its sha256 and record it.
        timeout: Seconds to wait for each answer of the server.
        max_time: Seconds for the complete download.
        max_bytes: The largest size of the file, and of what a first download expands to. Default:
            the environment variable JORTH_MAX_BYTES, else 2^31.

    Raises:
        ValueError: There is no address, or no checksum and no ``trust``.
        DownloadError: The server failed or was too slow; the file was too large or incomplete, or
            its checksum differs; or there is no checksum and the server does not announce the
            length of the file. Nothing was stored.
        ImportError: requests or pooch is missing (extra ``data``).
    """
    entry = lookup(name)
    place = files.data_folder(folder)
    limits = Limits(
        _seconds(timeout, "timeout"), _seconds(max_time, "max_time"), most_bytes(max_bytes)
    )
    found = files.find(entry, place)
    if found is not None and url is None and sha256 is None:
        return found
    address = _address(entry, url, place)
    target = place / f"{entry.name}{files.ending_of(urlsplit(address).path)}"
    known = entry.sha256 if url is None else None
    expected = _digest(sha256) or known or recorded(target)
    if expected is None and not trust:
        raise ValueError(
            f"data set {entry.name}: no checksum is known for {address}, so the file cannot be "
            "verified; give one by sha256= (--sha256), or accept and record the first download "
            "by trust=True (--trust)"
        )
    if target.is_file() and expected == checksum(target):
        _record(target, expected)
    else:
        _download(entry, address, target, expected, limits)
    return target


def recorded(target: Path) -> str | None:
    """The sha256 that an earlier download recorded for a file, or None."""
    try:
        return _digest(_record_of(target).read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return None


def _record_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")


def _record(target: Path, digest: str) -> None:
    with replacing(_record_of(target)) as stream:
        stream.write(f"{digest}  {target.name}\n".encode())


def _address(entry: DataSet, url: str | None, place: Path) -> str:
    address = url or entry.url
    if address is None:
        raise ValueError(
            f"data set {entry.name} has no public address known here; give one by url= and sha256= "
            f"(--url, --sha256), or put {files.names_of(entry)} into {place}"
        )
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"url must begin with https:// or http://, got {shown(address)}")
    return address


def _digest(sha256: str | None) -> str | None:
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {shown(sha256)}")
    return sha256.lower() if sha256 else None


def _seconds(value: float, name: str) -> float:
    return real_number(value, name, "a number of seconds above 0", lambda number: number > 0)


def _download(
    entry: DataSet, address: str, target: Path, expected: str | None, limits: Limits
) -> None:
    """Download into a hidden file beside the target, check it, then rename it."""
    with needs("jorth.datasets.fetch", "requests"):
        import requests  # noqa: F401 - before anything is made
    try:
        make_folder(target.parent, "folder")
        with replacing(target) as stream:
            receive(address, stream, limits, need_length=expected is None)
            stream.flush()
            found = checksum(Path(stream.name))
            if expected is None:
                _check_matrix(entry, Path(stream.name), target.name, limits.max_bytes)
            elif found != expected:
                raise ValueError(f"its sha256 is {found}, expected {expected}")
    except (ValueError, OSError) as error:
        raise DownloadError(
            f"data set {entry.name}: the download from {address} failed ({error}); nothing was "
            "stored. Try again, give another address or checksum (--url, --sha256), or put the "
            f"file there yourself as {target}"
        ) from error
    if expected is None:
        log.warning(
            "data set %s: trusted on first download from %s, sha256 %s", entry.name, address, found
        )
    _record(target, found)


def _check_matrix(entry: DataSet, path: Path, name: str, max_bytes: int) -> None:
    """Raise a ValueError unless the file, later called ``name``, holds a matrix."""
    try:
        files.read(entry, path, max_bytes=max_bytes)
    except ValueError as error:
        large = f": {error.__cause__}" if isinstance(error.__cause__, TooLarge) else ""
        raise ValueError(f"what came is no matrix in the format of {name}{large}") from error


def receive(address: str, stream: IO[bytes], limits: Limits, *, need_length: bool) -> None:
    """Write what an address serves into a stream, without decoding it.

    With ``need_length`` a server is refused that announces neither the length of the file nor
    its end.

    Raises:
        OSError: The server failed.
        ValueError: A limit was exceeded, or the file is incomplete.
    """
    from urllib3.exceptions import HTTPError

    deadline = time.monotonic() + limits.max_time
    received = 0
    try:
        with _answer(address, limits) as response:
            response.raise_for_status()
            length = _length(response.headers, need_length)
            _check_size(length or 0, limits)
            while block := response.raw.read1(
                BLOCK
            ):  # returns what has arrived, so that the deadline is checked
                received += len(block)
                _check_size(received, limits)
                if time.monotonic() > deadline:
                    raise _too_slow(limits)
                stream.write(block)
    except HTTPError as error:
        raise OSError(str(error)) from error
    if length is not None and received != length:
        raise ValueError(f"incomplete: {received} of {length} bytes came")


def _answer(address: str, limits: Limits) -> Any:
    """The response of a server once its header is complete.

    A thread waits for it, as a server may also send the header slowly, byte by byte.
    """
    import requests

    answer: Future[Any] = Future()
    timeout = min(limits.timeout, limits.max_time)
    as_stored = {"Accept-Encoding": "identity"}

    def ask() -> None:
        try:
            answer.set_result(
                requests.get(address, headers=as_stored, timeout=timeout, stream=True)
            )
        except Exception as error:
            answer.set_exception(error)

    Thread(target=ask, daemon=True).start()
    if wait([answer], limits.max_time).not_done:
        answer.add_done_callback(_close)
        raise _too_slow(limits)
    return answer.result()


def _close(answer: Future[Any]) -> None:
    if answer.exception() is None:
        answer.result().close()


def _too_slow(limits: Limits) -> ValueError:
    return ValueError(f"it was not complete after {limits.max_time:g} s, the time allowed")


def _length(headers: Any, needed: bool) -> int | None:
    """The announced length; None if the file comes in chunks, or if the length is not known."""
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return None
    text = headers.get("Content-Length", "")
    if text.isdecimal():
        return int(text)
    if needed:
        raise ValueError(
            "the server does not say how long the file is, so that a truncated one would look "
            "complete; without a checksum it cannot be trusted"
        )
    return None


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.max_bytes:
        allowed = f"{limits.max_bytes} bytes allowed (max_bytes, --max-bytes)"
        raise ValueError(f"it is larger than the {allowed}")
