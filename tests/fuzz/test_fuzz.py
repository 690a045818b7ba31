"""Every public function with bad and odd arguments: a clear error or a right answer, never anything else."""

from collections import Counter

import pytest

from tests.fuzz.judge import CLEAR, ELSE, RIGHT
from tests.fuzz.rooms import ROOMS, run

QUICK = 2_500
LONG = 22_000
SHOWN = 25


def check(room, count, base):
    verdicts = run(room, count, base)
    counts = Counter(verdict.outcome for verdict in verdicts)
    print(f"{room}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in (CLEAR, RIGHT, ELSE)))
    others = [str(verdict) for verdict in verdicts if verdict.outcome == ELSE]
    assert not others, f"{len(others)} of {len(verdicts)}:\n" + "\n".join(others[:SHOWN])
    assert min(counts[CLEAR], counts[RIGHT]) > len(verdicts) / 20, "the mutations are one-sided"


@pytest.mark.parametrize("room", ROOMS)
def test_only_clear_errors_and_right_answers(room):
    check(room, QUICK, base=0)


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_only_clear_errors_and_right_answers_at_length(room):
    check(room, LONG, base=1_000_000)
