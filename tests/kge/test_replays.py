"""What `CapturedStep` does around a graph, with one that is played on the CPU."""

from types import SimpleNamespace

import pytest
import torch

from jorth.kge import Config, hierarchy_with_cycles, optimisers, training
from jorth.kge.optimisers import PLAIN_STEPS, CapturedStep

GRAPH = hierarchy_with_cycles(branching=3, depth=3)
CONFIG = Config(
    p=3,
    q=2,
    negatives=10,
    batch_size=50,
    lr=0.01,
    epochs=2,
    relation_options={"metric": "invariant", "momentum": 0.9},
)


def replayed_on_cpu(group):
    """As `optimisers._capture`: a graph that reads what the batch holds when it is replayed."""

    def capture(step, batch, codes):
        loss = torch.zeros((), dtype=torch.float64)

        def replay():
            turn = group["turn"]
            loss.copy_(step(batch))
            group["turn"] = turn  # no host counts the turns of a graph

        return optimisers._Captured(SimpleNamespace(replay=replay), codes, loss)

    return capture


def impossible(group):
    def capture(step, batch, codes):
        group["turn"] += 1  # the host has come this far, the device has not
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    return capture


def trained(way, monkeypatch):
    """Losses, weights and turns after two epochs whose steps are captured in a way, or plain."""
    run = training._Run(GRAPH, CONFIG)
    group = run._optimisers.relation_group
    if way is not None:
        monkeypatch.setattr(optimisers, "_capture", way(group))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: None)
        monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: None)
        run._step = CapturedStep(run._step, group)
    losses = [run.steps(number)[0] for number in (1, 2)]
    return losses, run.model.weights(), group["turn"]


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_replayed_steps_are_those_of_their_batches(monkeypatch):
    plain = trained(None, monkeypatch)
    replayed = trained(replayed_on_cpu, monkeypatch)
    assert (2 * len(GRAPH.train)) % CONFIG.batch_size  # the last batch is smaller
    assert replayed[0] == plain[0]
    assert equal(replayed[1], plain[1])
    assert replayed[2] == plain[2] > 2 * PLAIN_STEPS


def test_what_cannot_be_captured_is_launched_step_by_step(monkeypatch):
    plain = trained(None, monkeypatch)
    with pytest.warns(RuntimeWarning, match="one by one: operation not permitted.*ing$") as seen:
        steps = trained(impossible, monkeypatch)
    assert len(seen) == 1
    assert steps[0] == plain[0]
    assert equal(steps[1], plain[1])
    assert steps[2] == plain[2]
