"""The program `jorth`, also as `python -m jorth`."""

from __future__ import annotations

import signal
import warnings
from typing import Any


def main() -> None:
    """Run the command line; Ctrl-C ends it with exit code 130 also while modules are loaded."""
    try:
        warnings.formatwarning = _one_line
        from jorth.cli import main as program

        program(prog_name="jorth")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        # what is left is the end of the interpreter, which would print a traceback
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _one_line(message: Warning | str, *_where: Any, **_more: Any) -> str:
    """Format a warning without the place in the source."""
    return f"Warning: {' '.join(str(message).split())}\n"


if __name__ == "__main__":
    main()
