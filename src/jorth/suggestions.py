"""Suggestions for misspelt names, and errors of calls that include them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial, wraps
from types import MappingProxyType
from typing import Any, ClassVar, ParamSpec, TypeVar, overload

from jorth.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")
Made = TypeVar("Made", bound="Explained")
LONGEST_LIST = 240
"""How many characters a message spends on the names that there are."""
NEAR = 0.7
"""How much of two names has to agree, by `difflib`, for one to stand for the other."""
LONGEST_NAME = 40
"""How many characters of a name that is wrong a message repeats."""

# what is meant: names of other libraries for it
ELSEWHERE = {
    "max_iterations": "max_iter maxiter n_iter niter num_iter iterations num_iterations n_steps "
    "steps",
    "max_evaluations": "maxfev maxfun max_fun max_eval max_evals max_nfev",
    "max_time": "timeout time_limit max_seconds maxtime seconds",
    "gradient_tolerance": "tol gtol eps_abs tolerance min_gradient_norm tolerance_grad pgtol",
    "x0": "init initial initial_point x_init start x start_point X0",
    "signature": "sig J signs metric_signature",
    "method": "solver optimizer optimiser algorithm",
    "progress": "verbose disp verbosity show_progress progress_bar",
    "seed": "random_state rng random_seed generator manual_seed",
    "gradient": "jac grad jacobian euclidean_gradient",
    "value": "fun func f cost",
    "memory": "history_size maxcor m n_corrections max_history",
    "lr": "learning_rate rate step_size eta alpha",
    "learning_rate": "lr rate step_size eta",
    "momentum": "beta beta1 betas",
    "decay": "beta2 rho",
    "eps": "epsilon",
    "epochs": "num_epochs n_epochs max_epochs max_iter n_iter max_iterations",
    "p": "dim dimension embedding_dim n_components rank",
    "batch_size": "batch bs minibatch_size",
    "negatives": "num_negatives n_negatives negative_samples num_negs_per_pos negative_sample_size",
    "regularisation": "regularization regularizer reg lambda_ l2 weight_decay",
    "smoothing": "label_smoothing",
    "clip": "clip_norm grad_clip gradient_clip max_grad_norm",
    "patience": "early_stopping",
    "cond": "condition condition_number kappa",
    "heads": "num_heads n_heads nhead",
    "classes": "num_classes n_classes out_features",
    "alpha": "radius curvature c k",
    "folder": "root data_dir path dir directory data_home",
    "k": "top_k topk n n_neighbors n_neighbours num",
    "n_components": "k dim dimension n_dims",
    "max_bytes": "max_size limit",
    "checkpoint": "checkpoint_dir save_dir resume_from ckpt checkpoint_path",
    "relation_lr": "relation_learning_rate relations_lr",
    "cuda": "gpu",
    "riemannian-cg": "cg conjugate-gradient conjugategradient conjugate-gradients",
    "riemannian-sd": "gd sd gradient-descent steepest-descent sgd",
    "riemannian-newton": "trust-region trustregions newton newton-cg trust-ncg tr",
    "riemannian-lbfgs": "lbfgs l-bfgs-b bfgs l-bfgs",
}


def meant(name: object, valid: Iterable[str]) -> str | None:
    """The valid name that ``name`` is most likely to stand for, or None if there is none."""
    if not isinstance(name, str) or len(name) > 200:
        return None
    wanted = _plain(name)
    forms = {_plain(candidate): candidate for candidate in valid}
    if wanted in forms:
        return forms[wanted]
    for known, others in ELSEWHERE.items():
        if wanted in map(_plain, others.split()) and _plain(known) in forms:
            return forms[_plain(known)]
    longer = [form for form in forms if len(wanted) > 2 and form.startswith(wanted)]
    near = longer or difflib.get_close_matches(wanted, forms, n=1, cutoff=NEAR)
    return forms[near[0]] if near else None


def suggestion(name: object, valid: Iterable[str]) -> str:
    """The end of a message: which name was meant, or nothing."""
    found = meant(name, valid)
    return "" if found is None else f"; did you mean {found!r}?"


def listed(names: Iterable[str]) -> str:
    """The names, separated by commas, as far as a message has room for them."""
    text = ", ".join(names)
    return text if len(text) <= LONGEST_LIST else text[:LONGEST_LIST].rpartition(",")[0] + ", ..."


def check_keywords(
    owner: str,
    given: Iterable[str],
    valid: Collection[str],
    beside: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Raise a TypeError for the first name that is not valid, with the one that was meant.

    ``beside`` has the names that others take, by the names of those others.
    """
    for name in given:
        if name in valid:
            continue
        hint = suggestion(name, valid)
        for other, names in beside.items():
            found = meant(name, names)
            hint = hint or (f"; {found!r} is an argument of {other}" if found else "")
        hint = hint or f"; it has {listed(valid)}"
        raise TypeError(f"{owner} has no argument {name[:LONGEST_NAME]!r}{hint}")


