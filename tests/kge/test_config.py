import pytest

from jorth.kge import Config, hierarchy_with_cycles, train
from jorth.kge.config import read_config


def write(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_a_file_is_read(tmp_path):
    path = write(
        tmp_path, 'data = "here"\np = 3\nmethod = "csdm"\n[relation_options]\nbetas = [0.9, 0.99]\n'
    )
    config, others = read_config(path, others=("data",))
    assert config == Config(p=3, method="csdm", relation_options={"betas": [0.9, 0.99]})
    assert others == {"data": "here"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch = 3", "run.toml: there is no key 'epoch'; did you mean 'epochs'"),
        ("p = ", "run.toml cannot be read"),
        ('method = "adam"', "run.toml: method must be one of"),
        ("q = 0", "q must be at least 1, got 0"),
        ("alpha = 0", "alpha must be a positive number"),
        ('negatives = "some"', 'negatives, when not "all", must be an integer'),
        ("reject = 1", "reject must be True or False, got 1"),
        ("smoothing = 1", "smoothing must be in [0, 1), got 1"),
        ("reverse_weight = 0.5\nreciprocal = false", "reverse_weight must be 0 without reciprocal"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        read_config(write(tmp_path, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "key"), [("j-jobcd", "momentun"), ("vr-j-jobcd", "probabilty"), ("csdm", "beta")]
)
def test_options_of_the_relations_are_checked(method, key):
    config = Config(method=method, relation_options={key: 1})
    with pytest.raises(TypeError, match=key):
        train(hierarchy_with_cycles(branching=3, depth=2), config)


def test_settings_can_be_keys():
    options = {"max_norm": 100, "betas": [0.9, 0.99]}
    one, same = (Config(lr=1, relation_options=options | {"max_norm": m}) for m in (100, 100.0))
    assert one == same
