"""Steps replayed from a CUDA graph are those that are taken one by one."""

from dataclasses import replace

import pytest
import torch

from jorth.kge import Config, hierarchy_with_cycles, training
from jorth.kge.optimisers import PLAIN_STEPS, CapturedStep

pytestmark = pytest.mark.gpu
GRAPH = hierarchy_with_cycles(branching=3, depth=4)
CONFIG = Config(
    p=7,
    q=2,
    device="cuda",
    reciprocal=True,
    negatives=40,
    batch_size=200,
    lr=0.01,
    relation_lr=0.01,
    warmup=1,
    epochs=3,
    regularisation=0.01,
    relation_options={"metric": "invariant", "momentum": 0.9},
)
OPTIONS = {
    "plain": {},
    "ingredients": dict(
        smoothing=0.1, reject=True,
    ),
    "all": dict(negatives="all", reciprocal=False),
    "single": dict(dtype="float32"),
}  # fmt: skip


@pytest.fixture
def in_fixed_order():
    """Sums over queries in a fixed order, as Adam makes whole steps of differences by rounding."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def trained(config):
    """The run after its epochs, and whether its steps were replayed."""
    run = training._Run(GRAPH, config)
    for number in range(1, config.epochs + 1):
        run.steps(number)
    return run, isinstance(run._step, CapturedStep) and run._step._captured is not None


@pytest.mark.filterwarnings("ignore:.*deterministic")
@pytest.mark.usefixtures("in_fixed_order")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_replayed_steps_equal_single_steps(options, monkeypatch):
    config = replace(CONFIG, **options)
    replayed, captured = trained(config)
    assert captured
    monkeypatch.setattr(training, "CapturedStep", lambda step, group: step)
    plain, captured = trained(config)
    assert not captured
    turn = plain._optimisers.relation_group["turn"]
    assert replayed._optimisers.relation_group["turn"] == turn > 2 * PLAIN_STEPS
    start = training._Run(GRAPH, config).model
    tolerance = 1e-6 if config.dtype == "float64" else 1e-2
    for name in ("embeddings", "matrices"):
        ours, theirs, first = (
            getattr(model, name)().detach() for model in (replayed.model, plain.model, start)
        )
        assert (ours - theirs).abs().max() <= tolerance * (theirs - first).abs().max(), name


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_nothing_waits_for_the_device():
    run = training._Run(GRAPH, CONFIG)
    run.steps(1)
    generator = torch.Generator("cuda").manual_seed(0)
    queries = run._queries[: CONFIG.batch_size]
    batch = training.Batch(queries, run._negatives.epoch(generator).next(queries))
    run._step(batch)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run._optimisers.set_rates(0.5)
        run._step(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
