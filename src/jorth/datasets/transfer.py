"""One file from a server, within limits of time and size."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread
from typing import IO, Any

BLOCK = 1 << 16


@dataclass(frozen=True)
class Limits:
    """Seconds to wait for the server each time, seconds for all of it, bytes."""

    timeout: float
    max_time: float
    max_bytes: int


def receive(address: str, stream: IO[bytes], limits: Limits, *, end_must_show: bool) -> None:
    """Write what an address serves into a stream, byte by byte as it is stored there.

    Args:
        address: By http or https.
        stream: Where it goes.
        limits: A server that needs more time, or has more to say, is an error.
        end_must_show: Refuse a server that says neither the length of the file nor where it ends.

    Raises:
        OSError: The server failed.
        ValueError: It went beyond a limit, or ended too soon.
    """
    from urllib3.exceptions import HTTPError

    deadline = time.monotonic() + limits.max_time
    try:
        with _answer(address, limits) as response:
            response.raise_for_status()
            length = _length(response.headers, end_must_show)
            _check_size(length or 0, limits)
            received = 0
            for block in _blocks(response.raw):
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
    """The response of a server once its header is complete; it may send that byte after byte too, so a thread waits."""
    import requests

    answer: Future[Any] = Future()
    patience = min(limits.timeout, limits.max_time)
    as_stored = {"Accept-Encoding": "identity"}

    def ask() -> None:
        try:
            answer.set_result(
                requests.get(address, headers=as_stored, timeout=patience, stream=True)
            )
        except Exception as error:
            answer.set_exception(error)

    Thread(target=ask, daemon=True).start()
    if wait([answer], limits.max_time).not_done:
        answer.add_done_callback(_close)  # whenever it comes
        raise _too_slow(limits)
    return answer.result()


def _close(answer: Future[Any]) -> None:
    if answer.exception() is None:
        answer.result().close()


def _too_slow(limits: Limits) -> ValueError:
    return ValueError(f"it was not complete after {limits.max_time:g} s, the time allowed")


def _blocks(raw: Any) -> Iterator[bytes]:
    """What has come, as soon as it has come: a server that sends byte after byte hides from no clock."""
    while block := raw.read1(BLOCK):
        yield block


def _length(headers: Any, must_show: bool) -> int | None:
    """The length that a server announces; None where pieces with lengths of their own come, or nobody knows."""
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return None
    text = headers.get("Content-Length", "")
    if text.isdecimal():
        return int(text)
    if must_show:
        raise ValueError(
            "the server does not say how long the file is, so that one that is cut off would look whole; without a "
            "checksum it cannot be trusted"
        )
    return None


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.max_bytes:
        raise ValueError(
            f"it is larger than the {limits.max_bytes} bytes allowed (max_bytes, --max-bytes)"
        )
