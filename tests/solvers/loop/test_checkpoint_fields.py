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
    return unpack(packed, Outer, tensors), tensors


def test_a_record_comes_back_as_it_was():
    one, two = (Inner(float(k), torch.full((2,), float(k))) for k in (1, 2))
    table = {"step": 3, "moments": [torch.zeros(1), None]}
    value = Outer(one, [one, two], [two], table, text="why", cache="lost")
    found, tensors = there_and_back(value)
    assert isinstance(found.inner, Inner)
    assert [item.number for item in found.several] == [1.0, 2.0]
    assert torch.equal(found.several[1].tensor, two.tensor)
    assert torch.equal(found.perhaps[0].tensor, two.tensor)
    assert found.table["step"] == 3
    assert torch.equal(found.table["moments"][0], torch.zeros(1))
    assert found.text == "why"
    assert found.cache == "made again"
    assert set(tensors) == {
        "state.inner.tensor",
        "state.several.0.tensor",
        "state.several.1.tensor",
        "state.perhaps.0.tensor",
        "state.table.moments.0",
    }


def test_what_is_missing_stays_missing():
    found, tensors = there_and_back(Outer(None, [], None, {}))
    assert found == Outer(None, [], None, {})
    assert not tensors


def test_packed_tensors_are_copies():
    tensor = torch.zeros(2)
    tensors = {}
    pack(Inner(0.0, tensor), "state", tensors)
    tensor += 1
    assert not tensors["state.tensor"].any()
