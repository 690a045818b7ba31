"""The picture of entities."""

import pytest
import torch
from PIL import Image

import jorth
from jorth.kge import NamedModel, draw_entities, pictures
from tests.kge.models import random_triples, scattered

HYPERBOLIC = jorth.Signature(5, 1)


def named():
    names = [f"e{k}$x^" for k in range(30)]
    return NamedModel(scattered(30, 2, signature=HYPERBOLIC), names, ["r0\x1b", "r1\x1b"])


def pixels(path):
    with Image.open(path) as picture:
        assert min(picture.size) >= 400
        return picture.convert("RGB").tobytes()


def test_entities(tmp_path):
    model = named()
    names = model.entities
    lines = random_triples(10, 30, 2)
    seen = {
        "plain": dict(),
        "unlabelled": dict(label=0),
        "chosen": dict(label=["e3$x^", 4]),
        "types": dict(colours={name: f"type {name[1]}" for name in names[:20]}),
        "many types": dict(colours={name: name for name in names}),
        "depths": dict(colours={number: number % 4 for number in range(30)}),
        "numbers": dict(colours={name: 0.5 * number for number, name in enumerate(names[1:])}),
        "lines": dict(lines=lines, title="$ lines _"),
    }
    found = set()
    for name, options in seen.items():
        path = tmp_path / f"{name}.png"
        disc = draw_entities(model, path, **options)
        assert disc.points.shape == (30, 2)
        found.add(pixels(path))
    assert len(found) == len(seen)


def test_the_names_are_those_of_hubs(tmp_path, monkeypatch):
    model, written = named(), []
    with torch.no_grad():
        model.model.bias.zero_()[[4, 7, 9]] = 1.0
    monkeypatch.setattr(pictures, "_write_names", lambda axes, points, names: written.append(names))
    for count in (1, 30):
        draw_entities(model, tmp_path / "a.png", label=count)
    (hub,) = written[0]
    assert hub in (4, 7, 9)
    assert written[0][hub] == f"e{hub}$x^"
    assert set(written[1]) == set(range(30))


def test_bad_input(tmp_path):
    model = named()
    path = tmp_path / "new" / "a.png"
    with pytest.raises(ValueError, match=r"path must end in .png, .pdf or .svg, got 'a.txt'"):
        draw_entities(model, tmp_path / "a.txt")
    with pytest.raises(TypeError, match="colours must map to labels"):
        draw_entities(model, path, colours={0: [1]})
    with pytest.raises(ValueError, match="entities of lines must be from 0 to 29"):
        draw_entities(model, path, lines=torch.tensor([[30, 0, 1]]))
    with pytest.raises(ValueError, match="label: there is no entity 'e99'"):
        draw_entities(model, path, label=["e99"])
    assert not path.parent.exists()
    draw_entities(model, path)
    assert path.exists()