class Explained:
    """A class whose constructor explains what is wrong with the arguments of a call."""

    beside: ClassVar[Mapping[str, Collection[str]]] = MappingProxyType({})
    """Arguments that do not belong to the constructor, by the names of what they belong to."""

    def __new__(cls: type[Made], *arguments: Any, **named: Any) -> Made:
        if arguments or named:  # copies and pickles are made without any
            names, needed, open_ended = _constructor(cls)  # type: ignore[arg-type]
            at_place = _at_place(cls)  # type: ignore[arg-type]
            if at_place is not None and len(arguments) > len(at_place):
                raise TypeError(_too_many(cls.__name__, at_place, names, arguments))
            if not open_ended:
                check_keywords(cls.__name__, named, names, cls.beside)
            _check_complete(cls.__name__, needed, {*names[: len(arguments)], *named})
        return super().__new__(cls)


@overload
def explained(function: Callable[P, R]) -> Callable[P, R]: ...
@overload
def explained(
    *, beside: Mapping[str, Collection[str]]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def explained(
    function: Callable[P, R] | None = None, *, beside: Mapping[str, Collection[str]] | None = None
) -> Any:
    """The function, with errors that explain what is wrong with the arguments of a call.

    Args:
        function: A public function.
        beside: Arguments that it does not take, by the names of what takes them.
    """
    if function is None:
        return partial(explained, beside=beside)
    parameters = inspect.signature(function).parameters
    at_place = [name for name, one in parameters.items() if one.kind == one.POSITIONAL_OR_KEYWORD]
    names, needed, open_ended = _names(parameters)

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if len(arguments) > len(at_place):
            raise TypeError(_too_many(function.__name__, at_place, names, arguments))
        if named and not open_ended:
            check_keywords(function.__name__, named, names, beside or {})
        if "signature" in at_place:
            _check_order(function.__name__, at_place, arguments)
        if len(arguments) < len(needed):
            _check_complete(function.__name__, needed, [*at_place[: len(arguments)], *named.keys()])
        return function(*arguments, **named)

    return call


def _check_order(owner: str, at_place: Sequence[str], given: Sequence[object]) -> None:
    """Raise a TypeError for a signature at the place of another argument."""
    for name, value in zip(at_place, given, strict=False):
        if isinstance(value, Signature) and name != "signature":
            order = f"{owner} takes {', '.join(at_place)} in this order"
            raise TypeError(f"{name} must not be a signature, got {value}; {order}")


def _check_complete(owner: str, needed: Sequence[str], given: Collection[str]) -> None:
    missing = [name for name in needed if name not in given]
    if missing:
        example = ", such as jorth.Signature(3, 2)" if missing[-1] == "signature" else ""
        raise TypeError(f"{owner} needs {' and '.join(missing)}{example}; got no such argument")


def _too_many(
    owner: str, at_place: Sequence[str], names: Sequence[str], given: tuple[Any, ...]
) -> str:
    """What is wrong with more arguments by position than there are."""
    extra = given[len(at_place) :]
    taken = ", ".join(at_place) or "no arguments"
    problem = f"{owner} takes {taken} by position, got {len(given)} arguments"
    counts = [value for value in given[-2:] if type(value) is int]
    if "signature" in at_place and len(counts) == 2:
        p, q = counts
        return f"{problem}; write jorth.Signature({p}, {q}) for the signs of J"
    if any(isinstance(value, Signature) for value in extra):
        by_name = "by name" if "signature" in names else "to jorth.minimize"
        return f"{problem}; pass the signature {by_name}: signature=..."
    others = names[len(at_place) :]
    return problem + (f"; pass the others by name: {listed(others)}" if others else "")


def _names(
    parameters: Mapping[str, inspect.Parameter],
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """All arguments, those without a default, and whether there may be others."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = tuple(name for name, one in parameters.items() if one.kind not in several)
    needed = tuple(name for name in names if parameters[name].default is inspect.Parameter.empty)
    open_ended = any(one.kind == inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    return names, needed, open_ended


@cache
def _constructor(cls: type) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """What `_names` finds; a constructor that takes others passes them on to the next class."""
    names: list[str] = []
    needed: tuple[str, ...] | None = None
    for owner in cls.__mro__:
        if "__init__" not in vars(owner):
            continue
        found, without_default, open_ended = _names(
            dict(list(inspect.signature(vars(owner)["__init__"]).parameters.items())[1:])
        )
        names += [name for name in found if name not in names]
        needed = without_default if needed is None else needed
        if not open_ended:
            return tuple(names), needed, False
    return tuple(names), needed or (), True


@cache
def _at_place(cls: type) -> tuple[str, ...] | None:
    """The arguments that a constructor takes by position, or None if it takes any number."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    if any(one.kind == one.VAR_POSITIONAL for one in parameters):
        return None
    return tuple(one.name for one in parameters if one.kind == one.POSITIONAL_OR_KEYWORD)


def _plain(name: str) -> str:
    """A name without case and separators."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
