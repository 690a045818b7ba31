"""How the program ends: errors in one line, Ctrl-C, pipes that are closed. And its one note."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

import click

from jorth.terminal import visible

FAILED, INTERRUPTED, TERMINATED = 1, 130, 143
EXPECTED = (ValueError, TypeError, OSError, ImportError, ArithmeticError, RuntimeError, MemoryError)
"""Errors that files, options and machines cause; others are bugs."""


class Program(click.Group):
    """The command line as a whole: however a command ends, there is no traceback."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run as `click.Command.main`; ``standalone_mode=False`` leaves errors to the caller."""
        run: Any = super().main
        if not options.pop("standalone_mode", True):
            return run(*arguments, standalone_mode=False, **options)
        sys.exit(exit_code(lambda: run(*arguments, standalone_mode=False, **options)))


def exit_code(run: Callable[[], Any]) -> int:
    """Run a command and return the exit code, after one line at most about what went wrong.

    SIGTERM does what Ctrl-C does, so that a command saves what it has. Signals are remembered, as
    the exception they raise may be replaced in a library.
    """
    stopped: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.append(INTERRUPTED if number == signal.SIGINT else TERMINATED)
        handler = signal.getsignal(signal.SIGINT)
        if number == signal.SIGTERM and callable(handler):
            handler(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    log = logging.getLogger("jorth.numba")
    log.handlers = [_Note()]  # in place of the one of an earlier call
    log.setLevel(logging.INFO)
    try:
        code = run()
        _flush()  # here, so that a full disk is noticed
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = _report(error, bool(stopped))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code == INTERRUPTED and stopped:
        return stopped[0]
    return code if isinstance(code, int) else 0


def _report(error: BaseException, interrupted: bool) -> int:
    """Show what ended a command, and return its exit code."""
    if interrupted or isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, OSError) and error.errno == errno.EPIPE:  # as in `jorth ... | head`
        return FAILED
    if os.environ.get("JORTH_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, EXPECTED):
        click.echo(f"Error: {one_line(error)}", err=True)
    else:
        what = f"Internal error: {type(error).__name__}: {one_line(error)}. Please report it"
        click.echo(f"{what}, with what JORTH_TRACEBACK=1 makes it print.", err=True)
    return getattr(error, "exit_code", FAILED)


def one_line(error: BaseException, longest: int = 500) -> str:
    """Return the message of an error, safe and short enough to show on a terminal."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        text = named + error.strerror
    text = visible(" ".join(text.split())) or type(error).__name__
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:  # what is still to be written goes nowhere, so that Python can end in silence
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


class _Note(logging.Handler):
    """Say once on a terminal that code is compiled, unless --quiet is given."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write over a line of progress, which is drawn again below."""
        logging.getLogger("jorth.numba").removeHandler(self)
        context = click.get_current_context(silent=True)
        if sys.stderr.isatty() and not (context and context.params.get("quiet")):
            click.echo("\r\x1b[2Knote: compiling for this computer; it may take a minute", err=True)
