"""`pack` and `unpack`: typed records with tensors, lists, dictionaries and records inside."""

import json
from dataclasses import dataclass, field

import torch

from jorth.solvers import pack, unpack
from jorth.solvers.problem import NOT_SAVED


@dataclass
class Inner:
    number: float
    tensor: torch.Tensor


@dataclass
class Outer:
    inner: Inner | None
    several: list[Inner]
    perhaps: list[Inner] | None
    table: dict[str, object]
    text: str = ""
    cache: object = field(default="made again", metadata=NOT_SAVED)


def there_and_back(value):
    tensors = {}
    packed = json.loads(json.dumps(pack(value, "state", tensors)))
    return unpack(packed, Outer, tensors), set(tensors)


def test_a_record_comes_back_as_it_was():
    one, two = (Inner(float(k), torch.full((2,), float(k))) for k in (1, 2))
    table = {"step": 3, "moments": [torch.zeros(1), None]}
    value = Outer(one, [one, two], [two], table, text="why", cache="lost")
    found, names = there_and_back(value)
    two.tensor += 1  # what was packed is a copy
    assert [item.number for item in (found.inner, *found.several)] == [1.0, 1.0, 2.0]
    assert found.several[1].tensor.tolist() == found.perhaps[0].tensor.tolist() == [2.0, 2.0]
    assert found.table == {"step": 3, "moments": [torch.zeros(1), None]}
    assert (found.text, found.cache) == ("why", "made again")
    assert names == {
        *("state.inner.tensor", "state.several.0.tensor", "state.several.1.tensor"),
        *("state.perhaps.0.tensor", "state.table.moments.0"),
    }
    nothing = Outer(None, [], None, {})
    assert there_and_back(nothing) == (nothing, set())
