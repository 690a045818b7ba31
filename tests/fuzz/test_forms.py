"""Every public function takes arrays as people have them: lists, integers, frames, sparse ones."""

import warnings

import numpy as np
import pytest

from tests.fuzz.forms import FORMS, Change, array_arguments, both_answers, is_error, numbers_in
from tests.fuzz.rooms import ROOMS, empty_folder

TENSORS_ONLY = {
    "jorth.nn.": "a layer, a parameter or an initialiser of torch",
    "jorth.optim.": "parameters of torch",
    "jorth.adapters.geoopt.": "geoopt's points are tensors",
    "jorth.adapters.pykeen.": "PyKEEN's matrices are tensors",
}
IN_PLACE = {"jorth.plane.apply_rows": "X", "jorth.plane.apply_columns": "X"}
SEVERAL_PARTS = {("jorth.FiniteSum", "tuples")}
"""A tuple of data is several data sets with the same rows."""
SEED = 0
EXACT = ("list", "tuples", "frame", "nullable frame", "sparse", "masked, none of it")
"""Forms that hold the right numbers themselves: there is no excuse for an error."""


def changes(room):
    for call in ROOMS[room][0].CALLS:
        if call.name.startswith(tuple(TENSORS_ONLY)):
            continue
        for argument in array_arguments(call, SEED):
            if IN_PLACE.get(call.public_name) != argument:
                yield from (Change(call, argument, form) for form in FORMS)


def fault_of(change):
    """What is wrong with the answer for a form; empty where nothing is, None without an answer."""
    answers = both_answers(change, SEED)
    if answers is None or (change.call.public_name, change.form) in SEVERAL_PARTS:
        return None
    found, wanted = answers
    if is_error(found) and is_error(wanted) and change.form not in EXACT:
        return None  # rounded numbers are no longer J-orthogonal, or of another dtype than others
    if is_error(found) or is_error(wanted):
        return f"{found!r:.200} and not {wanted!r:.200}"
    parts, others = list(numbers_in(found)), list(numbers_in(wanted))
    if [kind for kind, _ in parts] != [kind for kind, _ in others]:
        return f"{[kind for kind, _ in parts]} and not {[kind for kind, _ in others]}"
    single = any("float32" in kind for kind, _ in parts)
    pairs = zip(parts, others, strict=True)
    close = all(same(a, b, 1e-3 if single else 1e-7) for (_, a), (_, b) in pairs)
    return "" if close else "another answer"


def same(a, b, tolerance):
    """Whether two arrays are equal: the same numbers in another order of memory may round apart."""
    size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
    return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=tolerance * size, equal_nan=True)


@pytest.mark.parametrize("room", ROOMS)
def test_every_form_of_an_array_gives_the_same_answer(room):
    with empty_folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        faults = {str(change): fault_of(change) for change in changes(room)}
    wrong = [f"{change}: {fault}" for change, fault in faults.items() if fault]
    assert not wrong, f"{len(wrong)} of {len(faults)}:\n" + "\n".join(wrong[:25])
    compared = sum(fault is not None for fault in faults.values())
    assert compared > len(faults) / 2, f"{compared} of {len(faults)} had an answer"


def test_the_excuses_are_needed():
    names = {call.name for module, _ in ROOMS.values() for call in module.CALLS}
    for prefix in (*TENSORS_ONLY, *IN_PLACE):
        assert any(name.startswith(prefix) for name in names), prefix
