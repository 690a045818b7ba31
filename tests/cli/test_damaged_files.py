"""Damaged and hostile files: one line that names the file, exit code 1, no control characters."""

import json
import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from jorth.cli import main
from jorth.kge import NamedModel, UltraE, load_model, save_model
from jorth.signature import Signature

DEEP = 100_000
ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\r\n\u202e[red]x[/red][link=http://x]"


def jorth(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def is_one_clear_line(result, *names):
    """Whether a command ended by an error of its own that names the file."""
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    message = " ".join(result.output.split())
    for name in names:
        assert str(name) in message.replace(" ", ""), message
    return True


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A model of five entities and two relations."""
    folder = tmp_path_factory.mktemp("models") / "whole"
    model = UltraE(5, 2, signature=Signature(3, 2))
    save_model(
        folder,
        NamedModel(
            model, [f"e{number}" for number in range(5)], ["r", "s"], {"config": {"seed": 0}}
        ),
    )
    return folder


@pytest.fixture
def model(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "model")


def change_json(folder, **changes):
    path = folder / "model.json"
    content = json.loads(path.read_text()) | changes
    path.write_text(
        json.dumps({name: value for name, value in content.items() if value is not ...})
    )


def change_tensors(folder, **changes):
    path = folder / "model.safetensors"
    content = load_file(path) | changes
    save_file({name: value for name, value in content.items() if value is not ...}, path)


def cut(name, share):
    def damage(folder):
        path = folder / name
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    return damage


def replaced(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def in_json(**changes):
    return lambda folder: change_json(folder, **changes)


def in_tensors(**changes):
    return lambda folder: change_tensors(folder, **changes)


ABOUT = {
    "missing": lambda folder: (folder / "model.json").unlink(),
    "a folder": lambda folder: [(folder / "model.json").unlink(), (folder / "model.json").mkdir()],
    "empty": replaced("model.json", b""),
    "cut": cut("model.json", 0.5),
    "not UTF-8": replaced("model.json", b'{"model": "\xff"}'),
    "nested lists": replaced("model.json", b"[" * DEEP),
    "nested objects": replaced("model.json", b'{"a":' * DEEP),
    "null": replaced("model.json", b"null"),
    "a list": replaced("model.json", b"[]"),
    "a number": replaced("model.json", b"1" * 5000),
    "no entities": in_json(entities=...),
    "no signs": in_json(signs=...),
    "no alpha": in_json(alpha=...),
    "no reciprocal": in_json(reciprocal=...),
    "no about": in_json(about=...),
    "entities a number": in_json(entities=10**18),
    "entities a text": in_json(entities="abcde"),
    "entities of numbers": in_json(entities=[1, 2, 3, 4, 5]),
    "entities of lists": in_json(entities=[[], {}, [], {}, []]),
    "twice the same": in_json(entities=["a", "a", "b", "c", "d"]),
    "relations null": in_json(relations=None),
    "relations empty": in_json(relations=[]),
    "signs of letters": in_json(signs=["+", "+", "+", "-", "-"]),
    "signs of zero": in_json(signs=[0, 1, 1, 1, -1]),
    "signs nested": in_json(signs=[[1], [1], [1], [-1], [-1]]),
    "no minus sign": in_json(signs=[1] * 5),
    "alpha a text": in_json(alpha="1"),
    "alpha zero": in_json(alpha=0),
    "alpha NaN": in_json(alpha=float("nan")),
    "alpha huge": in_json(alpha=10**400),
    "delta a list": in_json(delta=[5.0]),
    "delta infinite": in_json(delta=float("inf")),
    "reciprocal a text": in_json(reciprocal="no"),
    "about a list": in_json(about=[]),
}
WEIGHTS = {
    "missing": lambda folder: (folder / "model.safetensors").unlink(),
    "empty": replaced("model.safetensors", b""),
    "cut in the header": cut("model.safetensors", 0.05),
    "cut in the tensors": cut("model.safetensors", 0.9),
    "a huge header": replaced("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"),
    "a pickle": replaced("model.safetensors", b"\x80\x04."),
    "a tensor too few": in_tensors(bias=...),
    "a tensor too many": in_tensors(more=torch.zeros(1)),
    "points of another shape": in_tensors(points=torch.zeros(5, 4, dtype=torch.float64)),
    "relations of another shape": in_tensors(relations=torch.zeros(2, 5, dtype=torch.float64)),
    "one relation": in_tensors(relations=torch.eye(5, dtype=torch.float64)[None]),
    "NaN": in_tensors(points=torch.full((5, 5), torch.nan, dtype=torch.float64)),
    "infinite": in_tensors(bias=torch.full((5,), torch.inf, dtype=torch.float64)),
    "integers": in_tensors(bias=torch.zeros(5, dtype=torch.int64)),
    "another precision": in_tensors(bias=torch.zeros(5, dtype=torch.float32)),
    "six names, five points": in_json(entities=[f"e{number}" for number in range(6)]),
    "a thousand signs": in_json(signs=[1] * 999 + [-1]),
    "reciprocal without its matrices": in_json(reciprocal=True),
}


@pytest.mark.parametrize("damage", ABOUT.values(), ids=ABOUT)
def test_a_damaged_description_of_a_model(model, damage):
    damage(model)
    is_one_clear_line(jorth("kge", "predict", "e0", "r", "-m", model), "model.json")
    is_one_clear_line(jorth("kge", "evaluate", "-m", model), "model.json")


@pytest.mark.parametrize("damage", WEIGHTS.values(), ids=WEIGHTS)
def test_damaged_weights_of_a_model(model, damage):
    damage(model)
    is_one_clear_line(jorth("kge", "predict", "e0", "r", "-m", model), "model.safetensors")


@pytest.mark.parametrize(
    "about", [{"data": 3}, {"config": []}, {"config": {"seed": "x"}}, {"config": {"seed": -1}}]
)
def test_what_a_model_says_of_its_graph(model, about):
    change_json(model, about=about)
    is_one_clear_line(jorth("kge", "evaluate", "-m", model), "model.json")


def test_a_whole_model_is_read(whole):
    assert jorth("kge", "predict", "e0", "r", "-m", whole).exit_code == 0
    assert load_model(whole).model.alpha == 1.0


def test_whole_numbers_may_stand_for_alpha_and_delta(model):
    change_json(model, alpha=2, delta=5)
    assert load_model(model).model.alpha == 2.0


SETTINGS = {
    "nested": b"a = " + b"[" * DEEP,
    "nested tables": b"[" + b".".join([b"a"] * 5000) + b"]\nb = 1",
    "not UTF-8": b'data = "\xff"',
    "not TOML": b"data = ",
    "data a number": b"data = 3",
    "data a list": b"data = ['x']",
    "header a text": b"data = 'x'\nheader = 'yes'",
    "p a text": b"data = 'x'\np = 'many'",
    "lr NaN": b"data = 'x'\nlr = nan",
    "an unknown key": b"data = 'x'\n\"\\u001b[31m\" = 1",
    "options of no method": b"data = 'x'\nrelation_options = 3",
}


@pytest.mark.parametrize("content", SETTINGS.values(), ids=SETTINGS)
def test_damaged_settings(tmp_path, content):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    result = jorth("kge", "train", path, "-o", tmp_path / "out")
    assert is_one_clear_line(result, "run.toml")
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    "content", [b"", b"a\tb\n", b"\xff\tb\tc\n", b"a\tb\t\x1b[31m\td\n", b"[" * DEEP, b"\0" * 99]
)
def test_damaged_triples(tmp_path, content):
    graph = tmp_path / "graph"
    graph.mkdir()
    (graph / "test.txt").write_text("a\tr\tb\n")
    (graph / "train.txt").write_bytes(content)
    (tmp_path / "run.toml").write_text('data = "graph"')
    result = jorth("kge", "train", tmp_path / "run.toml", "-o", tmp_path / "out")
    assert is_one_clear_line(result, "train.txt")
    assert "\x1b" not in result.output


def test_names_are_shown_not_obeyed(tmp_path):
    """Every entity and relation carries escapes for the terminal and tags of rich."""
    graph = tmp_path / "graph"
    graph.mkdir()
    names = [f"{ESCAPES}{number}".replace("\r\n", "") for number in range(4)]
    triples = [
        f"{head}\tr{ESCAPES[:-30]}\t{tail}".replace("\r\n", "") for head in names for tail in names
    ]
    for part in ("train", "valid", "test"):
        (graph / f"{part}.txt").write_text("\n".join(triples) + "\n", encoding="utf-8")
    (tmp_path / "run.toml").write_text('data = "graph"\np = 2\nq = 1\nepochs = 1')
    output = tmp_path / "out"
    shown = [
        jorth("kge", "train", tmp_path / "run.toml", "-o", output),
        jorth("kge", "evaluate", "-m", output),
        jorth("kge", "evaluate", "-m", output, "--json"),
        jorth("kge", "predict", names[0], triples[0].split("\t")[1], "-m", output),
        jorth("kge", "predict", "nobody", triples[0].split("\t")[1], "-m", output),
    ]
    assert [result.exit_code for result in shown] == [0, 0, 0, 0, 1]
    for result in shown:
        assert not set(result.output) & set("\x1b\x07\x9b\u202e\r"), result.output
    assert "\\x1b" in shown[1].output  # the table has room for the beginning of the name
    assert "\\x1b]0;owned\\x07" in shown[3].output
    assert "\\x1b" not in shown[4].output
    assert "[red]x[/red][link=http://x]0" in shown[3].output


@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz"])
def test_damaged_matrices(tmp_path, ending):
    path = tmp_path / f"A{ending}"
    for content in (b"", b"\x1b[31m,1\n2,3\n", b"\x93NUMPY\x01\x00", b"PK\x03\x04" + b"\0" * 50):
        path.write_bytes(content)
        result = jorth("solve", "eigen", path, "-s", "1,1", "-o", tmp_path / "X.npy")
        assert is_one_clear_line(result, path.name)
        assert "\x1b" not in result.output


def test_a_damaged_checkpoint(tmp_path):
    np.save(tmp_path / "A.npy", np.diag([2.0, 1.0]))
    arguments = (
        "solve",
        "eigen",
        tmp_path / "A.npy",
        "-s",
        "1,1",
        "-o",
        tmp_path / "X.npy",
        "--method",
        "gs-jobcd",
    )
    assert jorth(*arguments, "--checkpoint", tmp_path / "state").exit_code == 0
    for path in (tmp_path / "state").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:40])
    is_one_clear_line(jorth(*arguments, "--checkpoint", tmp_path / "state"), "state")
