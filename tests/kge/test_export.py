"""`save_model` refuses what `load_model` would, and leaves what is there alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jorth.kge import NamedModel, load_model, model, save_model
from tests.kge.models import scattered

ENTITIES = tuple("abcde")
RELATIONS = ("r", "s")


def named(entities=ENTITIES, relations=RELATIONS, about=None, *, seed=0):
    return NamedModel(scattered(5, 2, seed=seed), entities, relations, about or {})


def with_weight(value):
    found = named(seed=1)
    with torch.no_grad():
        found.model.bias[2] = value
    return found


BAD = {
    "a path": (named(about={"p": Path()}, seed=1), TypeError, "about must be what JSON can hold"),
    "a list": (named(about=["note"], seed=1), TypeError, "about must be a dictionary"),
    "half a character": (named((*"abcd", "\ud800"), seed=1), ValueError, "names and about must be"),
    "too few": (named(ENTITIES[:-1], seed=1), ValueError, "entities must be 5 names.*got 4"),
    "numbers": (named(range(5), seed=1), TypeError, "entities must be names, strings, got 0"),
    "twice": (named(tuple("abcda"), seed=1), ValueError, "entities must have distinct names"),
    "NaN": (with_weight(torch.nan), ValueError, "bias must be finite"),
    "no model": (NamedModel(None, ENTITIES, RELATIONS), TypeError, r"named\.model must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_model_that_cannot_be_saved_replaces_nothing(case, tmp_path):
    bad, kind, message = BAD[case]
    save_model(tmp_path / "model", named())
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(kind, match=message):
        save_model(tmp_path / "model", bad)
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    with pytest.raises(kind, match=message):
        save_model(tmp_path / "new", bad)
    assert not (tmp_path / "new").exists()


def test_neither_file_is_replaced_if_one_cannot_be_written(tmp_path, monkeypatch):
    save_model(tmp_path, named())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    real = model.replacing

    def full_for(name):
        def opened(path):
            if path.name == name:
                raise OSError("no space left")
            return real(path)

        return opened

    for name in before:
        monkeypatch.setattr(model, "replacing", full_for(name))
        with pytest.raises(OSError, match="no space left"):
            save_model(tmp_path, named(seed=1))
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_other_languages_and_breaks_of_lines_come_back(tmp_path):
    entities = ("caf\u00e9", "a\u2028b", "\u0085", "\U0001f600", "")
    save_model(tmp_path, named(entities, about={"note": ["\u2029", 1.5, None]}))
    found = load_model(tmp_path)
    assert tuple(found.entities) == entities
    save_model(tmp_path, named(np.array(entities), about=found.about))
    assert tuple(load_model(tmp_path).entities) == entities
    assert found.about == {"note": ["\u2029", 1.5, None]}


@pytest.mark.parametrize(
    ("name", "values"), [("irreflexive", [True, False]), ("frequencies", [0, 2**40])], ids=str
)
def test_what_it_knows_of_training_comes_back(tmp_path, name, values):
    save_model(tmp_path, named())
    assert getattr(load_model(tmp_path), name) is None
    own = replace(named(), **{name: torch.tensor(values)})
    save_model(tmp_path, own)
    assert torch.equal(getattr(load_model(tmp_path), name), torch.tensor(values))
    with pytest.raises(TypeError, match=rf"{name} must be a torch\.\w+ tensor \(2,\), got"):
        save_model(tmp_path, replace(own, **{name: torch.tensor([0.5, 1.0])}))
