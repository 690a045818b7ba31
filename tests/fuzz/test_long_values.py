"""Long values in the place of every argument of every public function: no message repeats them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from jorth import Signature
from tests.fuzz.calls import Call
from tests.fuzz.judge import limits
from tests.fuzz.mutations import As
from tests.fuzz.rooms import ROOMS, empty_folder

LONGEST = 500
"""Characters of an error message."""
EACH = 4
"""How many of the values every argument gets; over all arguments that is each of them often."""


class Talkative:
    """An object that says a lot about itself."""

    def __repr__(self):
        return "word " * 20_000


LONG = {
    "nested lists": [[0.5] * 199 + ["x"]] * 200,
    "names": [f"name {k}" for k in range(100_000)],
    "lists of all lengths": [[1.0] * k for k in range(300)],
    "tuple": tuple(map(str, range(100_000))),
    "dictionary": {k: k for k in range(100_000)},
    "set": set(range(100_000)),
    "text": "x" * 100_000,
    "bytes": b"x" * 100_000,
    "number": 10**4000,
    "signature": Signature.of([1, -1] * 500),
    "words": np.array(["x" * 1000] * 100),
    "objects": np.full((200, 200), "x", dtype=object),
    "records": np.zeros(3, dtype=[(f"field {k}", float) for k in range(2000)]),
    "frame": pd.DataFrame([["x" * 1000] * 300], columns=[f"{k}" * 100 for k in range(300)]),
    "talkative": Talkative(),
}


def long_messages(call: Call):
    rng = np.random.default_rng(len(call.name))
    for name in call.arguments(np.random.default_rng(0)):
        for kind in rng.choice(list(LONG), size=EACH, replace=False):
            value = LONG[kind]
            given = call.arguments(np.random.default_rng(0))
            given = {key: v.value if isinstance(v, As) else v for key, v in given.items()}
            try:
                with limits():
                    call.function(**given | {name: value})
            except Exception as error:
                if len(str(error)) > LONGEST:
                    yield f"{call.name}({name}: {kind}) {len(str(error))}: {error!s:.100}"


@pytest.mark.parametrize("room", ROOMS)
def test_no_message_repeats_a_long_value(room):
    with empty_folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [message for call in ROOMS[room][0].CALLS for message in long_messages(call)]
    assert not found, f"{len(found)}:\n" + "\n".join(found[:25])
