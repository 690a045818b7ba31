"""A public function with a right call of it, and the cases that are made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.meaning import meaning
from tests.fuzz.mutations import MUTATIONS, As, kind_of

Arguments = dict[str, Any]
TWO_AT_ONCE = 5
"""One case in so many changes two arguments."""


@dataclass(frozen=True)
class Call:
    """A public function, right arguments for it made from a seed, and what a right answer is.

    Args:
        name: As it is imported, "jorth.exp"; after a blank, which of several calls of it.
        function: Takes the arguments by name.
        arguments: A generator -> the arguments; the kind of each is seen in its value, or stated by
            `As`.
        check: (result, arguments) -> None, an AssertionError where the answer is wrong. The
            arguments are those of the case, changed and all: what is right for them, if they were
            accepted.
        changes: The arguments that a call may change, since that is what it is for.
        non_finite: Whether NaN and infinity in an answer are documented; ``check`` then judges
            them.
        raises: Documented errors that are neither a ValueError nor a TypeError.
    """

    name: str
    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], Arguments]
    check: Callable[[Any, Arguments], None]
    changes: tuple[str, ...] = ()
    non_finite: bool = False
    raises: tuple[type[Exception], ...] = ()

    @property
    def public_name(self) -> str:
        return self.name.split(" ")[0]


@dataclass(frozen=True)
class Case:
    """A call with one or two arguments changed."""

    call: Call
    changed: dict[str, str]
    """The mutation of each changed argument."""
    seed: int

    def __str__(self) -> str:
        changes = ", ".join(f"{name}: {mutation}" for name, mutation in self.changed.items())
        return f"{self.call.name}({changes}) seed {self.seed}"

    def arguments(self) -> Arguments:
        rng = np.random.default_rng(self.seed)
        given = self.call.arguments(rng)
        kinds = {name: kind_of(name, value) for name, value in given.items()}
        given = {
            name: value.value if isinstance(value, As) else value for name, value in given.items()
        }
        for name, mutation in self.changed.items():
            given[name] = MUTATIONS[kinds[name]][mutation](given[name], rng)
        return given

    def meaning(self, given: Arguments) -> Arguments:
        """The arguments with arrays in the place of lists, frames and whatever stands for one."""
        right = self.call.arguments(np.random.default_rng(self.seed))
        kinds = {name: kind_of(name, value) for name, value in right.items()}
        plain = {name: v.value if isinstance(v, As) else v for name, v in right.items()}
        return {
            name: meaning(value, plain[name]) if kinds[name] == "array" else value
            for name, value in given.items()
        }


def every_change(calls: Sequence[Call]) -> list[tuple[Call, str, str]]:
    """Every (call, argument, mutation) there is."""
    found = []
    for call in calls:
        given = call.arguments(np.random.default_rng(0))
        for name, value in given.items():
            found += [(call, name, mutation) for mutation in MUTATIONS[kind_of(name, value)]]
    return found


def cases(calls: Sequence[Call], count: int, base: int) -> Iterator[Case]:
    """``count`` cases: the changes in random order, again and again with other seeds,
    some with a second one."""
    changes = every_change(calls)
    order = np.random.default_rng(base).permutation(len(changes))
    for k in range(count if changes else 0):
        call, name, mutation = changes[order[k % len(order)]]
        changed = {name: mutation}
        if k % TWO_AT_ONCE == TWO_AT_ONCE - 1:
            own = [change for change in changes if change[0] is call]
            _, second, other = own[np.random.default_rng(base + k).integers(len(own))]
            changed.setdefault(second, other)
        yield Case(call, changed, base + k)
