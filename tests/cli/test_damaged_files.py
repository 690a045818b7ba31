"""Damaged files: one line that names the file, exit code 1, no control characters."""

import json
import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from jorth.cli import main
from jorth.kge import NamedModel, UltraE, save_model
from jorth.signature import Signature

ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e[red]x[/red][link=http://x]"


def jorth(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def is_one_clear_line(result, name):
    """Whether a command ended by an error of its own that names the file."""
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    assert name in result.output.replace("\n", "")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A model of five entities and two relations."""
    folder = tmp_path_factory.mktemp("models") / "whole"
    model = UltraE(5, 2, signature=Signature(3, 2))
    names = [f"e{number}" for number in range(5)]
    save_model(folder, NamedModel(model, names, ["r", "s"], {"config": {"seed": 0}}))
    return folder


def in_json(**changes):
    def damage(folder):
        path = folder / "model.json"
        content = json.loads(path.read_text()) | changes
        kept = {name: value for name, value in content.items() if value is not ...}
        path.write_text(json.dumps(kept))

    return damage


def in_tensors(**changes):
    def damage(folder):
        path = folder / "model.safetensors"
        content = load_file(path) | changes
        save_file({name: value for name, value in content.items() if value is not ...}, path)

    return damage


def cut(name):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


MODELS = {
    "model.json": {
        "missing": lambda folder: (folder / "model.json").unlink(),
        "cut": cut("model.json"),
        "twice the same": in_json(entities=["a", "a", "b", "c", "d"]),
        "too few flags": in_json(irreflexive=[True]),
        "counts that are none": in_json(frequencies=["r", 1]),
        "signs of zero": in_json(signs=[0, 1, 1, 1, -1]),
    },
    "model.safetensors": {
        "missing": lambda folder: (folder / "model.safetensors").unlink(),
        "cut": cut("model.safetensors"),
        "another shape": in_tensors(points=torch.zeros(5, 4, dtype=torch.float64)),
        "NaN": in_tensors(points=torch.full((5, 5), torch.nan, dtype=torch.float64)),
        "six names, five points": in_json(entities=[f"e{number}" for number in range(6)]),
    },
}
DAMAGES = [(name, damage) for name, damages in MODELS.items() for damage in damages]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_a_damaged_model(whole, tmp_path, name, damage):
    model = shutil.copytree(whole, tmp_path / "model")
    MODELS[name][damage](model)
    is_one_clear_line(jorth("kge", "predict", "e0", "r", "-m", model), name)


def test_names_are_shown_not_obeyed(tmp_path):
    """Every entity and relation carries escapes for the terminal and tags of rich."""
    names = [f"{ESCAPES}{number}" for number in range(4)]
    lines = [f"{head}\tr{ESCAPES}\t{tail}\n" for head in names for tail in names]
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text("".join(lines), encoding="utf-8")
    output = tmp_path / "out"
    results = [
        jorth("kge", "train", "--data", tmp_path, "-o", output, "--epochs", 1),
        jorth("kge", "evaluate", "-m", output),
        jorth("kge", "predict", names[0], f"r{ESCAPES}", "-m", output),
        jorth("kge", "predict", "nobody", f"r{ESCAPES}", "-m", output),
    ]
    assert [result.exit_code for result in results] == [0, 0, 0, 2]
    for result in results:
        assert not set(result.output) & set("\x1b\x07\x9b\u202e"), result.output
    assert "[red]x[/red][link=http://x]0" in results[2].output


def test_a_damaged_checkpoint(tmp_path):
    np.save(tmp_path / "A.npy", np.diag([2.0, 1.0]))
    words = ["solve", "quadratic", tmp_path / "A.npy", "-s", "1,1", "-o", tmp_path / "X.npy"]
    words += ["--method", "gs-jobcd", "--checkpoint", tmp_path / "state"]
    assert jorth(*words).exit_code == 0
    for path in (tmp_path / "state").glob("state.checkpoint"):
        path.write_bytes(path.read_bytes()[:40])
    is_one_clear_line(jorth(*words), "state")
