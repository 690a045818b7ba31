import pytest

from jorth.kge import Config, hierarchy_with_cycles, read_config, train


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
        ("temprature = 3", "there is no key 'temprature'; did you mean 'temperature'"),
        ("xyz = 3", "there is no key 'xyz'; there are p, q"),
        ("p = ", "run.toml is not TOML"),
        (
            'method = "adam"',
            'run.toml: method must be one of "j-jobcd", "vr-j-jobcd", "csdm", got \'adam\'',
        ),
        ("q = 0", "q must be at least 1, got 0"),
        ("lr = -1", "lr must be a number of at least 0, got -1"),
        ("alpha = 0", "alpha must be a positive number"),
        ('negatives = "some"', 'negatives, when not "all", must be an integer'),
        ("negatives = 0", "must be at least 1, got 0"),
        ("reject = 1", "reject must be True or False, got 1"),
        ("delta = nan", "delta must be a number, got nan"),
        ("max_time = 0", "max_time must be a positive number"),
        ("clip = 0", "clip must be a positive number"),
        ("max_radius = -1", "max_radius must be a positive number"),
        ("smoothing = 1", "smoothing must be in [0, 1), got 1"),
        ("dropout = -0.1", "dropout must be in [0, 1), got -0.1"),
        ("final_rate = 1", "final_rate must be in [0, 1), got 1"),
        ("averaging = 1.0", "averaging must be in [0, 1), got 1.0"),
        ('scaling = "yes"', 'scaling must be one of "none", "curvature", "diagonal", got'),
        ("reverse_weight = 0.5\nreciprocal = false", "reverse_weight must be 0 without reciprocal"),
        ("reverse_weight = -1", "reverse_weight must be a number of at least 0, got -1"),
        (
            'reverse_weight = 1\nreciprocal = true\nscaling = "diagonal"',
            "reverse_weight must be 0 with scaling, which it cannot be combined with, got 1 and "
            "'diagonal'",
        ),
        ("learn_scale = 1", "learn_scale must be True or False, got 1"),
        ('dtype = "half"', 'dtype must be one of "float64", "float32"'),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        read_config(write(tmp_path, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "key", "near"),
    [
        ("j-jobcd", "momentun", "momentum"),
        ("vr-j-jobcd", "probabilty", "probability"),
        ("csdm", "beta", "betas"),
    ],
)
def test_options_of_the_relations_are_checked(method, key, near):
    config = Config(method=method, relation_options={key: 1})
    with pytest.raises(
        ValueError,
        match=f"relation_options of {method}: there is no key '{key}'; did you mean '{near}'",
    ):
        train(hierarchy_with_cycles(branching=3, depth=2), config)


def test_settings_can_be_keys():
    options = {"max_norm": 100, "betas": [0.9, 0.99]}
    one, same = (Config(lr=1, relation_options=options | {"max_norm": m}) for m in (100, 100.0))
    assert one == same
    assert len({one, same, Config(), Config(seed=1)}) == 3
