"""Ctrl-C between two runs of one call: what was reached comes home, and no further run begins."""

import os
import signal

import numpy as np
import pytest

import jorth
from jorth import Signature, Status
from jorth.solvers import batch
from jorth.solvers.loop import Interrupt

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
    assert jorth.procrustes(source, target, SIG, starts=0, certify=False).success
    solve, values = batch.solve_quadratics, []

    def then_interrupt(*arguments):
        found = solve(*arguments)
        values.append(float(arguments[-1].reached() is None))
        if len(values) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(batch, "solve_quadratics", then_interrupt)
    result = jorth.procrustes(source, target, SIG, certify=False)
    assert values == [1.0, 0.0]
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.value)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
