"""Ctrl-C between two runs of one call: what was reached comes home, and no further run begins."""

import importlib
import os
import signal

import numpy as np
import pytest

import jorth
from jorth import Signature, Status
from jorth.solvers.loop import Interrupt

alignment = importlib.import_module("jorth.solvers.procrustes.alignment")
SIG = Signature(3, 2)


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_is_asked_outside_is_asked_inside_and_the_other_way_round():
    with Interrupt() as outer:
        outer.hold()
        with Interrupt() as inner:
            assert not inner.requested()
            os.kill(os.getpid(), signal.SIGINT)
        assert outer.requested()
        with Interrupt() as second:
            assert second.requested()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_between_two_starts_of_procrustes(monkeypatch):
    """With fewer rows than columns no component is ruled out: all four are tried, and the further
    starts of an open gap."""
    rng = np.random.default_rng(0)
    source = rng.standard_normal((SIG.n - 1, SIG.n))
    target = rng.standard_normal((SIG.n - 1, SIG.n))
    runs = []

    def then_interrupt(*arguments, **options):
        runs.append(jorth.minimize(*arguments, **options))
        if len(runs) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return runs[-1]

    monkeypatch.setattr(alignment._Search, "_is_over", lambda self: False)  # no certificate
    assert len(jorth.procrustes(source, target, SIG, starts=0).stages) == 4
    monkeypatch.setattr(alignment, "minimize", then_interrupt)
    result = jorth.procrustes(source, target, SIG)
    assert [run.status for run in result.stages[1:]] == [Status.INTERRUPTED]
    assert result.stages[1].iterations == 0
    assert result.status is Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert result.value == min(run.value for run in runs)
