"""The program `jorth`, also as `python -m jorth`."""

import signal
import warnings


def main() -> None:
    """Run the command line; Ctrl-C ends it with exit code 130 also while modules are loaded."""
    # a warning is one line, without the place in the source
    warnings.formatwarning = lambda text, *_: f"Warning: {' '.join(str(text).split())}\n"
    try:
        from jorth.cli import main as program

        program(prog_name="jorth")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        # what is left is the end of the interpreter, which would print a traceback
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
