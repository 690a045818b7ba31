"""Misspelt names: errors say which one is near, or which there are."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from jorth.signature import Signature, as_signature

P = ParamSpec("P")
R = TypeVar("R")
Made = TypeVar("Made", bound="Explained")
LONGEST_LIST = 240
"""How many characters a message spends on the names that there are."""
LONGEST_NAME = 40
"""How many characters of a name that is wrong a message repeats."""


def meant(name: object, valid: Iterable[str]) -> str | None:
    """Return the valid name that is nearest to ``name``, or None if none is near."""
    if not isinstance(name, str) or len(name) > 200:
        return None
    forms = {_plain(candidate): candidate for candidate in valid}
    wanted = _plain(name)
    longer = [form for form in forms if len(wanted) > 2 and form.startswith(wanted)]
    near = longer or difflib.get_close_matches(wanted, forms, n=1, cutoff=0.7)
    return forms[near[0]] if near else None


def _plain(name: str) -> str:
    """Return a name without case and separators."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a message: which name was meant, or nothing."""
    found = meant(name, valid)
    return "" if found is None else f"; did you mean {found!r}?"


def listed(names: Iterable[str]) -> str:
    """Return the names, separated by commas, as far as a message has room for them."""
    text = ", ".join(names)
    return text if len(text) <= LONGEST_LIST else text[:LONGEST_LIST].rpartition(",")[0] + ", ..."


def check_keywords(owner: str, given: Iterable[str], valid: Collection[str]) -> None:
    """Check that all names are valid; a TypeError has the one that was meant, or all."""
    for name in given:
        if name not in valid:
            hint = suggestion(name, valid) or f"; it has {listed(valid)}"
            raise TypeError(f"{owner} has no argument {name[:LONGEST_NAME]!r}{hint}")


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function so that a wrong keyword gives the error of `check_keywords`.

    Signs that stand for a signature become one.
    """
    names, open_ended = _names(function)
    position = names.index("signature") if "signature" in names else None

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if named and not open_ended:
            check_keywords(function.__name__, named, names)
        if "signature" in named:
            named["signature"] = as_signature(named["signature"])
        elif position is not None and position < len(arguments):
            given = arguments[position]
            if not isinstance(given, Signature):
                before, after = arguments[:position], arguments[position + 1 :]
                return function(*before, as_signature(given), *after, **named)  # type: ignore
        return function(*arguments, **named)

    return call


class Explained:
    """A class whose constructor does the same, also for what it passes on to the next class."""

    def __new__(cls: type[Made], *arguments: Any, **named: Any) -> Made:
        names, open_ended = _constructor(cls)  # type: ignore[arg-type]
        if not open_ended:
            check_keywords(cls.__name__, named, names)
        return super().__new__(cls)


def _names(function: Callable[..., Any]) -> tuple[list[str], bool]:
    """Return the names of the arguments, and whether there may be others."""
    kinds = {name: one.kind for name, one in inspect.signature(function).parameters.items()}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name in kinds if kinds[name] not in several], several[1] in kinds.values()


@cache
def _constructor(cls: type) -> tuple[tuple[str, ...], bool]:
    names: list[str] = []
    for owner in cls.__mro__:
        if "__init__" in vars(owner):
            found, open_ended = _names(vars(owner)["__init__"])
            names += [name for name in found[1:] if name not in names]
            if not open_ended:
                return tuple(names), False
    return tuple(names), True
