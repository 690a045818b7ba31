"""A mistake: what was done, as it is typed, and what the message has to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A case of the registry.

    Args:
        done: What was done, in a few words.
        code: The Python code, after `running.PREAMBLE`; or a command line that starts with "jorth".
        needles: Parts of the message: the argument at fault first, then what was expected.
    """

    done: str
    code: str
    needles: tuple[str, ...]

    @property
    def is_command(self) -> bool:
        return self.code.startswith("jorth ")


def mistake(done: str, code: str, *needles: str) -> Mistake:
    """A case; there is at least one needle."""
    assert needles, done
    return Mistake(done, code.strip(), needles)
