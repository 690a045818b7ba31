"""How a command ends: errors in one line without a traceback, Ctrl-C, pipes that are closed."""

from __future__ import annotations

import difflib
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import click

from jorth.terminal import visible

FAILED = 1
INTERRUPTED = 130
TERMINATED = 143
VARIABLE = "JORTH_TRACEBACK"
"""If this environment variable is set, every error is shown with its traceback."""
LONGEST = 500  # characters of a message
EXPECTED = (ValueError, TypeError, OSError, ImportError, ArithmeticError, RuntimeError, MemoryError)
"""Errors that files, options and machines cause; others are bugs."""


def one_line(error: BaseException) -> str:
    """The message of an error, safe to show on a terminal."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        text = named + error.strerror
    elif isinstance(error, MemoryError):
        text = f"out of memory: {text}" if text else "out of memory"
    text = visible(" ".join(text.split())) or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:300]} ... {text[305 - LONGEST :]}"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Show expected errors in one line, with exit code 1."""
    try:
        yield
    except click.exceptions.Exit:  # which is a RuntimeError
        raise
    except EXPECTED as error:
        if is_closed_pipe(error):
            raise
        raise click.ClickException(one_line(error)) from error


def is_closed_pipe(error: BaseException) -> bool:
    """Whether nobody reads the output any more, as in `jorth ... | head`."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name that is closest to a wrong one, as a question; "" if none is close."""
    near = difflib.get_close_matches(name, [*known], n=1)
    return f" Did you mean {near[0]}?" if near else ""


class CtrlC:
    """Remembers Ctrl-C, as the exception it raises may be lost or replaced in a library.

    SIGTERM does what Ctrl-C does, so that a command saves what it has, and is remembered too.
    """

    def __init__(self) -> None:
        self.pressed = False
        self.terminated = False
        self._changed = False
        self._before: Any = None

    @property
    def code(self) -> int:
        """The exit code of a program that was interrupted."""
        return TERMINATED if self.terminated else INTERRUPTED

    def __enter__(self) -> CtrlC:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._changed = True
        if main:
            self._before = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        raise KeyboardInterrupt

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self.terminated = True
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:  # a shell starts what runs in its background with SIGINT ignored
            self._handle(number, frame)

    def __exit__(self, *error: object) -> None:
        if self._changed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)


@contextmanager
def ending_the_program() -> Iterator[CtrlC]:
    """Turn whatever ends a command into one line at most, and an exit code."""
    ctrl_c = CtrlC()
    try:
        with ctrl_c:
            try:
                yield ctrl_c
                _flush()  # here, so that a full disk is noticed
            except SystemExit as end:
                if end.code == INTERRUPTED:
                    sys.exit(ctrl_c.code)
                raise
            except (KeyboardInterrupt, click.Abort):
                _end(ctrl_c.code, "Interrupted.")
            except BaseException as error:
                if ctrl_c.pressed:
                    _end(ctrl_c.code, "Interrupted.")
                _end_by(error)
    except KeyboardInterrupt:  # once more, while the message was written
        sys.exit(ctrl_c.code)


def _end_by(error: BaseException) -> NoReturn:
    if is_closed_pipe(error):
        _forget_output()
        sys.exit(FAILED)
    if os.environ.get(VARIABLE):
        traceback.print_exception(error)
    if isinstance(error, click.ClickException):
        with suppress(OSError):
            error.show()
        sys.exit(error.exit_code)
    if isinstance(error, (OSError, MemoryError, ImportError)):
        _end(FAILED, f"Error: {one_line(error)}")
    what = f"{type(error).__name__}: {one_line(error)}"
    _end(
        FAILED, f"Internal error: {what}. Please report it, with what {VARIABLE}=1 makes it print."
    )


def _end(code: int, message: str) -> NoReturn:
    with suppress(OSError):
        click.echo(message, err=True)
    try:
        _flush()
    except OSError:
        _forget_output()
    sys.exit(code)


def _flush() -> None:
    if sys.stdout is not None:  # as it is in a process without an output
        sys.stdout.flush()


def _forget_output() -> None:
    """Send what is still to be written nowhere, so that the interpreter can end in silence."""
    with suppress(OSError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
