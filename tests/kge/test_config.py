import pytest

from jorth.kge import Config, hierarchy_with_cycles, train
from jorth.kge.config import changes_from


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(method="adam"), "method must be one of"),
        (dict(negatives="some"), 'negatives, when not "all", must be an integer'),
        (dict(smoothing=1), "smoothing must be in [0, 1), got 1"),
        (dict(reverse_weight=0.5, reciprocal=False), "reverse_weight must be 0 without reciprocal"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        Config(**settings)
    assert message in str(caught.value)


def test_settings_from_texts():
    texts = [
        "lr=1e-2",
        "method = csdm",
        "reject=true",
        "relation_options.betas=[0.9, .99]",
        "p='3'",
    ]
    found = changes_from(texts[:4])
    options = {"betas": [0.9, 0.99]}
    assert found == {"lr": 0.01, "method": "csdm", "reject": True, "relation_options": options}
    with pytest.raises(TypeError, match="p must be an integer, got '3'"):
        changes_from(["p='3'"])


@pytest.mark.parametrize(
    ("method", "key"), [("j-jobcd", "momentun"), ("vr-j-jobcd", "probabilty"), ("csdm", "beta")]
)
def test_options_of_the_relations_are_checked(method, key):
    config = Config(method=method, relation_options={key: 1})
    with pytest.raises(TypeError, match=key):
        train(hierarchy_with_cycles(branching=3, depth=2), config)
